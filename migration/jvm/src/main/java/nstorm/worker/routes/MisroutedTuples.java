package nstorm.worker.routes;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import nstorm.hook.Faults;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.ITupleDeserializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tuples that reached a worker which does not own their task, or not yet. They are forwarded to the owner, parked until
 * it is ready, and never delivered twice.
 *
 * <p>One thread, off Storm's own: Netty and executor threads only enqueue. It also works off the queues
 * of stopped executors until no producer can still hold them ({@code topology.message.timeout.secs}).
 */
public final class MisroutedTuples implements Runnable {
    /** Where one tuple can go right now. */
    public interface Delivery {
        /** True if delivered; false to try again later; must not block. What it throws costs this tuple alone. */
        boolean deliver(AddressedTuple tuple);

        /** Called after a round that delivered something, to flush batches of this thread; false to be called again. */
        boolean flush();
    }

    /** The queue of an executor that has ended. */
    private static final class Retired {
        final JCQueue queue;
        final Runnable onGone;
        long untilNanos;
        /** Run when its time is over; null once it was. */
        Runnable onEnd;

        Retired(JCQueue queue, long untilNanos, Runnable onEnd, Runnable onGone) {
            this.queue = queue;
            this.untilNanos = untilNanos;
            this.onEnd = onEnd;
            this.onGone = onGone;
        }

        boolean isOver(long nowNanos) {
            return nowNanos - untilNanos > 0 && queue.size() == 0;
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(MisroutedTuples.class);
    private static final int LIMIT = 200_000;
    /** For so long a thread that has found a queue may take to publish into it. */
    private static final long LATE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long SLOW_RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** Tries each millisecond until it is slow to retry: a move's owner is ready by then, a missing one may take hours. */
    private static final int FAST_RETRIES = 500;

    public final AtomicLong forwarded = new AtomicLong();
    public final AtomicLong dropped = new AtomicLong();
    private final AtomicInteger waiting = new AtomicInteger();
    /** Tuples, and retired queues behind what their executors have offered. */
    private final Queue<Object> inbox = new ConcurrentLinkedQueue<>();
    /** What was taken out of the inbox and is to be sorted; like all below of the one thread. */
    private final Queue<Object> taken = new ArrayDeque<>();

    private final List<Retired> retiring = new ArrayList<>();
    private final Map<Integer, ArrayDeque<AddressedTuple>> byTask = new HashMap<>();
    private final AtomicBoolean reportedDrop = new AtomicBoolean();
    private final Delivery delivery;
    private final Thread thread;

    /** Whether what was delivered may still be in a batch of this thread. */
    private volatile boolean unflushed;

    /** Rounds in which tuples waited and none was delivered, since the last that was. */
    private int fruitless;

    public MisroutedTuples(Delivery delivery) {
        this.delivery = delivery;
        thread = new Thread(this, "nstorm-misrouted");
        thread.setDaemon(true);
        thread.start();
    }

    /** Tuples waiting here; one more while delivered ones wait in a batch of this thread. */
    public int parked() {
        return waiting.get() + (unflushed ? 1 : 0);
    }

    /** Whether what can wait may be offered: half of the places are for what cannot. */
    boolean hasRoom() {
        return waiting.get() < LIMIT / 2;
    }

    /** Takes a tuple over; beyond the limit it is dropped and counted, as Storm's overflow does. */
    public void offer(AddressedTuple tuple) {
        if (waiting.incrementAndGet() > LIMIT) {
            waiting.decrementAndGet();
            dropped.incrementAndGet();
            return;
        }
        inbox.add(tuple);
        LockSupport.unpark(thread);
    }

    /** Takes messages over that Storm was about to send; one that cannot be read is dropped and counted. */
    void takeBack(List<TaskMessage> messages, ITupleDeserializer reader) {
        for (TaskMessage message : messages) {
            try {
                offer(new AddressedTuple(message.task(), reader.deserialize(message.message())));
            } catch (Throwable e) {
                drop("reading", message.task(), e);
            }
        }
        messages.clear();
    }

    /**
     * Forwards what still arrives in the queue of a dead executor, as there is room.
     *
     * @param onEnd run after that time, so that no more threads find the queue
     * @param onGone run once none holds it any more
     */
    public void retire(JCQueue queue, long forSecs, Runnable onEnd, Runnable onGone) {
        inbox.add(new Retired(queue, System.nanoTime() + TimeUnit.SECONDS.toNanos(forSecs), onEnd, onGone));
        LockSupport.unpark(thread);
    }

    @Override
    public void run() {
        while (true) {
            try {
                boolean progress = round();
                // A serialiser of the user's may have set it, and then no pause would be one.
                Thread.interrupted();
                fruitless = progress || byTask.isEmpty() ? 0 : fruitless + 1;
                if (!progress) {
                    LockSupport.parkNanos(pauseNanos());
                }
            } catch (RuntimeException | Error e) {
                LOG.error("forwarding misrouted tuples failed; going on", e);
                LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(1));
            }
        }
    }

