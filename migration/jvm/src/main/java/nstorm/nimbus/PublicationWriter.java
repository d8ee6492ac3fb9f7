package nstorm.nimbus;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import nstorm.wire.json.Packing;

/** What was published: a znode is written anew only when its content has changed. */
final class PublicationWriter {

    /** A znode stays far below ZooKeeper's limit of 1 MiB: it is read by all who watch it. */
    static final int LARGEST_BYTES = 256 * 1024;
    private static final byte[] OF_ANOTHER = new byte[0];

    private final Znodes znodes;
    /** What there is, and its content before it was packed. */
    private final Map<String, byte[]> written = new HashMap<>();

    PublicationWriter(Znodes znodes) {
        this.znodes = znodes;
    }

    /** These are there, whoever wrote them. */
    void found(Collection<String> paths) {
        written.keySet().retainAll(paths);
        paths.forEach(path -> written.putIfAbsent(path, OF_ANOTHER));
    }

    /** Another Nimbus may have written meanwhile. */
    void forgetContents() {
        written.replaceAll((path, content) -> OF_ANOTHER);
    }

    boolean exists(String path) {
        return written.containsKey(path);
    }

    /**
     * Writes it if it is not what is there.
     *
     * @return how many bytes too many it has, 0 if none
     */
    int put(String path, byte[] json) throws Exception {
        byte[] last = written.get(path);
        if (last != null && Arrays.equals(json, last)) {
            return 0;
        }
        byte[] packed = Packing.pack(json);
        if (packed.length > LARGEST_BYTES) {
            return packed.length - LARGEST_BYTES;
        }
        znodes.write(path, packed);
        written.put(path, json);
        return 0;
    }

    void delete(String path) throws Exception {
        if (exists(path)) {
            znodes.delete(path);
            written.remove(path);
        }
    }
}
