package nstorm.worker.routes;

import java.util.ArrayDeque;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import nstorm.wire.Slot;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Stands before the queue of an executor that moves. What a sender sends directly waits here until what it had sent the old way has come.
 * From each sender as many CLOSES are awaited as OPENS have come; either may come first. A sender without markers, such as a worker of an
 * older version, waits for nothing.
 *
 * <p>Storm's Netty threads and senders of this worker publish into its two queues; its lock is held only while an executor moves.
 */
public final class OrderGate {
    private static final Logger LOG = LoggerFactory.getLogger(OrderGate.class);
    /** For so long a sender's tuples wait while nothing comes the old way: then the worker on that way is dead. */
    static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(5);
    /** From this number of tuples on senders are held back as by a full queue. */
    static final int ROOM = 20_000;

    private static final int LIMIT = 200_000;

    private static final class Sender {
        final ArrayDeque<AddressedTuple> parked = new ArrayDeque<>();
        /** How many more OPENS than CLOSES have come. */
        int awaited;

        int givenUp;

        boolean waits() {
            return awaited > 0 || !parked.isEmpty();
        }
    }

    /** What Storm publishes into as if it were the executor's own queue. */
    private abstract static class Entrance extends JCQueue {
        final JCQueue behind;

        Entrance(String name, JCQueue behind) {
            super(name, name, 2, 0, 1, null, "", "", List.of(), 0, null);
            this.behind = behind;
        }

        @Override
        public boolean isEmptyOverflow() {
            return true;
        }

        @Override
        public boolean tryPublishDirect(Object tuple) {
            return tryPublish(tuple);
        }

        @Override
        public void publish(Object tuple) {
            throw new UnsupportedOperationException("Storm publishes tuples without waiting");
        }
    }

    private final class Direct extends Entrance {
        Direct() {
            super("nstorm-direct", queue);
        }

        @Override
        public boolean tryPublish(Object tuple) {
            return offer((AddressedTuple) tuple, ROOM);
        }

        @Override
        public boolean tryPublishToOverflow(Object tuple) {
            return overflow((AddressedTuple) tuple);
        }

        @Override
        public int getOverflowCount() {
            return queue.getOverflowCount();
        }

        @Override
        public void recordMsgDrop() {
            queue.recordMsgDrop();
        }
    }

    private final class OldWay extends Entrance {
        OldWay() {
            super("nstorm-old-way", queue);
        }

        /** Takes every tuple: Storm keeps no back-pressure for a pseudo task. */
        @Override
        public boolean tryPublish(Object event) {
            AddressedTuple tuple = (AddressedTuple) event;
            if (!tookOldWay(new AddressedTuple(OrderMarker.task(tuple.dest), tuple.tuple))) {
                ungated.accept(tuple);
            }
            return true;
        }
    }

    /** The last move that it serves; of the reconciler's thread. */
    String move;

    private final Slot me;
    final JCQueue queue;
    /** For what comes directly. */
    final JCQueue direct;
    /** For what comes under a pseudo task. */
    final JCQueue oldWay;
    /** Takes what comes under a pseudo task once there is no gate any more. */
    private final Consumer<AddressedTuple> ungated;

    private final Map<Integer, Sender> senders = new HashMap<>();
    /** CLOSES in the queue, which its executor has to take out again. */
    private final AtomicInteger markers = new AtomicInteger();

    /** What has come the old way while it was closed. It goes in first, as the queue has room. */
    private final ArrayDeque<AddressedTuple> early = new ArrayDeque<>();
    /** Whether the executor may take nothing yet: what its old copy has emitted has not come to all that it was for. */
    private boolean closed;

    private int probes;
    private int probesAwaited = Integer.MAX_VALUE;
    /** Queues of this worker that the old copy's tuples may wait in, where those of the new one would overtake them. */
    private final Set<JCQueue> overflowing = new HashSet<>();

    private int parked;
    /** Nobody looks after it any more, while a thread that found it before may still publish into it: then nothing waits here. */
    private boolean gone;
    /** Its executor lives on, and would give a marker to its bolt. */
    private boolean unguarded;

    private long heardNanos = System.nanoTime();
    /** The same for probes: what goes on coming the old way does not show that one is still on its way. */
    private long probedNanos = System.nanoTime();

    OrderGate(String move, Slot me, JCQueue queue, boolean closed, Consumer<AddressedTuple> ungated) {
        this.move = move;
        this.me = me;
        this.ungated = ungated;
        this.closed = closed;
        this.queue = queue;
        direct = new Direct();
        oldWay = new OldWay();
    }

