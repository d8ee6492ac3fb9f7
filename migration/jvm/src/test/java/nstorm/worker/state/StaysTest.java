package nstorm.worker.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.memory.Declared;
import nstorm.proof.Memory;
import nstorm.state.BoltState;
import nstorm.wire.Way;
import nstorm.worker.OneWorker;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;

class StaysTest {
    public static final class Counter extends BaseRichBolt {
        private static final long serialVersionUID = 1L;
        private final Map<String, Long> counts = new HashMap<>();

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {}

        @Override
        public void execute(Tuple tuple) {
            counts.merge(tuple.getString(0), 1L, Long::sum);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    private static Stays read() throws Exception {
        Counter bolt = new Counter();
        Memory memory = new Memory("count", List.of(bolt), List.of(), Declared.of(Map.of()));
        memory.prepared();
        Stays stays = new Stays("count", false, bolt, Declared.of(Map.of()), () -> memory);
        stays.reason(true);
        OneWorker.await("its code is read", () -> stays.state() != null);
        return stays;
    }

    @Test
    void whoTravelsSaysHowLargeItIs() throws Exception {
        Stays stays = read();
        String reason = "keeps something in its field counts, which travels with it";
        assertEquals(reason, stays.reason(true));
        assertTrue(stays.aboutBytes() < 0, "not known yet");
        for (String size : new String[] {"0.3 ", "1.4, some 1 MB", "42, some 42 MB", "117, some 120 MB"}) {
            double mb = Double.parseDouble(size.split("[ ,]")[0]);
            stays.sized((long) (mb * (1 << 20)));
            assertEquals(reason + (mb < 0.5 ? "" : size.substring(size.indexOf(','))), stays.reason(true));
        }
        assertEquals(Set.of("counts"), stays.state());
        assertEquals(Way.CARRY, stays.way());
    }

    @Test
    void whatIsFarTooLargeStays() throws Exception {
        Stays stays = read();
        stays.sized(2L * BoltState.SIZE_MAX_BYTES);
        assertNotNull(stays.state());
        stays.sized(2L * BoltState.SIZE_MAX_BYTES + 1);
        assertNull(stays.state());
        long bound = BoltState.SIZE_MAX_BYTES >> 20;
        assertEquals(
                "its state is some " + 2 * bound + " MB, and no more than " + bound + " MB travel", stays.reason(true));
        assertEquals(Way.LIVE, stays.way());
        // It is looked at further on, and may move once it is smaller.
        assertEquals(Set.of("counts"), stays.sizedState());
        stays.sized(1000);
        assertEquals(Set.of("counts"), stays.state());
        assertEquals(Way.CARRY, stays.way());
        assertEquals(1000, stays.aboutBytes());
        stays.failed("its state could not travel");
        assertTrue(stays.aboutBytes() < 0, "nothing travels");
    }
}
