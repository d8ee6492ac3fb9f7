package nstorm.nimbus;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import nstorm.wire.json.Packing;

/** What was published: a znode is written again only when its content has changed. */
@SuppressWarnings("ReferenceEquality") // OF_ANOTHER is one object
final class PublicationWriter {

    /** A znode stays far below ZooKeeper's limit of 1 MiB: it is read by all who watch it. */
    static final int LARGEST_BYTES = 256 * 1024;

    private static final Content OF_ANOTHER = new Content(new byte[0], -1);

    /** Content before it was packed, and its version in ZooKeeper. */
    private record Content(byte[] json, int version) {}

    private final Znodes znodes;
    private final Map<String, Content> written = new HashMap<>();

    PublicationWriter(Znodes znodes) {
        this.znodes = znodes;
    }

    /** These are there, whoever wrote them. */
    void found(Collection<String> paths) {
        written.keySet().retainAll(paths);
        paths.forEach(path -> written.putIfAbsent(path, OF_ANOTHER));
    }

    /** Another Nimbus may have written in between. */
    void forgetContents() {
        written.replaceAll((path, content) -> OF_ANOTHER);
    }

    /** Another Nimbus may have written some of it: that is to be written again. */
    void forgetChanged() throws Exception {
        for (Map.Entry<String, Content> entry : written.entrySet()) {
            if (znodes.version(entry.getKey()) != entry.getValue().version) {
                entry.setValue(OF_ANOTHER);
            }
        }
    }

    /** The versions of all that is there as this Nimbus has written it. */
    Map<String, Integer> versions() {
        Map<String, Integer> versions = new HashMap<>();
        written.forEach((path, content) -> {
            if (content != OF_ANOTHER) {
                versions.put(path, content.version);
            }
        });
        return versions;
    }

    boolean isOurs(String path) {
        return written.getOrDefault(path, OF_ANOTHER) != OF_ANOTHER;
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
        Content last = written.get(path);
        if (last != null && last != OF_ANOTHER && Arrays.equals(json, last.json)) {
            return 0;
        }
        byte[] packed = Packing.pack(json);
        if (packed.length > LARGEST_BYTES) {
            return packed.length - LARGEST_BYTES;
        }
        written.put(path, OF_ANOTHER);
        written.put(path, new Content(json, znodes.write(path, packed)));
        return 0;
    }

    void delete(String path) throws Exception {
        if (exists(path)) {
            znodes.delete(path);
            written.remove(path);
        }
    }
}
