package nstorm.hook;

import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;

/** Whether the hooks of this JVM are active; they read it, and any of them may refuse the whole JVM. */
public final class HookStatus {

    /** The version that the controller reads. */
    public static final String VERSION = "0.2.0";

    /** System property: why this JVM runs stock Storm; absent while the hooks are active. */
    public static final String REFUSED = "nstorm.refused";

    private static final String UNVERIFIED_KEY = "nstorm.unverified";

    private static volatile boolean active;
    private static volatile String storm;
    private static volatile String unknownCode;
    private static volatile String watching;
    /** What was announced and is not in the log yet; null if there is nothing. */
    private static final AtomicReference<String> ANNOUNCED = new AtomicReference<>();

    private HookStatus() {}

    /** False where this JVM runs stock Storm: every hook is then passive. */
    public static boolean active() {
        return active;
    }

    /** Every symbol was found: the hooks may act. Called once, before anything is woven. */
    public static void activate() {
        active = true;
    }

    /** Prints on standard error that the hooks act: before main Storm's logging is not up. */
    public static void announce(String line) {
        System.err.println(line);
        ANNOUNCED.set(line);
    }

    /** Writes the same into the log of a daemon, once; to be called by the first of its hooks that Storm reaches. */
    public static void log(Logger log) {
        String line = ANNOUNCED.getAndSet(null);
        if (line != null) {
            log.info(line);
        }
    }

    /** Notes Storm's version, null if it has none, and which of its code is unknown, null if all is known. */
    public static void met(String version, String unknownOrNull) {
        storm = version;
        unknownCode = unknownOrNull;
        watching = unknownOrNull;
    }

    /** The storm.yaml is known by now, which may let unknown code move executors. */
    public static void configured(Map<String, Object> conf) {
        watching = "move".equals(conf.get(UNVERIFIED_KEY)) ? null : unknownCode;
    }

    /** The version of Storm in this JVM; null before it is known. */
    public static String storm() {
        return storm;
    }

    /** Why this JVM counts and reports but moves nothing: it has code that the hooks do not know. Else null. */
    public static String watching() {
        return watching;
    }

    /** Makes every hook passive for the rest of this JVM's life. */
    public static void refuse(String reason) {
        active = false;
        System.setProperty(REFUSED, reason);
        System.err.println("nstorm: this JVM runs stock Storm: " + reason);
    }
}
