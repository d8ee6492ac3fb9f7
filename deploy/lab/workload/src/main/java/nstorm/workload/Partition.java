package nstorm.workload;

import java.util.Map;
import java.util.TreeSet;

/**
 * What one reader of a partition knows, as with Kafka. It begins at the committed offset. It commits up to where all is
 * acked, when it is deactivated and when it is closed. Until then no other task may read the partition.
 */
final class Partition {
    private final Ledger ledger;
    private final int task;
    /** Where this reader began. */
    final long first;

    private final TreeSet<Long> acked = new TreeSet<>();
    private long committable;

    private Partition(Ledger ledger, int task, long first) {
        this.ledger = ledger;
        this.task = task;
        this.first = first;
        committable = first;
    }

    /** Begins to read; that there is another reader goes into the ledger. */
    static Partition open(Ledger ledger, int task) {
        Partition partition = new Partition(ledger, task, ledger.offset(task));
        ledger.tell("opened", task, Map.of("from", partition.first, "alone", ledger.reads(task)));
        return partition;
    }

    void ack(long offset) {
        acked.add(offset);
        while (acked.remove(committable)) {
            committable++;
        }
    }

    void commit() {
        ledger.commit(task, committable);
    }

    /** Commits and lets others read. */
    void close(long emitted) {
        commit();
        ledger.tell("closed", task, Map.of("from", first, "to", first + emitted));
        ledger.readsNoMore(task);
    }
}
