package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/** What the code of a spout says it keeps that its source does not give again. */
class SpoutMemoryTest {
    abstract static class Spout extends BaseRichSpout {
        transient SpoutOutputCollector collector;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
            open();
        }

        void open() {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    static final class Draws extends Spout {
        private final Random random = new Random();
        private final String[] words = {"a", "b"};

        @Override
        public void nextTuple() {
            Utils.sleep(1);
            collector.emit(new Values(words[random.nextInt(words.length)]));
        }
    }

    static final class Counts extends Spout {
        private long x;

        @Override
        public void nextTuple() {
            collector.emit(new Values("w" + x++), x);
        }
    }

    static final class CountsInAnObject extends Spout {
        private final AtomicLong x = new AtomicLong();

        @Override
        public void nextTuple() {
            collector.emit(new Values("w"), x.incrementAndGet());
        }
    }

    static final class CountsAcks extends Spout {
        private int x;

        @Override
        public void nextTuple() {
            collector.emit(new Values("a"), 1);
        }

        @Override
        public void ack(Object id) {
            x++;
        }
    }

    static final class GoesThrough extends Spout {
        private transient Iterator<String> x;

        @Override
        void open() {
            x = List.of("a", "b").iterator();
        }

        @Override
        public void nextTuple() {
            if (x.hasNext()) {
                collector.emit(new Values(x.next()));
            }
        }
    }

    static final class ReadsOn extends Spout {
        private transient BufferedReader x;

        @Override
        void open() {
            try {
                x = new BufferedReader(new FileReader("words"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void nextTuple() {
            try {
                collector.emit(new Values(x.readLine()));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    /** Not opened, as where no worker runs. */
    static final class WillDraw extends Spout {
        private transient Random random;

        @Override
        void open() {
            random = new Random();
        }

        @Override
        public void nextTuple() {
            collector.emit(new Values(random.nextInt()));
        }
    }

    /** Only so many are in flight at once. */
    static final class Bounded extends Spout {
        private final Map<Object, String> pending = new HashMap<>();
        private int inFlight;

        @Override
        public void nextTuple() {
            if (inFlight < 10) {
                inFlight++;
                pending.put("id", "a");
                collector.emit(new Values("a"), "id");
            }
        }

        @Override
        public void ack(Object id) {
            inFlight--;
            pending.remove(id);
        }

        @Override
        public void fail(Object id) {
            ack(id);
        }
    }

    /** Asks its source for some at once. */
    static final class Buffers extends Spout {
        private final Queue<String> buffer = new ArrayDeque<>();

        @Override
        public void nextTuple() {
            if (buffer.isEmpty()) {
                buffer.addAll(List.of("a", "b"));
            }
            collector.emit(new Values(buffer.poll()));
        }
    }

    static final class ReadsAgain extends Spout {
        @Override
        public void nextTuple() {
            try {
                Files.readAllLines(Path.of("words")).forEach(word -> collector.emit(new Values(word)));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    static final class PollsStatic extends Spout {
        static final Queue<String> WORDS = new ConcurrentLinkedQueue<>();

        @Override
        public void nextTuple() {
            collector.emit(new Values(WORDS.poll()));
        }
    }

    static final class Pumps extends Spout {
        private transient BlockingQueue<String> queue;

        @Override
        void open() {
            queue = new LinkedBlockingQueue<>();
            new Thread(() -> queue.add("a")).start();
        }

        @Override
        public void nextTuple() {
            collector.emit(new Values(queue.poll()));
        }
    }

    private static Spout opened(Spout spout) {
        if (spout instanceof GoesThrough) {
            spout.open();
        }
        return spout;
    }

    @Test
    void whatNothingThatIsAckedGivesBackStays() {
        for (Spout spout :
                List.of(new Counts(), new CountsInAnObject(), new CountsAcks(), new GoesThrough(), new ReadsOn())) {
            assertEquals(
                    "keeps something in its field x",
                    BoltMemory.whySpoutStays(opened(spout)),
                    spout.getClass().getSimpleName());
        }
    }

    @Test
    void whatMayBeAsItWasALookAtItsObjectsDecides() {
        for (BaseRichSpout spout :
                List.of(new Draws(), new WillDraw(), new Bounded(), new Buffers(), new TestWordSpout())) {
            assertNull(BoltMemory.whySpoutStays(spout), spout.getClass().getSimpleName());
        }
    }

    @Test
    void whatNoFieldShowsIsAReasonToStay() {
        assertEquals(
                "keeps something for the whole JVM in SpoutMemoryTest$PollsStatic.WORDS",
                BoltMemory.whySpoutStays(new PollsStatic()));
        assertEquals(
                "uses files or settings of its host (Files.readAllLines)", BoltMemory.whySpoutStays(new ReadsAgain()));
        String threads = BoltMemory.whySpoutStays(new Pumps());
        assertTrue(threads.startsWith("starts threads (Thread."), threads);
    }

    @Test
    void aSpoutThatStaysSaysWhatToDeclare() {
        assertEquals(
                "keeps something in its field x; declare nstorm.move: {lines: renew} if its source gives again what it holds "
                        + "in memory",
                MoveWay.ofSpout("lines", new Counts(), null).pinned());
        assertNull(MoveWay.ofSpout("lines", new Draws(), null).pinned());
    }
}
