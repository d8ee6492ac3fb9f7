package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.dynamic.loading.ClassLoadingStrategy;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import nstorm.hook.Advised;
import nstorm.worker.WorkerHooks;
import org.junit.jupiter.api.Test;
import org.objenesis.ObjenesisStd;

/** What is counted where Storm acks and fails a spout's tuples: in Storm's own class, with these advices woven in. */
class SpoutHooksTest {
    private static final String SPOUTS = "org.apache.storm.executor.spout.SpoutExecutor";

    private final Object executor = new ObjenesisStd().newInstance(woven());

    @Test
    void eachTupleCountsOnce() throws Exception {
        call("ackSpoutMsg", null, null, 41L, null);
        long acked = SpoutAcks.HERE.ackedTuples();
        long failed = SpoutAcks.HERE.failedTuples();
        long timed = timed();
        call("ackSpoutMsg", null, null, 41L, null);
        call("ackSpoutMsg", null, null, null, null);
        call("failSpoutMsg", null, null, 30_000L, null, "TIMEOUT");
        assertEquals(acked + 2, SpoutAcks.HERE.ackedTuples());
        assertEquals(failed + 1, SpoutAcks.HERE.failedTuples());
        assertEquals(timed + 1, timed(), "a tuple that failed was not completed after that time");
    }

    private static long timed() {
        return SpoutAcks.HERE.latency().stream().mapToLong(row -> row[1]).sum();
    }

    /** There is no spout behind it, so Storm's own code fails, after the advice. */
    private void call(String name, Object... arguments) {
        Method method = Arrays.stream(executor.getClass().getMethods())
                .filter(one -> one.getName().equals(name))
                .findFirst()
                .orElseThrow();
        Throwable thrown = assertThrows(InvocationTargetException.class, () -> method.invoke(executor, arguments))
                .getCause();
        assertEquals(NullPointerException.class, thrown.getClass());
    }

    private static Class<?> woven() {
        ClassFileLocator locator = ClassFileLocator.ForClassLoader.ofSystemLoader();
        TypePool types = TypePool.Default.of(locator);
        DynamicType.Builder<?> builder =
                new ByteBuddy().redefine(types.describe(SPOUTS).resolve(), locator);
        List<Advised> advised = new WorkerHooks()
                .advised().stream()
                        .filter(one -> one.type().equals(SPOUTS) && one.observes())
                        .toList();
        assertEquals(2, advised.size());
        for (Advised one : advised) {
            builder = builder.visit(
                    Advice.to(types.describe(one.advice().getName()).resolve(), locator)
                            .on(ElementMatchers.named(one.method())
                                    .and(ElementMatchers.hasDescriptor(one.descriptorOrNull()))));
        }
        return builder.make()
                .load(SpoutHooksTest.class.getClassLoader(), ClassLoadingStrategy.Default.CHILD_FIRST)
                .getLoaded();
    }
}
