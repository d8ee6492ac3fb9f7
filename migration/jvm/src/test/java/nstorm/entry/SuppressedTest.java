package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.function.Supplier;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.loading.ClassLoadingStrategy;
import net.bytebuddy.matcher.ElementMatchers;
import nstorm.hook.Faults;
import org.junit.jupiter.api.Test;

class SuppressedTest {

    /** Stands for a class of Storm. */
    public static class Sum implements Supplier<Integer> {
        @Override
        public Integer get() {
            return 1 + 1;
        }
    }

    static final class Fails {
        private Fails() {}

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter() {
            throw new LinkageError("no such method");
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit() {
            throw new IllegalStateException("not yet");
        }
    }

    @Test
    void aFailedHookIsReportedAndStormGoesOn() throws Exception {
        ClassFileLocator locator = ClassFileLocator.ForClassLoader.of(getClass().getClassLoader());
        Class<? extends Sum> woven = new ByteBuddy()
                .redefine(Sum.class, locator)
                .visit(HookInstaller.counted(TypeDescription.ForLoadedType.of(Fails.class), locator)
                        .on(ElementMatchers.named("get")))
                .make()
                .load(getClass().getClassLoader(), ClassLoadingStrategy.Default.CHILD_FIRST)
                .getLoaded();
        long before = Faults.count();
        Supplier<?> sum = (Supplier<?>) woven.getConstructor().newInstance();
        assertEquals(2, sum.get());
        assertEquals(before + 2, Faults.count());
        assertTrue(Faults.last().contains("not yet"), Faults.last());
    }
}
