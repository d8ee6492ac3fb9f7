package nstorm.worker.state;

import java.util.List;
import java.util.concurrent.TimeUnit;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.routes.WorkerTables;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.TupleImpl;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends what travels in pieces over Storm's connection, which may drop them: so all of it goes again, later and later. */
public final class PieceSender {
    private static final Logger LOG = LoggerFactory.getLogger(PieceSender.class);

    /** The pseudo task of the pieces, which is not a route's: no connection is kept for it. */
    static final int TASK = PlanOverlay.LAST_END - 1;
    /** Other moves of this worker wait until then. */
    private static final long PASS_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final WorkerState worker;
    private final WorkerTables tables;
    private KryoTupleSerializer serializer;

    PieceSender(WorkerState worker, WorkerTables tables) {
        this.worker = worker;
        this.tables = tables;
    }

    /** Sends as much as is due and as the connection takes. */
    void send(Outgoing out, byte[] key, Entry entry, Slot to, String component) {
        long begunNanos = System.nanoTime();
        long nowNanos = begunNanos;
        boolean before = out.sent();
        boolean more = true;
        while (more && nowNanos - begunNanos < PASS_NANOS) {
            int piece = out.nextPiece(nowNanos);
            if (piece < 0 || !tables.send(to, message(out, piece, key, entry.executor(), component))) {
                return;
            }
            nowNanos = System.nanoTime();
            more = out.wentOut(nowNanos);
        }
        if (out.sent() && !before) {
            LOG.info(
                    "state_sent move={} executor={} to={} bytes={} ms={}",
                    out.name,
                    entry.executor(),
                    to,
                    out.bytes.size(),
                    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - out.sinceNanos));
        }
    }

    private TaskMessage message(Outgoing out, int piece, byte[] key, ExecutorId from, String component) {
        if (serializer == null) {
            serializer = new KryoTupleSerializer(worker.getTopologyConf(), worker.getWorkerTopologyContext());
        }
        byte[] bytes = StateArrivals.piece(out.name, key, out.bytes, out.crc, piece);
        return message(bytes, component, from, worker.getWorkerTopologyContext(), serializer);
    }

    public static TaskMessage message(
            byte[] piece,
            String component,
            ExecutorId from,
            WorkerTopologyContext context,
            KryoTupleSerializer serializer) {
        // Each component has Storm's own stream, of one value.
        TupleImpl tuple = new TupleImpl(context, List.of(piece), component, from.start(), StormCommon.SYSTEM_STREAM_ID);
        return new TaskMessage(TASK, serializer.serialize(tuple));
    }
}
