package nstorm.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.memory.BoltMemory;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;

class BoltStateTest {
    static class Base {
        private long total;
    }

    static final class Counter extends Base {
        private final Map<String, Long> counts = new HashMap<>();
        private List<Object> last = new ArrayList<>();
        private Object lock;
    }

    static final class Basic extends BaseBasicBolt {
        private final Map<String, Long> counts = new HashMap<>();

        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    private static final Set<String> FIELDS = Set.of("total", "counts", "last");

    private static Counter counter(long total) {
        Counter counter = new Counter();
        ((Base) counter).total = total;
        counter.counts.put("a", total);
        counter.last.add(counter.counts);
        return counter;
    }

    @Test
    void everyTaskOfAnExecutorHasItsOwnStateBack() throws IOException {
        byte[] state = Whole.of(Whole.save(List.of(counter(7), counter(8)), FIELDS, null));
        Counter first = new Counter();
        Counter second = new Counter();
        Whole.load(state, List.of(first, second), null);
        assertEquals(Map.of("a", 7L), first.counts);
        assertEquals(7, ((Base) first).total);
        assertEquals(Map.of("a", 8L), second.counts);
        assertEquals(8, ((Base) second).total);
    }

    @Test
    void whatTwoFieldsShareTheyShareAfterwards() throws IOException {
        Counter counter = new Counter();
        Whole.load(Whole.of(Whole.save(List.of(counter(7)), FIELDS, null)), List.of(counter), null);
        assertSame(counter.counts, counter.last.get(0));
    }

    @Test
    void aBasicBoltsStateIsThatOfTheUsersBolt() throws IOException {
        BasicBoltExecutor full = new BasicBoltExecutor(new Basic());
        Basic empty = new Basic();
        ((Basic) BoltMemory.user(full)).counts.put("a", 3L);
        Whole.load(
                Whole.of(Whole.save(List.of(full), Set.of("counts"), null)),
                List.of(new BasicBoltExecutor(empty)),
                null);
        assertEquals(Map.of("a", 3L), empty.counts);
    }

    @Test
    void whatCannotTravelIsSaid() {
        Counter counter = counter(1);
        counter.lock = new Object();
        assertEquals(
                "java.lang.Object",
                assertThrows(IOException.class, () -> Whole.save(List.of(counter), Set.of("lock"), null))
                        .getMessage());
        assertEquals(
                "has no field cuonts",
                assertThrows(IOException.class, () -> Whole.save(List.of(counter), Set.of("cuonts"), null))
                        .getMessage());
    }

    @Test
    void whatIsTooMuchIsRefused() {
        Counter counter = counter(1);
        counter.last.add(new byte[BoltState.SIZE_MAX_BYTES]);
        assertEquals(
                "its state is larger than 100 MB",
                assertThrows(IOException.class, () -> Whole.save(List.of(counter), FIELDS, null))
                        .getMessage());
    }

    /** A few bytes that say they were a long array would take all of the heap. */
    @Test
    void anArrayThatTheBytesCannotHoldIsNotMade() throws IOException {
        Counter counter = counter(1);
        counter.last.add(new long[] {5});
        byte[] state = Whole.of(Whole.save(List.of(counter), FIELDS, null));
        int length = state.length - 12;
        while (ByteBuffer.wrap(state).getInt(length) != 1
                || ByteBuffer.wrap(state).getLong(length + 4) != 5) {
            length--;
        }
        ByteBuffer.wrap(state).putInt(length, 1 << 30);
        assertThrows(IOException.class, () -> Whole.load(state, List.of(new Counter()), null));
    }

    @Test
    void bytesOfSomethingElseChangeNothing() throws IOException {
        byte[] state = Whole.of(Whole.save(List.of(counter(7)), FIELDS, null));
        Counter counter = new Counter();
        assertThrows(IOException.class, () -> Whole.load(new byte[] {1, 2, 3}, List.of(counter), null));
        assertThrows(IOException.class, () -> Whole.load(state, List.of(counter, counter), null));
        assertTrue(counter.counts.isEmpty());
    }
}
