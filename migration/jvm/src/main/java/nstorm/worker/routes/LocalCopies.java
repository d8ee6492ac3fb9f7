package nstorm.worker.routes;

import java.util.function.BooleanSupplier;
import nstorm.wire.ExecutorId;
import org.apache.storm.utils.JCQueue;

/** The executors of this worker, as those see them that bring them tuples; null for one that is not here. */
public interface LocalCopies {
    Copy copyOf(ExecutorId executor);

    /** From any thread. */
    Copy copyOf(int task);

    /** One of them. */
    interface Copy {
        ExecutorId id();

        JCQueue queue();

        /** Whether it takes no tuple now: it holds still, or its bolts are not prepared yet. */
        boolean pauses();

        /** Whether what it takes goes on to another worker. */
        boolean forwards();

        /** A tuple for a copy that is not routed to here yet (or no longer elsewhere) may be taken at once. */
        boolean acceptsEarly();

        /** What stands before its queue while it moves. */
        void guard(OrderGate gateOrNull, HandOver handOver, BooleanSupplier sendsProbes);
    }
}
