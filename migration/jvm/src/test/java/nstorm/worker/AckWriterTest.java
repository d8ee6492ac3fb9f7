package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import nstorm.wire.Slot;
import nstorm.wire.report.EntryAck;
import nstorm.wire.report.EntryState;
import nstorm.wire.report.WorkerAck;
import org.junit.jupiter.api.Test;

class AckWriterTest {
    private static final Slot ME = new Slot("s1", 6700);
    private final AckWriter writer = new AckWriter();

    private static WorkerAck ack(EntryState state, long forwarded) {
        return new WorkerAck(
                "wc-1",
                ME,
                1,
                "1-1",
                "0.2.0",
                0,
                "c",
                1,
                1,
                List.of(new EntryAck("m1", state, ME, false)),
                List.of(),
                List.of(),
                List.of(),
                new WorkerAck.Counters(forwarded, 0, 0, 0, 0),
                null,
                null,
                "2.8.3",
                null,
                null);
    }

    @Test
    void whatHasChangedIsWrittenAtOnce() {
        assertTrue(writer.due(ack(EntryState.NONE, 0), 0));
        assertFalse(writer.due(ack(EntryState.NONE, 0), 1));
        assertTrue(writer.due(ack(EntryState.READY, 0), 2));
        assertTrue(writer.due(ack(EntryState.ROUTED, 5), 3), "its counters have changed besides");
    }

    @Test
    void countersAloneAreWrittenTwiceASecond() {
        assertTrue(writer.due(ack(EntryState.NONE, 0), 0));
        assertFalse(writer.due(ack(EntryState.NONE, 1), AckWriter.COUNTERS_NANOS - 1));
        assertTrue(writer.due(ack(EntryState.NONE, 2), AckWriter.COUNTERS_NANOS));
        assertFalse(writer.due(ack(EntryState.NONE, 3), AckWriter.COUNTERS_NANOS + 1));
    }

    @Test
    void aSignOfLifeIsWrittenThoughNothingHasChanged() {
        assertTrue(writer.due(ack(EntryState.NONE, 0), 0));
        assertFalse(writer.due(ack(EntryState.NONE, 0), AckWriter.SIGN_OF_LIFE_NANOS - 1));
        assertTrue(writer.due(ack(EntryState.NONE, 0), AckWriter.SIGN_OF_LIFE_NANOS));
    }
}
