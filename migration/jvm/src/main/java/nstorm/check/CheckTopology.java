package nstorm.check;

import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import nstorm.hook.HookStatus;
import nstorm.wire.json.JsonText;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.utils.Utils;

/**
 * {@code nstorm check-topology}: runs the main class of a topology, takes what it submits, and writes how each component would move as one
 * JSON document. Nothing is sent to a cluster. Arguments: the main class, {@code prepare} or {@code read}, and those of the main class.
 */
public final class CheckTopology {
    /** Until it submits something: a main class may wait for a user or for a cluster. */
    private static final long LIMIT_MS = TimeUnit.SECONDS.toMillis(60);
    /** After it has submitted: it may follow its topology for ever. */
    private static final long LIMIT_AFTER_MS = TimeUnit.SECONDS.toMillis(3);

    private static final String NO_LOCAL =
            "it starts a LocalCluster; give the main class the arguments with which it submits to a cluster";
    private static final PrintStream OUT = System.out;
    private static final List<Submitted> SUBMITTED = new ArrayList<>();

    private static boolean prepare;
    private static boolean judging;
    private static boolean written;
    private static long lastSignMs = System.currentTimeMillis();

    private record Submitted(String name, List<JudgedComponent> components) {}

    private CheckTopology() {}

    public static void main(String[] arguments) throws InterruptedException {
        System.setOut(System.err);
        String mainClass = arguments[0];
        prepare = arguments[1].equals("prepare");
        if (!caught()) {
            end("the hooks are not active in this JVM: "
                    + System.getProperty(HookStatus.REFUSED, "start it with the jar as -javaagent"));
        }
        Runtime.getRuntime()
                .addShutdownHook(new Thread(() -> end("its main class, " + mainClass
                        + ", called System.exit before it had " + "submitted a topology")));
        String[] failure = {null};
        Thread main = new Thread(
                () -> failure[0] = run(mainClass, Arrays.copyOfRange(arguments, 2, arguments.length)), "main");
        main.setDaemon(true);
        main.start();
        while (main.isAlive() && !waitedEnough()) {
            main.join(100);
        }
        String late = "its main class, " + mainClass + ", has not submitted a topology after " + LIMIT_MS / 1000 + " s";
        end(main.isAlive() ? late : failure[0]);
    }

    /** Whether a submission will be taken: the class is loaded now, and its weaving shows. */
    private static boolean caught() {
        try {
            Class.forName(CheckHooks.SUBMITTER);
            return HookStatus.active();
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }

    /** Why it has submitted nothing, if so. */
    private static String run(String mainClass, String[] arguments) {
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return "its main class, " + mainClass
                    + ", ended without a topology; give it the arguments with which it submits to a cluster";
        } catch (ClassNotFoundException e) {
            return "there is no class " + e.getMessage() + " in the jar; name its main class with --class";
        } catch (NoSuchMethodException e) {
            return mainClass + " has no public static main(String[]); name another class with --class";
        } catch (InvocationTargetException e) {
            Throwable thrown = e.getCause();
            thrown.printStackTrace();
            boolean local = thrown instanceof NoClassDefFoundError
                    && String.valueOf(thrown.getMessage()).contains("LocalCluster");
            return "its main class, " + mainClass + ", threw " + thrown + (local ? ": " + NO_LOCAL : "");
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            return "its main class, " + mainClass + ", cannot be run: " + (e.getCause() == null ? e : e.getCause());
        }
    }

    private static synchronized boolean waitedEnough() {
        return !judging && System.currentTimeMillis() - lastSignMs > (SUBMITTED.isEmpty() ? LIMIT_MS : LIMIT_AFTER_MS);
    }

    /** Called in place of Storm's method, into which it is woven: that is skipped in any case. */
    public static boolean submitted(String name, Map<String, Object> given, StormTopology topology) {
        setJudging(true);
        try {
            Map<String, Object> conf = new HashMap<>(Utils.readStormConfig());
            conf.putAll(given == null ? Map.of() : given);
            conf.put("topology.name", name);
            List<JudgedComponent> judged = new TopologyJudge(topology, conf, prepare).judge();
            synchronized (CheckTopology.class) {
                SUBMITTED.add(new Submitted(name, judged));
            }
        } finally {
            setJudging(false);
        }
        return true;
    }

    private static synchronized void setJudging(boolean now) {
        judging = now;
        lastSignMs = System.currentTimeMillis();
    }

    /** Writes the document once and ends the JVM, whatever threads the user's code has left. */
    private static synchronized void end(String errorIfNothing) {
        if (!written) {
            written = true;
            JsonText text = new JsonText().open().put("error", SUBMITTED.isEmpty() ? errorIfNothing : null);
            text.list(
                    "topologies",
                    SUBMITTED,
                    (to, one) -> to.open()
                            .put("name", one.name)
                            .list("components", one.components, (into, component) -> component.write(into))
                            .close());
            OUT.writeBytes(text.close().bytes());
            OUT.flush();
            Runtime.getRuntime().halt(0);
        }
    }
}
