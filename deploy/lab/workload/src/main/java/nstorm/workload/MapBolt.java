package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.task.TopologyContext;

/** Counts words, and keeps a map that fills as fast as the heap of a HeapBolt; each word changes one entry of it. */
final class MapBolt extends CountBolt {
    /** This number of them takes a MB in an object stream. */
    private static final int ENTRIES_PER_MB = 38_000;
    /** Of smaller values Java keeps one object for all, and an object stream writes it once. */
    private static final long FIRST = 1000;

    private static final long GOLDEN = 0x9E3779B97F4A7C15L;
    private final Map<String, Long> held = new HashMap<>();
    private int entriesMax;
    private int entriesAWord;
    private long words;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        super.open(conf, context);
        entriesMax = (int) (WordCount.number(conf, HeapBolt.MB, 32) * ENTRIES_PER_MB);
        entriesAWord = (int) ((long) WordCount.integer(conf, HeapBolt.CHUNK_BYTES, 65_536) * ENTRIES_PER_MB >> 20);
    }

    @Override
    void counted(String word) {
        long wanted = Math.min(entriesMax, (long) held.size() + entriesAWord);
        for (int i = held.size(); i < wanted; i++) {
            held.put("word-" + i, FIRST);
        }
        words++;
        held.merge("word-" + (words * GOLDEN >>> 33) % held.size(), 1L, Long::sum);
    }

    /** What the words have added is summed up here, so that an entry which has lost some is seen. */
    @Override
    Map<String, ?> kept() {
        long added = 0;
        for (long value : held.values()) {
            added += value - FIRST;
        }
        return Map.of("counts", super.kept().get("counts"), "held", held.size(), "added", added);
    }
}
