package nstorm.worker.routes;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiPredicate;
import java.util.function.IntFunction;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;

/**
 * What senders of this worker find as the queue of a task whose tuples have just begun to go elsewhere, or to come here. Each thread
 * sends its markers with its first tuple: whatever it had sent before has gone the old way by then.
 */
final class LocalTurn extends JCQueue {
    /** Which of its markers a thread has sent. */
    private static final class Progress {
        List<Integer> sources;
        int closed;
        int opened;

        boolean done() {
            return sources != null && opened == sources.size();
        }
    }

    private final OrderGate gate;
    private final boolean arrives;
    private final IntFunction<List<Integer>> sourcesOfThread;
    private final BiPredicate<Integer, Boolean> send;
    private final Map<Thread, Progress> threads = new ConcurrentHashMap<>();

    /**
     * A turn of the way to one task.
     *
     * @param arrives whether its tuples are delivered here from now on, else they leave this worker
     * @param sourcesOfThread the tasks of the executor that a task belongs to
     * @param send sends the CLOSES of a task (true) or its OPENS (false); false if there is no room now
     */
    LocalTurn(
            OrderGate gate,
            boolean arrives,
            IntFunction<List<Integer>> sourcesOfThread,
            BiPredicate<Integer, Boolean> send) {
        super("nstorm-turn", "nstorm-turn", 2, 0, 1, null, "", "", List.of(), 0, null);
        this.gate = gate;
        this.arrives = arrives;
        this.sourcesOfThread = sourcesOfThread;
        this.send = send;
    }

    /** The queue that delivers here; null if there is none any more. */
    JCQueue delivering() {
        return arrives ? gate.direct : null;
    }

    JCQueue real() {
        return gate.queue;
    }

    /** What the calling thread is to publish to; null if that is another worker. */
    JCQueue ofThread() {
        if (arrives) {
            return this;
        }
        Progress progress = threads.get(Thread.currentThread());
        return progress != null && progress.done() ? null : this;
    }

    /** Storm keeps a tuple that is not taken, and tries again. */
    @Override
    public boolean tryPublish(Object event) {
        AddressedTuple tuple = (AddressedTuple) event;
        Progress progress = threads.computeIfAbsent(Thread.currentThread(), t -> new Progress());
        return turned(progress, tuple.tuple.getSourceTask()) && arrives && gate.offer(tuple, OrderGate.ROOM);
    }

    private boolean turned(Progress progress, int source) {
        if (progress.done()) {
            return true;
        }
        if (progress.sources == null) {
            progress.sources = sourcesOfThread.apply(source);
        }
        while (progress.closed < progress.sources.size() && send.test(progress.sources.get(progress.closed), true)) {
            progress.closed++;
        }
        if (progress.closed < progress.sources.size()) {
            return false;
        }
        while (progress.opened < progress.sources.size() && send.test(progress.sources.get(progress.opened), false)) {
            progress.opened++;
        }
        return progress.done();
    }

    @Override
    public boolean tryPublishDirect(Object tuple) {
        return tryPublish(tuple);
    }

    /** What the calling thread still has in a batch of the queue. */
    @Override
    public void flush() throws InterruptedException {
        gate.queue.flush();
    }

    @Override
    public boolean tryFlush() {
        return gate.queue.tryFlush();
    }
}
