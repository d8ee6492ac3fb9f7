package nstorm.worker.exit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.stream.Stream;
import nstorm.hook.Faults;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.bolt.BoltExecutor;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the user's code throws where nstorm ends a bolt or a spout: Storm would end the worker with it. */
public class UsersEndTest {
    private static final class Unspeakable extends RuntimeException {
        private static final long serialVersionUID = 1L;

        @Override
        public String toString() {
            throw new IllegalStateException("no text");
        }
    }

    static final class Bolt extends BaseRichBolt {
        transient Throwable thrown;
        transient Runnable asItEnds;
        transient boolean ended;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {}

        @Override
        public void execute(Tuple tuple) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}

        @Override
        public void cleanup() {
            ended = true;
            if (asItEnds != null) {
                asItEnds.run();
            }
            if (thrown != null) {
                sneak(thrown);
            }
        }
    }

    static final class Spout extends BaseRichSpout {
        transient Throwable thrown;
        transient Runnable asItPauses;
        transient Runnable asItEnds;
        transient boolean ended;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {}

        @Override
        public void nextTuple() {}

        @Override
        public void deactivate() {
            asItPauses.run();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}

        @Override
        public void close() {
            ended = true;
            if (asItEnds != null) {
                asItEnds.run();
            }
            if (thrown != null) {
                sneak(thrown);
            }
        }
    }

    /** As Kotlin, Scala and Groovy let a method throw anything. */
    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <T extends Throwable> void sneak(Throwable thrown) throws T {
        throw (T) thrown;
    }

    static Stream<Throwable> everything() {
        return Stream.of(
                new IOException("checked"),
                new InterruptedException("checked as well"),
                new ServiceConfigurationError("an error"),
                new OutOfMemoryError("of threads"),
                new StackOverflowError(),
                new Unspeakable(),
                new Throwable("neither"));
    }

    /** Without its constructor, which needs a whole worker. */
    public static <T> T blank(Class<T> type) throws ReflectiveOperationException {
        Class<?> factory = Class.forName("sun.reflect.ReflectionFactory");
        Object one = factory.getMethod("getReflectionFactory").invoke(null);
        Constructor<?> made =
                (Constructor<?>) factory.getMethod("newConstructorForSerialization", Class.class, Constructor.class)
                        .invoke(one, type, Object.class.getDeclaredConstructor());
        return type.cast(made.newInstance());
    }

    public static void set(Class<?> type, String name, Object owner, Object value) throws ReflectiveOperationException {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        field.set(owner, value);
    }

    public static <T extends Executor> T executor(Class<T> type, Object... taskObjects)
            throws ReflectiveOperationException {
        List<Task> tasks = new ArrayList<>(Arrays.asList((Task) null));
        for (Object taskObject : taskObjects) {
            Task task = blank(Task.class);
            TopologyContext context = blank(TopologyContext.class);
            set(TopologyContext.class, "hooks", context, new ArrayList<>());
            set(Task.class, "taskObject", task, taskObject);
            set(Task.class, "userTopologyContext", task, context);
            tasks.add(task);
        }
        T executor = blank(type);
        StormFields.set(StormFields.ID_TO_TASK, executor, tasks);
        return executor;
    }

    @AfterEach
    void isNotInterrupted() {
        Thread.interrupted();
    }

    /** With the interrupt Storm's loop would end before the executor has handed on what it has. */
    private static void assertContained(long faultsBefore, long count) {
        assertEquals(count, Faults.count() - faultsBefore);
        assertFalse(Thread.currentThread().isInterrupted());
    }

    @ParameterizedTest
    @MethodSource("everything")
    void nothingThatCleanupThrowsEscapes(Throwable thrown) throws Exception {
        Bolt first = blank(Bolt.class);
        Bolt second = blank(Bolt.class);
        first.thrown = thrown;
        second.thrown = thrown;
        BoltExit exit = new BoltExit(executor(BoltExecutor.class, first, second));
        long faults = Faults.count();
        exit.cleanUp();
        assertTrue(exit.cleanedUp() && first.ended && second.ended);
        assertContained(faults, 2);
    }

    @ParameterizedTest
    @MethodSource("everything")
    void norThatCloseThrows(Throwable thrown) throws Exception {
        Spout spout = blank(Spout.class);
        spout.thrown = thrown;
        long faults = Faults.count();
        new SpoutExit(executor(SpoutExecutor.class, spout)).closeUnused();
        assertTrue(spout.ended);
        assertContained(faults, 1);
    }

    /** As after an open() that was interrupted, and set the interrupt again before it threw. */
    @Test
    void noInterruptReachesACloseFromWhatCameBefore() throws Exception {
        Spout[] spouts = {blank(Spout.class), blank(Spout.class)};
        boolean[] interrupted = new boolean[2];
        for (int i = 0; i < 2; i++) {
            int task = i;
            spouts[i].asItEnds = () -> {
                interrupted[task] = Thread.currentThread().isInterrupted();
                Thread.currentThread().interrupt();
            };
        }
        Thread.currentThread().interrupt();
        new SpoutExit(executor(SpoutExecutor.class, (Object[]) spouts)).closeUnused();
        assertTrue(spouts[0].ended && spouts[1].ended);
        assertArrayEquals(new boolean[2], interrupted);
        assertFalse(Thread.currentThread().isInterrupted());
    }
}
