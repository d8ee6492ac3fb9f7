package nstorm.bench;

import java.util.ArrayList;
import java.util.concurrent.TimeUnit;
import nstorm.worker.WorkerCalls;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.JCQueue;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/**
 * What the advices call for each tuple, alone; in a JVM with {@code -javaagent}. What {@link #stock} takes,
 * the loop and Storm's own look-up that ours replaces, is to be subtracted.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class WovenCalls {
    private OneWorker worker;
    private ArrayList<JCQueue> queues;
    private ArrayList<JCQueue> stockQueues;
    private ArrayList<AddressedTuple> batch;
    private int index;

    @Setup
    public void start() throws Exception {
        worker = OneWorker.get();
        queues = OneWorker.localQueues(worker.from);
        if (queues.getClass() == ArrayList.class) {
            throw new IllegalStateException("the hooks are not active in this JVM");
        }
        stockQueues = new ArrayList<>();
        queues.iterator().forEachRemaining(stockQueues::add);
        index = worker.task + 1;
        batch = new ArrayList<>();
        int source = worker.from.getTaskIds().get(0);
        for (int i = 0; i < TuplePath.BATCH; i++) {
            batch.add(new AddressedTuple(
                    worker.task,
                    new TupleImpl(
                            worker.from.getWorkerTopologyContext(), new Values("word"), "from", source, "default")));
        }
    }

    /** The loop, with the queue looked up as Storm does. */
    @Benchmark
    public void stock(Blackhole hole, CpuTime cpu) {
        for (AddressedTuple tuple : batch) {
            hole.consume(stockQueues.get(index));
            hole.consume(tuple);
        }
        cpu.operations += TuplePath.BATCH;
    }

    /** Look the queue up in our table, count the tuple, look whether its executor is stopping. */
    @Benchmark
    public void local(Blackhole hole, CpuTime cpu) {
        for (AddressedTuple tuple : batch) {
            hole.consume(queues.get(index));
            WorkerCalls.onTransferred(tuple);
            hole.consume(WorkerCalls.divert(worker.to, tuple));
        }
        cpu.operations += TuplePath.BATCH;
    }

    /** At the sender look up and count; at the receiver look for strays, and whether its executor is stopping. */
    @Benchmark
    public void remote(Blackhole hole, CpuTime cpu) {
        for (AddressedTuple tuple : batch) {
            hole.consume(queues.get(index));
            WorkerCalls.onTransferred(tuple);
        }
        WorkerCalls.onBatch(batch);
        WorkerCalls.afterBatch(batch);
        for (AddressedTuple tuple : batch) {
            hole.consume(WorkerCalls.divert(worker.to, tuple));
        }
        cpu.operations += TuplePath.BATCH;
    }
}
