package nstorm.nimbus;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;
import nstorm.wire.report.Publication;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What was published of each topology: it is written anew when it has changed, and as a sign of life. */
final class PublicationWriter {

    static final String PATH = "/nstorm/topologies";

    private static final Logger LOG = LoggerFactory.getLogger(PublicationWriter.class);
    /** Below ZooKeeper's own limit: it ends the session of a client that sends more than jute.maxbuffer, 1 MiB. */
    private static final int LARGEST_BYTES = 1_000_000;
    private static final long SIGN_OF_LIFE_NANOS = TimeUnit.MILLISECONDS.toNanos(4_500);

    private record Written(byte[] timeless, long nanos) {
    }

    private final Znodes znodes;
    private final Map<String, Written> written = new HashMap<>();
    private final Set<String> tooLarge = new HashSet<>();

    PublicationWriter(Znodes znodes) {
        this.znodes = znodes;
    }

    /**
     * Publishes a topology if it is time.
     *
     * @param at the publication as of a time in Unix milliseconds
     */
    void put(LongFunction<Publication> at) throws Exception {
        Publication timeless = at.apply(0);
        String topology = timeless.topology();
        byte[] content = timeless.toJson();
        Written last = written.get(topology);
        boolean same = last != null && Arrays.equals(content, last.timeless);
        if (same && System.nanoTime() - last.nanos <= SIGN_OF_LIFE_NANOS) {
            return;
        }
        byte[] dated = at.apply(System.currentTimeMillis()).toJson();
        if (dated.length > LARGEST_BYTES) {
            refuse(topology, dated.length);
            return;
        }
        znodes.write(PATH + "/" + topology, dated);
        written.put(topology, new Written(content, System.nanoTime()));
        tooLarge.remove(topology);
    }

    void delete(String topology) throws Exception {
        znodes.delete(PATH + "/" + topology);
        written.remove(topology);
        tooLarge.remove(topology);
    }

    /** Nothing is published instead: what is left out (executors, edges) would look as if Storm did not have it. */
    private void refuse(String topology, int bytes) throws Exception {
        if (!tooLarge.contains(topology)) {
            delete(topology);
            tooLarge.add(topology);
            LOG.error("nstorm: topology {} is not published, so nstorm moves none of its executors: its publication has "
                + "{} bytes, and ZooKeeper does not take more than {}", topology, bytes, LARGEST_BYTES);
        }
    }
}
