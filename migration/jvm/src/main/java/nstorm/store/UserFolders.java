package nstorm.store;

import java.nio.file.Path;
import java.util.Map;

/**
 * Where a node keeps what its agent and its workers exchange if these have users of their own: one folder a user.
 *
 * <p>All in it are whole files. A shared environment of LMDB would let each side write what the other has mapped.
 */
public final class UserFolders {

    private UserFolders() {}

    /** Whether Storm starts workers as the users of their topologies. */
    public static boolean used(Map<String, Object> stormConf) {
        return Boolean.TRUE.equals(stormConf.get("supervisor.run.worker.as.user"));
    }

    /** The folder that has those of all users. */
    public static Path all(Path storeDir) {
        return storeDir.resolve("u");
    }

    /** The folder of the user of this JVM. */
    static Path own(Path storeDir) {
        return all(storeDir).resolve(System.getProperty("user.name"));
    }
}
