package nstorm.hook;

/** Whether the hooks of this JVM are active; they read it, and any of them may refuse the whole JVM. */
public final class HookStatus {

    /** The version that the controller reads. */
    public static final String VERSION = "0.2.0";

    /** System property: why this JVM runs stock Storm; absent while the hooks are active. */
    public static final String REFUSED = "nstorm.refused";

    private static volatile boolean active;

    private HookStatus() {}

    /** False where this JVM runs stock Storm: every hook is then passive. */
    public static boolean active() {
        return active;
    }

    /** Every symbol was found: the hooks may act. Called once, before anything is woven. */
    public static void activate() {
        active = true;
    }

    /** Makes every hook passive for the rest of this JVM's life. */
    public static void refuse(String reason) {
        active = false;
        System.setProperty(REFUSED, reason);
        System.err.println("nstorm: this JVM runs stock Storm: " + reason);
    }
}
