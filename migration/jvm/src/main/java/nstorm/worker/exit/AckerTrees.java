package nstorm.worker.exit;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import nstorm.hook.Faults;
import nstorm.worker.routes.HandOver;
import nstorm.worker.storm.StormFields;
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
 * Hands the open trees of an acker that leaves to its successor, as messages that every acker takes anyway. An acker merges the messages on
 * a tree by XOR, in any order. All methods are for the acker's own thread.
 */
final class AckerTrees {
    /** Trees of one task, which leave this map as their messages are made. */
    private record Taken(int task, Map<Object, Object> trees) {}

    private final Executor executor;
    private final HandOver handOver;
    /** As messages they would take several times the room. */
    private final Queue<Taken> taken = new ArrayDeque<>();

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
                    empty((Acker) task.getTaskObject()).forEach(trees -> taken.add(new Taken(task.getTaskId(), trees)));
                }
            }
        } catch (RuntimeException | LinkageError e) {
            // Trees that stay behind time out, as when the acker's worker dies.
            Faults.report("handing on the trees of acker " + executor.getExecutorId(), e);
        }
    }

    /** Empties an acker of its trees. */
    static List<Map<Object, Object>> empty(Acker acker) {
        RotatingMap<Object, Object> pending = StormFields.get(StormFields.ACKER_PENDING, acker);
        List<Map<Object, Object>> all = new ArrayList<>();
        for (int i = 0; i < Acker.TIMEOUT_BUCKET_NUM && pending.size() > 0; i++) {
            all.add(pending.rotate());
        }
        return all;
    }

    /**
     * Takes trees out while there is room; {@code to} gets the messages, each a stream and its values, from which another
     * acker makes the same. True when none is left.
     */
    static boolean tellSome(Map<Object, Object> trees, BooleanSupplier room, BiConsumer<String, Values> to) {
        Iterator<Map.Entry<Object, Object>> next = trees.entrySet().iterator();
        while (next.hasNext()) {
            if (!room.getAsBoolean()) {
                return false;
            }
            Map.Entry<Object, Object> tree = next.next();
            next.remove();
            tell(tree.getKey(), tree.getValue(), to);
        }
        return true;
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
        handOver.take(new AddressedTuple(
                ackerTask,
                new TupleImpl(
                        context, message, context.getComponentId(source), source, stream, MessageId.makeUnanchored())));
    }

    private static int sender(WorkerTopologyContext context, String stream) {
        return context.getComponentIds().stream()
                .filter(component -> context.getComponentStreams(component).contains(stream))
                .map(context::getComponentTasks)
                .flatMap(Collection::stream)
                .mapToInt(Integer::intValue)
                .min()
                .orElseThrow(() -> new IllegalStateException("no component sends " + stream));
    }

    /** Sends on as much as may wait at once; true when nothing is left. Never waits: what is moved back may be for this very thread. */
    boolean sent() {
        try {
            for (Taken next = taken.peek(); next != null; next = taken.peek()) {
                int task = next.task;
                if (!tellSome(next.trees, handOver::hasRoom, (stream, message) -> leave(task, stream, message))) {
                    return false;
                }
                taken.poll();
            }
        } catch (RuntimeException | LinkageError e) {
            Faults.report("handing on the trees of acker " + executor.getExecutorId(), e);
        }
        return taken.isEmpty();
    }
}