    /** The executor's own queue where this is one of a gate's; else the queue itself. */
    static JCQueue behind(JCQueue queue) {
        return queue instanceof Entrance entrance ? entrance.behind : queue;
    }

    /** From now on tuples of this sender come directly, and wait until its CLOSES has come; false if nothing may wait here any more. */
    synchronized boolean expect(int source) {
        if (gone) {
            return false;
        }
        senders.computeIfAbsent(source, s -> new Sender()).awaited++;
        heardNanos = System.nanoTime();
        return true;
    }

    /** Takes a tuple that comes directly; false if it is to be offered again. */
    synchronized boolean offer(AddressedTuple tuple, int room) {
        return waits(tuple) ? parked < room && park(tuple) : admit(tuple);
    }

    private boolean waits(AddressedTuple tuple) {
        Sender sender = senders.get(tuple.tuple.getSourceTask());
        return holdsBack() || sender != null && sender.waits();
    }

    private boolean holdsBack() {
        return closed || !early.isEmpty();
    }

    /** Takes what a Netty thread could not leave otherwise. */
    private synchronized boolean overflow(AddressedTuple tuple) {
        return waits(tuple) ? parked < LIMIT && park(tuple) : queue.tryPublishToOverflow(tuple);
    }

    private boolean park(AddressedTuple tuple) {
        parked++;
        return senders.computeIfAbsent(tuple.tuple.getSourceTask(), s -> new Sender())
                .parked
                .add(tuple);
    }

    /** Takes what has come the old way, or a marker; false if there is no room. */
    public synchronized boolean forwarded(AddressedTuple tuple) {
        heardNanos = System.nanoTime();
        if (!OrderMarker.is(tuple.tuple)) {
            return holdsBack() ? parked < LIMIT && delay(tuple) : enter(queue, tuple);
        }
        Slot to = OrderMarker.closedFor(tuple.tuple);
        int source = tuple.tuple.getSourceTask();
        if (to == null) {
            expect(source);
        } else if (to.equals(me)) {
            close(source);
        } else {
            return leaves(tuple);
        }
        return true;
    }

    private boolean delay(AddressedTuple tuple) {
        parked++;
        return early.add(tuple);
    }

    /** Puts a tuple behind all that other workers have sent; false if there is no room, as where Storm's overflow has a limit. */
    static boolean enter(JCQueue queue, AddressedTuple tuple) {
        return queue.isEmptyOverflow() && queue.tryPublishDirect(tuple) || queue.tryPublishToOverflow(tuple);
    }

    /**
     * One more of the {@code workers} has got all that the old copy has emitted.
     *
     * @param consumers the queues here that it goes to: what Netty brings waits in their overflow, and what this worker's own threads
     *     send does not
     */
    synchronized void probed(int workers, Collection<JCQueue> consumers) {
        probes++;
        probedNanos = System.nanoTime();
        probesAwaited = workers;
        overflowing.addAll(consumers);
        openIfDue();
    }

    private void openIfDue() {
        overflowing.removeIf(JCQueue::isEmptyOverflow);
        if (closed && probes >= probesAwaited && overflowing.isEmpty()) {
            open();
        }
    }

    /** The move is undone: what its copy has goes back, and nobody waits for what the old one has emitted. */
    synchronized void undone() {
        if (closed) {
            open();
        }
    }

    private void open() {
        closed = false;
        letEarlyIn();
        senders.values().forEach(this::release);
    }

    private void letEarlyIn() {
        while (!closed && !early.isEmpty() && enter(queue, early.peek())) {
            early.poll();
            parked--;
        }
    }

    /** A CLOSES for another worker goes behind all that its sender has sent here. */
    private boolean leaves(AddressedTuple closes) {
        if (waits(closes)) {
            return park(closes);
        }
        if (admit(closes)) {
            return true;
        }
        boolean entered = queue.tryPublishToOverflow(closes);
        if (entered) {
            markers.incrementAndGet();
        }
        return entered;
    }

    private void close(int source) {
        Sender sender = senders.computeIfAbsent(source, s -> new Sender());
        if (sender.givenUp > 0) {
            sender.givenUp--;
        } else {
            sender.awaited--;
            release(sender);
        }
    }

