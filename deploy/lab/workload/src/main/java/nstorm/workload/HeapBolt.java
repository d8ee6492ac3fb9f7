package nstorm.workload;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.storm.task.TopologyContext;

/** Counts words, and keeps a piece of heap for each until it holds as much as it may. */
final class HeapBolt extends CountBolt {
    static final String MB = "workload.heap.mb";
    static final String CHUNK_BYTES = "workload.heap.chunk.bytes";
    private final List<byte[]> held = new ArrayList<>();
    private int chunkBytes;
    private int chunksMax;

    /** The counter of what the configuration calls the kind of heap. */
    static CountBolt of(Map<String, Object> conf) {
        return "map".equals(conf.get("workload.heap.kind")) ? new MapBolt() : new HeapBolt();
    }

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        super.open(conf, context);
        chunkBytes = WordCount.integer(conf, CHUNK_BYTES, 65_536);
        chunksMax = (int) (WordCount.number(conf, MB, 32) * (1 << 20) / chunkBytes);
    }

    @Override
    void counted(String word) {
        if (held.size() < chunksMax) {
            held.add(new byte[chunkBytes]);
        }
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("counts", super.kept().get("counts"), "held", held.size());
    }
}
