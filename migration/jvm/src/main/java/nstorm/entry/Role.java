package nstorm.entry;

import java.util.Locale;
import nstorm.check.CheckHooks;
import nstorm.hook.HookSet;
import nstorm.nimbus.NimbusHooks;
import nstorm.supervisor.SupervisorHooks;
import nstorm.worker.WorkerHooks;

/** The kinds of JVM that take hooks: three of Storm's, and that of {@code nstorm check-topology}. */
enum Role {
    WORKER("org.apache.storm.daemon.worker.Worker"),
    SUPERVISOR("org.apache.storm.daemon.supervisor.Supervisor"),
    NIMBUS("org.apache.storm.daemon.nimbus.Nimbus"),
    CHECK("nstorm.check.CheckTopology");

    private final String mainClass;

    Role(String mainClass) {
        this.mainClass = mainClass;
    }

    /** By {@code -javaagent}'s argument {@code role=...}, else by the JVM's main class; null for any other JVM. */
    static Role of(String args, String javaCommand) {
        for (Role role : values()) {
            boolean named = ("role=" + role).equals(args);
            boolean main = javaCommand != null && javaCommand.split(" ", 2)[0].equals(role.mainClass);
            if (named || ((args == null || args.isEmpty()) && main)) {
                return role;
            }
        }
        return null;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    HookSet hooks() {
        return switch (this) {
            case WORKER -> new WorkerHooks();
            case SUPERVISOR -> new SupervisorHooks();
            case NIMBUS -> new NimbusHooks();
            case CHECK -> new CheckHooks();
        };
    }

    /** The packages of ours whose code runs in this JVM. */
    String[] packages() {
        return switch (this) {
            case WORKER ->
                new String[] {
                    "nstorm/worker/",
                    "nstorm/proof/",
                    "nstorm/state/",
                    "nstorm/memory/",
                    "nstorm/load/",
                    "nstorm/store/",
                    "nstorm/wire/"
                };
            case SUPERVISOR -> new String[] {"nstorm/supervisor/", "nstorm/store/", "nstorm/wire/"};
            case NIMBUS -> new String[] {"nstorm/nimbus/", "nstorm/wire/"};
            case CHECK ->
                new String[] {
                    "nstorm/check/", "nstorm/proof/", "nstorm/state/", "nstorm/memory/", "nstorm/load/", "nstorm/wire/"
                };
        };
    }
}
