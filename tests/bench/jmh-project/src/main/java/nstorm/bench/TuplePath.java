package nstorm.bench;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.serialization.KryoTupleDeserializer;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * A tuple's whole way from one bolt to the next that does nothing with it: the least a tuple can cost. Run
 * in a stock JVM and in one with {@code -javaagent}, the difference is what the hooks add.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class TuplePath {
    /** As many as Storm takes out of a queue, or Netty brings, at once under load. */
    static final int BATCH = 100;

    /** By count: on a busy machine a warm-up of some seconds may hardly have run. */
    private static final int WARM_UP_BATCHES = 20_000;

    private static final MethodHandle TRANSFER_LOCAL_BATCH = transferLocalBatch();

    private OneWorker worker;
    private WorkerState state;
    private KryoTupleSerializer serializer;
    private KryoTupleDeserializer deserializer;
    private TupleImpl tuple;

    @Setup
    public void start() throws Throwable {
        worker = OneWorker.get();
        state = worker.from.getWorkerData();
        serializer = new KryoTupleSerializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        deserializer = new KryoTupleDeserializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        int source = worker.from.getTaskIds().get(0);
        tuple = new TupleImpl(state.getWorkerTopologyContext(), new Values("word"), "from", source, "default");
        CpuTime unread = new CpuTime();
        for (int i = 0; i < WARM_UP_BATCHES; i++) {
            local(unread);
            remote(unread);
        }
    }

    /** Emit, group, transfer, queue, take, execute, acknowledge, within one worker. */
    @Benchmark
    public int local(CpuTime cpu) {
        for (int i = 0; i < BATCH; i++) {
            worker.out.emit(new Values("word"));
        }
        cpu.operations += BATCH;
        return worker.queue.consume(worker.to);
    }

    /** Serialise, deserialise, hand the batch on as Netty does, queue, take, execute, acknowledge. */
    @Benchmark
    public int remote(CpuTime cpu) throws Throwable {
        ArrayList<AddressedTuple> batch = new ArrayList<>(BATCH);
        for (int i = 0; i < BATCH; i++) {
            batch.add(new AddressedTuple(worker.task, deserializer.deserialize(serializer.serialize(tuple))));
        }
        TRANSFER_LOCAL_BATCH.invokeExact(state, batch);
        cpu.operations += BATCH;
        return worker.queue.consume(worker.to);
    }

    private static MethodHandle transferLocalBatch() {
        try {
            Method method = WorkerState.class.getDeclaredMethod("transferLocalBatch", ArrayList.class);
            method.setAccessible(true);
            return MethodHandles.lookup().unreflect(method);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