    /** Never into the overflow, where what its sender sends next would overtake it. */
    private void release(Sender sender) {
        while (!holdsBack() && sender.awaited <= 0 && !sender.parked.isEmpty() && admit(sender.parked.peek())) {
            sender.parked.poll();
            parked--;
        }
    }

    private boolean admit(AddressedTuple tuple) {
        if (!queue.tryFlush() || !queue.isEmptyOverflow() || !queue.tryPublishDirect(tuple)) {
            return false;
        }
        if (OrderMarker.is(tuple.tuple)) {
            markers.incrementAndGet();
        }
        return true;
    }

    /**
     * Puts the CLOSES of a sender of this worker behind all that its thread has sent here. False while some of that waits, or the queue is
     * full.
     */
    synchronized boolean leave(AddressedTuple closes) {
        if (unguarded || waits(closes) || !queue.tryPublishDirect(closes)) {
            return false;
        }
        markers.incrementAndGet();
        return true;
    }

    /** The executor has come to a CLOSES in its queue. */
    public void taken() {
        markers.decrementAndGet();
    }

    /**
     * Lets in what may come in by now.
     *
     * @param still whether the executor takes nothing anyway: then nobody is waited for for too long
     * @return how many tuples come in without what their sender had sent before, as nobody knows any more when that comes
     */
    synchronized int tick(long nowNanos, boolean still) {
        int unordered = 0;
        openIfDue();
        letEarlyIn();
        if (still || !closed || parked == 0 || probes >= probesAwaited) {
            probedNanos = nowNanos;
        } else if (nowNanos - probedNanos > PATIENCE_NANOS) {
            unordered = giveUpProbes();
        }
        boolean awaits = closed && parked > 0;
        for (Sender sender : senders.values()) {
            release(sender);
            awaits |= sender.awaited > 0;
        }
        if (still || !awaits) {
            heardNanos = nowNanos;
        } else if (nowNanos - heardNanos > PATIENCE_NANOS) {
            unordered += giveUp();
        }
        return unordered;
    }

    private int giveUpProbes() {
        LOG.warn("order_given_up move={} awaits_probes={} probes={} awaited={}", move, closed, probes, awaited());
        int unordered = early.size();
        open();
        return unordered;
    }

    /** Waits for nobody any more. */
    synchronized int giveUp() {
        int unordered = closed ? early.size() : 0;
        LOG.warn("order_given_up move={} awaits_probes={} probes={} awaited={}", move, closed, probes, awaited());
        if (closed) {
            open();
        }
        for (Sender sender : senders.values()) {
            if (sender.awaited > 0) {
                sender.givenUp += sender.awaited;
                sender.awaited = 0;
                unordered += sender.parked.size();
                release(sender);
            }
        }
        return unordered;
    }

    /** Of each sender: how many of its markers are awaited, and how many tuples wait for that. */
    private String awaited() {
        return senders.entrySet().stream()
                .filter(one -> one.getValue().awaited > 0)
                .map(one -> one.getKey() + ":" + one.getValue().awaited + "/"
                        + one.getValue().parked.size())
                .toList()
                .toString();
    }

    /** Tuples that wait here. */
    synchronized int parked() {
        return parked;
    }

    /** Whether it makes no difference any more. */
    synchronized boolean idle(boolean alive) {
        return parked == 0
                && queue.isEmptyOverflow()
                && (!alive || markers.get() == 0)
                && senders.values().stream().allMatch(sender -> sender.awaited <= 0);
    }

    /** Before it is taken away: false if something waits here. */
    synchronized boolean retire(boolean alive) {
        if (!idle(alive)) {
            return false;
        }
        closed = false;
        gone = true;
        unguarded = alive;
        return true;
    }

    /**
     * Its executor has ended, and another gate takes its place: all that waits here goes into the queue, as that has room.
     *
     * @return as {@link #tick}
     */
    synchronized int end() {
        int unordered = giveUp();
        gone = true;
        drained();
        return unordered;
    }

    /** Of one that has ended: whether all that waited here is in the queue by now, from where it is forwarded. */
    synchronized boolean drained() {
        letEarlyIn();
        for (Sender sender : senders.values()) {
            while (early.isEmpty() && !sender.parked.isEmpty() && enter(queue, sender.parked.peek())) {
                sender.parked.poll();
                parked--;
            }
        }
        return parked == 0;
    }

    /** False once there is no gate any more. */
    private synchronized boolean tookOldWay(AddressedTuple tuple) {
        if (!gone && !forwarded(tuple)) {
            queue.recordMsgDrop();
        }
        return !gone;
    }
}
