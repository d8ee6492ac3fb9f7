package nstorm.workload;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import org.apache.storm.task.TopologyContext;

/**
 * The counts of this worker, appended to its own file of the ledger directory five times a second, and the rate that
 * the directory's file "rate" asks of the spouts. One for the whole JVM: executors come and go, their counts stay.
 */
final class Ledger {
    private static final long PERIOD_MS = 200;
    private static Ledger ofThisJvm;

    final LongAdder wordsEmitted = new LongAdder();
    final LongAdder wordsCounted = new LongAdder();
    final LongAdder ticks = new LongAdder();
    private final Set<Integer> tasks = new ConcurrentSkipListSet<>();
    private final List<SpoutLedger> spouts = new CopyOnWriteArrayList<>();
    private final Path rateFile;
    private final Path file;
    private volatile double rateTps;

    private Ledger(Path dir, int port) {
        rateFile = dir.resolve("rate");
        file = dir.resolve(port + "-" + ProcessHandle.current().pid() + ".jsonl");
        rateTps = readRate();
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

    void leave(int task) {
        tasks.remove(task);
    }

    /** Tuples per second asked of all spout tasks together; 0 pauses, a negative number saturates. */
    double rateTps() {
        return rateTps;
    }

    private double readRate() {
        try {
            return Double.parseDouble(Files.readString(rateFile).strip());
        } catch (NoSuchFileException e) {
            return 0;
        } catch (IOException | NumberFormatException e) {
            return rateTps;
        }
    }

    private void run() {
        while (true) {
            try {
                Thread.sleep(PERIOD_MS);
                rateTps = readRate();
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
        lines.append("{\"t_ms\":").append(nowMillis).append(",\"words_emitted\":").append(wordsEmitted.sum())
            .append(",\"words_counted\":").append(wordsCounted.sum()).append(",\"ticks\":").append(ticks.sum())
            .append(",\"tasks\":").append(tasks).append(",\"spouts\":").append(totals).append("}\n");
        Files.writeString(file, lines, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