    private long pauseNanos() {
        if (unflushed || !byTask.isEmpty()) {
            return fruitless < FAST_RETRIES ? RETRY_NANOS : SLOW_RETRY_NANOS;
        }
        return retiring.isEmpty() ? Long.MAX_VALUE : SLOW_RETRY_NANOS;
    }

    private boolean round() {
        for (Object offered = inbox.poll(); offered != null; offered = inbox.poll()) {
            taken.add(offered);
        }
        // First, and after the inbox was emptied: a thread that finds the queue no more offers what it has behind what
        // it had put there.
        drainRetired();
        for (Object offered = taken.poll(); offered != null; offered = taken.poll()) {
            if (offered instanceof Retired retired) {
                retiring.add(retired);
                drain(retired.queue);
            } else {
                sort((AddressedTuple) offered);
            }
        }
        boolean progress = false;
        for (Iterator<ArrayDeque<AddressedTuple>> queues = byTask.values().iterator(); queues.hasNext(); ) {
            ArrayDeque<AddressedTuple> queue = queues.next();
            while (!queue.isEmpty() && leaves(queue.peek())) {
                queue.poll();
                progress = true;
                unflushed = true;
                waiting.decrementAndGet();
            }
            if (queue.isEmpty()) {
                queues.remove();
            }
        }
        if (unflushed) {
            unflushed = !delivery.flush();
        }
        return progress;
    }

    /**
     * True if the tuple is delivered, or can never be: one that cannot be serialised must hold up no other. A serialiser of the user's may
     * throw anything.
     */
    private boolean leaves(AddressedTuple tuple) {
        try {
            boolean delivered = delivery.deliver(tuple);
            if (delivered) {
                forwarded.incrementAndGet();
            }
            return delivered;
        } catch (Throwable e) {
            drop("forwarding", tuple.dest, e);
            return true;
        }
    }

    private void drop(String during, int task, Throwable e) {
        dropped.incrementAndGet();
        if (reportedDrop.compareAndSet(false, true)) {
            Faults.contained(during + " a tuple for task " + task + ", dropped like all that fail so", e);
        }
    }

    private void sort(AddressedTuple tuple) {
        byTask.computeIfAbsent(tuple.dest, t -> new ArrayDeque<>()).add(tuple);
    }

    private void drainRetired() {
        for (Iterator<Retired> queues = retiring.iterator(); queues.hasNext(); ) {
            Retired retired = queues.next();
            drain(retired.queue);
            long nowNanos = System.nanoTime();
            if (retired.isOver(nowNanos) && retired.onEnd != null) {
                Runnable onEnd = retired.onEnd;
                retired.onEnd = null;
                retired.untilNanos = nowNanos + LATE_NANOS;
                onEnd.run();
            } else if (retired.isOver(nowNanos)) {
                queues.remove();
                retired.onGone.run();
            }
        }
    }

    private void drain(JCQueue queue) {
        queue.consume(
                new JCQueue.Consumer() {
                    @Override
                    public void accept(Object event) {
                        AddressedTuple tuple = (AddressedTuple) event;
                        if (tuple.dest != AddressedTuple.BROADCAST_DEST) {
                            waiting.incrementAndGet();
                            sort(tuple);
                        }
                    }

                    @Override
                    public void flush() {}
                },
                this::hasRoom);
    }
}
