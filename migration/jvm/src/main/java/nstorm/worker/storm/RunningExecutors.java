package nstorm.worker.storm;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.storm.executor.IRunningExecutor;

/**
 * The executors that Storm's timers walk through by index. A list that shrinks between {@code size()} and
 * {@code get(i)} must not throw, for the timer would halt the worker.
 */
public final class RunningExecutors extends CopyOnWriteArrayList<IRunningExecutor> {
    private static final long serialVersionUID = 1L;

    public RunningExecutors(List<IRunningExecutor> executors) {
        super(executors);
    }

    @Override
    public IRunningExecutor get(int index) {
        try {
            return super.get(index);
        } catch (ArrayIndexOutOfBoundsException e) {
            return super.get(0);
        }
    }
}
