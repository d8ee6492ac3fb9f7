package nstorm.workload;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.shade.net.minidev.json.JSONValue;

/**
 * What a task writes through and only one copy of it may hold: an appended file under a lock that every process sees. Whether it
 * was free, and that it was closed, goes into the ledger.
 */
final class Connection {
    private static final AtomicInteger OPENED = new AtomicInteger();

    /** Of its own among all that were ever opened. */
    final String id;

    private final Ledger ledger;
    private final int task;
    private final FileChannel file;

    private Connection(Ledger ledger, int task, FileChannel file) {
        id = task + " of " + ProcessHandle.current().pid() + ", number " + OPENED.incrementAndGet();
        this.ledger = ledger;
        this.task = task;
        this.file = file;
    }

    static Connection open(Ledger ledger, int task) {
        Path path = ledger.connection(task);
        try {
            FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            Connection opened = new Connection(ledger, task, file);
            ledger.tell("connected", task, Map.of("connection", opened.id, "alone", locked(file)));
            return opened;
        } catch (IOException e) {
            throw new UncheckedIOException(path + " cannot be opened", e);
        }
    }

    /** Until it is closed, or its process ends. */
    private static boolean locked(FileChannel file) throws IOException {
        try {
            return file.tryLock() != null;
        } catch (OverlappingFileLockException e) {
            return false; // by another copy in this process
        }
    }

    void write(Map<String, Long> counts) {
        String row = JSONValue.toJSONString(Map.of("row", "batch", "task", task, "counts", counts)) + "\n";
        try {
            file.write(ByteBuffer.wrap(row.getBytes(StandardCharsets.UTF_8)));
        } catch (IOException e) {
            throw new UncheckedIOException("connection " + id + " cannot be written to", e);
        }
    }

    void close() {
        try {
            file.close();
        } catch (IOException e) {
            throw new UncheckedIOException("connection " + id + " cannot be closed", e);
        }
        ledger.tell("disconnected", task, Map.of("connection", id));
    }
}
