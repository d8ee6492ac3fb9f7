package nstorm.proof;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.InaccessibleObjectException;
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
