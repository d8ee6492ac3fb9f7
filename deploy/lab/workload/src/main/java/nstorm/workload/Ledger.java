package nstorm.workload;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.task.TopologyContext;

/**
 * The counts of this worker and the accounts of its bolts, appended to its own file of the ledger directory five times
 * a second. Reads there the rate for the spouts from the file "rate". Reads from the file "asked" the number of the
 * account that is due from the bolts. One for the whole JVM: executors come and go, their counts stay.
 */
final class Ledger {
    private static final long PERIOD_MS = 200;
    private static Ledger ofThisJvm;

    final LongAdder wordsEmitted = new LongAdder();
    final LongAdder wordsCounted = new LongAdder();
    final LongAdder ticks = new LongAdder();
    private final Set<Integer> tasks = new ConcurrentSkipListSet<>();
    private final Set<Integer> keepers = new ConcurrentSkipListSet<>();
    private final List<SpoutLedger> spouts = new CopyOnWriteArrayList<>();
    private final Path dir;
    private final Path rateFile;
    private final Path askedFile;
    private final Path file;
    private volatile double rateTps;
    private volatile int asked;

    private Ledger(Path dir, int port) {
        this.dir = dir;
        rateFile = dir.resolve("rate");
        askedFile = dir.resolve("asked");
        file = dir.resolve(port + "-" + ProcessHandle.current().pid() + ".jsonl");
        rateTps = read(rateFile, 0);
        asked = (int) read(askedFile, 0);
    }

    static synchronized Ledger join(Map<String, Object> conf, TopologyContext context) {
        if (ofThisJvm == null) {
            Path dir = Path.of((String) conf.get(WordCount.LEDGER_DIR));
            ofThisJvm = new Ledger(dir, context.getThisWorkerPort());
            Thread thread = new Thread(ofThisJvm::run, "ledger");
            thread.setDaemon(true);
            thread.start();
        }
        ofThisJvm.tasks.add(context.getThisTaskId());
        return ofThisJvm;
    }

    SpoutLedger spout(int task) {
        SpoutLedger spout = new SpoutLedger(task, System.currentTimeMillis());
        spouts.add(spout);
        return spout;
    }

    /** Expects of a task that it reports what it keeps. */
    void expect(int task) {
        keepers.add(task);
    }

    /** Whether a task runs in this JVM. */
    boolean isHere(int task) {
        return tasks.contains(task);
    }

    void leave(int task) {
        tasks.remove(task);
        keepers.remove(task);
    }

    /** Tuples per second asked of all spout tasks together; 0 pauses, a negative number saturates. */
    double rateTps() {
        return rateTps;
    }

    /** The number of the newest account that was asked for: each bolt gives it once. */
    int asked() {
        return asked;
    }

    /** Writes a row of its own, of a kind and by a task; it is in the file when this returns. */
    void tell(String kind, int task, Map<String, ?> row) {
        Map<String, Object> whole = new LinkedHashMap<>();
        whole.put("row", kind);
        whole.put("task", task);
        whole.putAll(row);
        try {
            write(JSONValue.toJSONString(whole) + "\n");
        } catch (IOException e) {
            throw new UncheckedIOException("ledger " + file + " not written", e);
        }
    }

    /** Leaves word what a task keeps, in place of its last word in this JVM; for tasks that cannot be asked. */
    void keep(int task, Map<String, ?> kept) {
        replace(task + "-" + ProcessHandle.current().pid() + ".kept", JSONValue.toJSONString(kept));
    }

    /** Leaves word which lines a task of a source repeats; line i is the (i mod size)-th. */
    void lines(int task, String[] lines) {
        replace(
                task + ".lines",
                Arrays.stream(lines).map(Sentences::withoutFiller).collect(Collectors.joining("\n")));
    }

    /** The offset up to which a task's partition is done; 0 before the first commit. */
    long offset(int task) {
        return (long) read(dir.resolve(task + ".offset"), Double.NaN);
    }

    void commit(int task, long offset) {
        replace(task + ".offset", Long.toString(offset));
    }

    /** Notes that this JVM reads a task's partition; false if a living task does already. */
    boolean reads(int task) {
        Path reader = dir.resolve(task + ".reader");
        try {
            boolean alone = !Files.exists(reader)
                    || ProcessHandle.of(Long.parseLong(Files.readString(reader)))
                            .isEmpty();
            Files.writeString(reader, Long.toString(ProcessHandle.current().pid()));
            return alone;
        } catch (IOException e) {
            throw new UncheckedIOException(reader + " not written", e);
        }
    }

    void readsNoMore(int task) {
        try {
            Files.delete(dir.resolve(task + ".reader"));
        } catch (IOException e) {
            throw new UncheckedIOException("no more the reader of " + task, e);
        }
    }

    /** What a task writes through a connection of its own, read with all other rows. */
    Path connection(int task) {
        return dir.resolve("connection-" + task + ".jsonl");
    }

    private void replace(String name, String content) {
        try {
            Path partial = Files.writeString(
                    dir.resolve(name + "." + ProcessHandle.current().pid()), content);
            Files.move(partial, dir.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new UncheckedIOException(name + " in " + dir + " not written", e);
        }
    }

    private static double read(Path file, double otherwise) {
        try {
            return Double.parseDouble(Files.readString(file).strip());
        } catch (NoSuchFileException e) {
            return 0;
        } catch (IOException | NumberFormatException e) {
            return otherwise;
        }
    }

    private void run() {
        while (true) {
            try {
                Thread.sleep(PERIOD_MS);
                rateTps = read(rateFile, rateTps);
                asked = (int) read(askedFile, asked);
                append();
            } catch (InterruptedException e) {
                return;
            } catch (IOException e) {
                System.err.println("ledger " + file + " not written: " + e);
            }
        }
    }

    private void append() throws IOException {
        long nowMillis = System.currentTimeMillis();
        StringBuilder lines = new StringBuilder();
        for (SpoutLedger spout : spouts) {
            for (String window : spout.takeWindows(nowMillis)) {
                lines.append(window).append('\n');
            }
        }
        String totals = spouts.stream().map(SpoutLedger::totals).collect(Collectors.joining(",", "[", "]"));
        lines.append("{\"t_ms\":")
                .append(nowMillis)
                .append(",\"words_emitted\":")
                .append(wordsEmitted.sum())
                .append(",\"words_counted\":")
                .append(wordsCounted.sum())
                .append(",\"ticks\":")
                .append(ticks.sum())
                .append(",\"tasks\":")
                .append(tasks)
                .append(",\"keepers\":")
                .append(keepers)
                .append(",\"spouts\":")
                .append(totals)
                .append("}\n");
        write(lines);
    }

    private synchronized void write(CharSequence lines) throws IOException {
        Files.writeString(file, lines, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
