package nstorm.worker;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import net.bytebuddy.asm.Advice;
import org.apache.storm.StormTimer;
import org.apache.storm.daemon.worker.Worker;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.executor.IRunningExecutor;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.messaging.netty.BackPressureStatus;
import org.apache.storm.tuple.AddressedTuple;

/** The code that is woven into Storm's methods in a worker: one call into {@link WorkerCalls} each. */
final class WorkerAdvice {
    private WorkerAdvice() {}

    static final class StateBuilt {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.This WorkerState state) {
            WorkerCalls.onStateBuilt(state);
        }
    }

    static final class LocalAssignment {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
        static Assignment enter() {
            return WorkerCalls.knownAssignment();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(
                @Advice.This WorkerState state,
                @Advice.Enter Assignment known,
                @Advice.Return(readOnly = false) Assignment assignment,
                @Advice.Thrown(readOnly = false) Throwable thrown) {
            WorkerCalls.assignmentRead();
            if (thrown != null) {
                assignment = WorkerCalls.whileAway(thrown);
                thrown = assignment == null ? thrown : null;
                return;
            }
            if (known != null) {
                assignment = known;
            }
            assignment = WorkerCalls.onAssignment(state, assignment, known == null);
        }
    }

    static final class AssignmentsChanged {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
        static boolean enter(@Advice.This WorkerState state, @Advice.Argument(0) Assignment assignment) {
            return WorkerCalls.explained(state, assignment);
        }
    }

    static final class RefreshConnections {
        @Advice.OnMethodEnter
        static void enter() {
            WorkerCalls.beforeRefresh();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            WorkerCalls.afterRefresh();
        }
    }

    static final class LocalBatch {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.Argument(0) ArrayList<AddressedTuple> batch) {
            WorkerCalls.onBatch(batch);
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.Argument(0) ArrayList<AddressedTuple> batch) {
            WorkerCalls.afterBatch(batch);
        }
    }

    static final class Always {
        @Advice.OnMethodExit
        @SuppressWarnings("UnusedVariable") // Storm's method returns it
        static void exit(@Advice.Return(readOnly = false) boolean result) {
            result = true;
        }
    }

    static final class Never {
        @Advice.OnMethodExit
        @SuppressWarnings("UnusedVariable") // Storm's method returns it
        static void exit(@Advice.Return(readOnly = false) boolean result) {
            result = false;
        }
    }

    static final class Loaded {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(
                @Advice.This Worker worker,
                @Advice.Argument(value = 1, readOnly = false) List<IRunningExecutor> executors) {
            executors = WorkerCalls.onLoaded(worker, executors);
        }
    }

    static final class Status {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.Return BackPressureStatus status) {
            WorkerCalls.onStatus(status);
        }
    }

    static final class LocalQueues {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.This ExecutorTransfer transfer) {
            WorkerCalls.onLocalQueues(transfer);
        }
    }

    static final class Transferred {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) AddressedTuple tuple, @Advice.Return boolean taken) {
            if (taken) {
                WorkerCalls.onTransferred(tuple);
            }
        }
    }

    static final class Send {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(
                @Advice.FieldValue("bundles") Map<Integer, ArrayList<TaskMessage>> bundles,
                @Advice.Argument(0) Map<Integer, NodeInfo> taskToNode) {
            WorkerCalls.onSend(bundles, taskToNode);
        }
    }

    static final class Accept {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
        static boolean enter(@Advice.This Executor executor, @Advice.Argument(0) Object event) {
            return WorkerCalls.divert(executor, event);
        }
    }

    static final class ExecutorLoop {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.This Executor executor, @Advice.Return(readOnly = false) Callable<Long> loop) {
            loop = WorkerCalls.executorLoop(executor, loop);
        }
    }

    static final class SpoutAcked {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.Argument(2) Long latencyMs) {
            WorkerCalls.onAcked(latencyMs);
        }
    }

    static final class SpoutFailed {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter() {
            WorkerCalls.onFailed();
        }
    }

    static final class Recurring {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
        static boolean enter(
                @Advice.This StormTimer timer,
                @Advice.Argument(0) int delaySecs,
                @Advice.Argument(1) int recurSecs,
                @Advice.Argument(2) Runnable body) {
            return WorkerCalls.recurring(timer, delaySecs, recurSecs, body);
        }
    }
}
