package nstorm.store;

import java.nio.file.Path;
import java.util.Map;

/** Where a node keeps what its agent and its JVMs exchange. */
public final class StoreDir {

    private StoreDir() {}

    /** {@code nstorm.store.dir}, by default {@code nstorm} in Storm's local directory. */
    public static Path of(Map<String, Object> stormConf) {
        Object configured = stormConf.get("nstorm.store.dir");
        if (configured != null) {
            return Path.of(configured.toString());
        }
        Object local = stormConf.get("storm.local.dir");
        if (local == null) {
            throw new IllegalArgumentException("neither nstorm.store.dir nor storm.local.dir is configured");
        }
        return Path.of(local.toString(), "nstorm");
    }
}
