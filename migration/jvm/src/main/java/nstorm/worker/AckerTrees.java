package nstorm.worker;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.function.BiConsumer;
import org.apache.storm.daemon.Acker;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.MessageId;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.RotatingMap;

/**
 * Hands the open trees of an acker that leaves to its successor, as messages that every acker takes anyway: an acker
 * merges what it hears of a tree by XOR, in any order. All methods are for the acker's own thread.
 */
final class AckerTrees {
    private final Executor executor;
    private final HandOver handOver;
    private final Queue<AddressedTuple> leaving = new ArrayDeque<>();

    AckerTrees(Executor executor, HandOver handOver) {
        this.executor = executor;
        this.handOver = handOver;
    }

    /**
     * Takes what the acker keeps. To be called once all that it is still sent goes to the successor: what it took
     * later would be left behind.
     */
    void take() {
        try {
            for (Task task : StormFields.<ArrayList<Task>>get(StormFields.ID_TO_TASK, executor)) {
                if (task != null) {
                    take((Acker) task.getTaskObject(), (stream, message) -> leave(task.getTaskId(), stream, message));
                }
            }
        } catch (RuntimeException | LinkageError e) {
            // Trees that stay behind time out, as when the acker's worker dies.
            Faults.report("handing on the trees of acker " + executor.getExecutorId(), e);
        }
    }

    /** Empties an acker; {@code to} gets the messages, each a stream and its values, from which another makes the same trees. */
    static void take(Acker acker, BiConsumer<String, Values> to) {
        RotatingMap<Object, Object> pending = StormFields.get(StormFields.ACKER_PENDING, acker);
        for (int i = 0; i < Acker.TIMEOUT_BUCKET_NUM && pending.size() > 0; i++) {
            pending.rotate().forEach((id, tree) -> tell(id, tree, to));
        }
    }

    private static void tell(Object id, Object tree, BiConsumer<String, Values> to) {
        long xor = StormFields.<Long>get(StormFields.TREE_XOR, tree);
        int spoutTask = StormFields.<Integer>get(StormFields.TREE_SPOUT, tree);
        if (spoutTask >= 0) {
            to.accept(Acker.ACKER_INIT_STREAM_ID, new Values(id, xor, spoutTask));
        } else if (xor != 0) {
            to.accept(Acker.ACKER_ACK_STREAM_ID, new Values(id, xor));
        }
        if (StormFields.<Boolean>get(StormFields.TREE_FAILED, tree)) {
            to.accept(Acker.ACKER_FAIL_STREAM_ID, new Values(id));
        }
    }

    /** Between workers a stream is a number within the component that sends it, and the acker itself sends none of these. */
    private void leave(int ackerTask, String stream, Values message) {
        WorkerTopologyContext context = executor.getWorkerTopologyContext();
        int source = stream.equals(Acker.ACKER_INIT_STREAM_ID) ? (Integer) message.get(2) : sender(context, stream);
        leaving.add(new AddressedTuple(ackerTask, new TupleImpl(context, message, context.getComponentId(source),
                source, stream, MessageId.makeUnanchored())));
    }

    private static int sender(WorkerTopologyContext context, String stream) {
        return context.getComponentIds().stream()
                .filter(component -> context.getComponentStreams(component).contains(stream))
                .map(context::getComponentTasks).flatMap(Collection::stream).mapToInt(Integer::intValue)
                .min().orElseThrow(() -> new IllegalStateException("no component sends " + stream));
    }

    /** Sends on as much as may wait at once; true when nothing is left. Never waits: what is moved back may be for this very thread. */
    boolean sent() {
        while (!leaving.isEmpty() && handOver.hasRoom()) {
            handOver.take(leaving.poll());
        }
        return leaving.isEmpty();
    }
}
