package nstorm.proof;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Set;

/** Opens packages of the JDK to reflection, one at a time and in this JVM alone. Without an agent only what was opened by flags can be read. */
public final class Opened {
    private static volatile Instrumentation instrumentation;

    private Opened() {}

    /** From now on packages can be opened. */
    public static void by(Instrumentation given) {
        instrumentation = given;
    }

    /**
     * Whether a class is initialised. To read a static field of one that is not would run code of the user's.
     *
     * @throws IllegalStateException if that cannot be asked
     */
    static boolean isInitialised(Class<?> type) {
        try {
            Class<?> unsafe = Class.forName("jdk.internal.misc.Unsafe");
            Method get = unsafe.getMethod("getUnsafe");
            Method asked = unsafe.getMethod("shouldBeInitialized", Class.class);
            if (!open(get, unsafe) || !open(asked, unsafe)) {
                throw new IllegalStateException("cannot see which classes are initialised");
            }
            return !(boolean) asked.invoke(get.invoke(null), type);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot see which classes are initialised", e);
        }
    }

    /** Makes a member readable; false if it stays closed. */
    static boolean open(AccessibleObject member, Class<?> declaring) {
        try {
            member.setAccessible(true);
            return true;
        } catch (InaccessibleObjectException e) {
            return openPackage(declaring) && member.trySetAccessible();
        } catch (SecurityException e) {
            return false;
        }
    }

    private static boolean openPackage(Class<?> declaring) {
        Instrumentation given = instrumentation;
        Module module = declaring.getModule();
        if (given == null || !given.isModifiableModule(module)) {
            return false;
        }
        given.redefineModule(
                module,
                Set.of(),
                Map.of(),
                Map.of(declaring.getPackageName(), Set.of(Opened.class.getModule())),
                Set.of(),
                Map.of());
        return true;
    }
}
