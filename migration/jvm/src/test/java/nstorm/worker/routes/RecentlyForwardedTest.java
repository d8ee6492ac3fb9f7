package nstorm.worker.routes;

import static nstorm.worker.plan.Moves.EXECUTOR;
import static nstorm.worker.plan.Moves.FROM;
import static nstorm.worker.plan.Moves.TO;
import static nstorm.worker.plan.Moves.assigned;
import static nstorm.worker.plan.Moves.plan;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import nstorm.wire.Phase;
import nstorm.wire.Slot;
import nstorm.worker.plan.Desired;
import org.apache.storm.task.GeneralTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.MessageId;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.junit.jupiter.api.Test;

class RecentlyForwardedTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final GeneralTopologyContext CONTEXT = new GeneralTopologyContext(
            null, Map.of(), Map.of(1, "split"), Map.of(), Map.of("split", Map.of("default", new Fields("word"))), "t");

    /** Near the end of what a long holds: the clock's zero is anywhere. */
    private static final long START_NANOS = Long.MAX_VALUE - SECOND;

    private long nowNanos = START_NANOS;

    private static AddressedTuple tuple(int task, MessageId id) {
        return new AddressedTuple(task, new TupleImpl(CONTEXT, new Values("the"), "split", 1, "default", id));
    }

    private static AddressedTuple anchored(long edge) {
        return tuple(EXECUTOR.start(), MessageId.makeRootId(5, edge));
    }

    /** One end of a move, as far as a tuple can tell: where its plan says that the owner is. */
    private record End(Slot me, Slot owner, RecentlyForwarded forwarded) {
        static End of(Slot me, Phase phase) {
            Slot owner =
                    Desired.owner(plan(phase).entries().get(0), assigned(FROM).get(EXECUTOR));
            return new End(me, owner, new RecentlyForwarded(START_NANOS));
        }
    }

    /** How often a tuple goes from worker to worker within a second, beginning at the source; at most 100 times. */
    private int hops(End from, End to, AddressedTuple tuple) {
        Map<Slot, End> ends = new HashMap<>(Map.of(FROM, from, TO, to));
        End at = from;
        int hops = 0;
        while (hops < 100 && !at.owner().equals(at.me()) && !at.forwarded().contains(tuple, nowNanos)) {
            at.forwarded().add(tuple);
            at = ends.get(at.owner());
            hops++;
            nowNanos += SECOND / 200;
        }
        return hops;
    }

    @Test
    void inNoMixOfPhasesDoesATupleLeaveAWorkerTwice() {
        int circles = 0;
        for (Phase atSource : Phase.values()) {
            for (Phase atTarget : Phase.values()) {
                int anchored = hops(End.of(FROM, atSource), End.of(TO, atTarget), anchored(7));
                assertTrue(anchored <= 2, anchored + " hops with " + atSource + " at the source, " + atTarget);
                int unanchored = hops(
                        End.of(FROM, atSource),
                        End.of(TO, atTarget),
                        tuple(EXECUTOR.start(), MessageId.makeUnanchored()));
                circles += unanchored == 100 ? 1 : 0;
            }
        }
        assertEquals(
                6 * 5,
                circles,
                "SWITCH, DRAIN, CARRY, RECALL, STOP or SETTLE at the source; OPEN, PREPARE, QUIET, UNDO or a phase that "
                        + "it has never understood at the target");
    }

    @Test
    void itGoesAgainOnceThePlanAdvances() {
        End from = End.of(FROM, Phase.SWITCH);
        End to = End.of(TO, Phase.UNDO);
        assertEquals(2, hops(from, to, anchored(7)));
        assertEquals(0, hops(from, to, anchored(7)));
        from.forwarded().planAdvanced();
        assertEquals(1, hops(from, to, anchored(7)), "the target's plan is as it was");
    }

    @Test
    void itGoesAgainAfterTwoSecondsThoughNoPlanCame() {
        RecentlyForwarded forwarded = new RecentlyForwarded(START_NANOS);
        assertFalse(forwarded.contains(anchored(7), nowNanos));
        forwarded.add(anchored(7));
        assertTrue(forwarded.contains(anchored(7), nowNanos + SECOND));
        assertFalse(forwarded.contains(anchored(7), nowNanos + 2 * SECOND + 2));
    }

    @Test
    void anotherTupleOfTheSameContentIsNotHeld() {
        RecentlyForwarded forwarded = new RecentlyForwarded(START_NANOS);
        for (MessageId id : List.of(MessageId.makeUnanchored(), MessageId.makeRootId(5, 7))) {
            forwarded.add(tuple(EXECUTOR.start(), id));
        }
        assertTrue(forwarded.contains(anchored(7), nowNanos));
        assertFalse(forwarded.contains(anchored(8), nowNanos));
        assertFalse(forwarded.contains(tuple(EXECUTOR.start(), MessageId.makeUnanchored()), nowNanos));
        assertFalse(forwarded.contains(tuple(EXECUTOR.end() + 1, MessageId.makeRootId(5, 7)), nowNanos));
    }
}
