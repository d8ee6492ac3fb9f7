package nstorm.entry;

import java.lang.instrument.Instrumentation;

/**
 * What the JVM calls before main: starts the hooks where Java is new enough for them, else leaves the JVM alone.
 *
 * <p>This one class is of Java 8, for a JVM that cannot read the entry's class does not start. So it names no
 * other class of ours but by text.
 */
public final class HooksEntry {
    private static final int OLDEST_JAVA = 17;
    /** Byte Buddy and ASM read the class files of no later one. */
    static final int NEWEST_JAVA = 26;

    private HooksEntry() {}

    /** Never throws: what a premain method throws ends the JVM. */
    public static void premain(String args, Instrumentation inst) {
        try {
            int java = feature(System.getProperty("java.specification.version"));
            if (java < OLDEST_JAVA) {
                System.err.println("nstorm: Java " + java + " is too old for the hooks (" + OLDEST_JAVA
                        + " or later is needed): this JVM runs stock Storm");
                return;
            }
            if (java > NEWEST_JAVA) {
                System.err.println("nstorm: Java " + java + " is newer than Byte Buddy and ASM in this jar know ("
                        + NEWEST_JAVA + "): this JVM runs stock Storm");
                return;
            }
            Class.forName("nstorm.entry.HookInstaller")
                    .getMethod("premain", String.class, Instrumentation.class)
                    .invoke(null, args, inst);
        } catch (Throwable t) {
            System.err.println("nstorm: this JVM runs stock Storm: the hooks could not be started: " + t);
        }
    }

    /** 8 of "1.8", 11 of "11". */
    static int feature(String specificationVersion) {
        String feature =
                specificationVersion.startsWith("1.") ? specificationVersion.substring(2) : specificationVersion;
        return Integer.parseInt(feature);
    }
}
