package nstorm.trial.bolts;

import static nstorm.trial.Way.STOPPED;

import com.codahale.metrics.ConsoleReporter;
import com.codahale.metrics.MetricRegistry;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.prefs.Preferences;
import nstorm.trial.Right;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.slf4j.MDC;

/** Memory outside the bolt's objects, what means nothing on another host, threads and processes. */
final class Outside {
    @Right({})
    static final class LocalFile extends Case {
        @Override
        Object on(String word, long number) {
            Path file = Path.of(
                    System.getProperty("java.io.tmpdir"),
                    "trial-" + ProcessHandle.current().pid());
            try {
                int count = Files.exists(file) ? Integer.parseInt(Files.readString(file)) : 0;
                Files.writeString(file, "" + (count + 1));
                file.toFile().deleteOnExit();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return null;
        }
    }

    @Right({})
    static final class SystemProperty extends Case {
        @Override
        Object on(String word, long number) {
            System.setProperty("trial.count", "" + (Integer.getInteger("trial.count", 0) + 1));
            return null;
        }
    }

    @Right({})
    static final class SystemPropertiesMap extends Case {
        @Override
        Object on(String word, long number) {
            System.getProperties().merge("trial.count", 1, (left, right) -> (Integer) left + 1);
            return null;
        }
    }

    /** Only named, as it would write to the user's home. */
    @Right({})
    static final class Prefs extends Case {
        @Override
        Object on(String word, long number) {
            if (number < 0) {
                Preferences prefs = Preferences.userRoot();
                prefs.putInt("trial", prefs.getInt("trial", 0) + 1);
            }
            return null;
        }
    }

    /** Reads and then writes: two copies for a moment would lose one of two sums. */
    @Right(STOPPED)
    static final class SelectThenUpdate extends Case {
        @Override
        Object on(String word, long number) {
            try (Connection connection = DriverManager.getConnection("jdbc:none://db/trial");
                    Statement statement = connection.createStatement()) {
                ResultSet found = statement.executeQuery("select n from counts where w = '" + word + "'");
                long count = found.next() ? found.getLong(1) : 0;
                statement.executeUpdate("update counts set n = " + (count + 1) + " where w = '" + word + "'");
                return count;
            } catch (SQLException e) {
                return "no driver";
            }
        }
    }

    @Right({})
    static final class ThreadName extends Case {
        @Override
        void begin(Map<String, Object> conf) {
            Thread.currentThread().setName("trial");
        }

        @Override
        Object on(String word, long number) {
            Thread.currentThread().setName(Thread.currentThread().getName() + word.charAt(0));
            return null;
        }
    }

    @Right({})
    static final class LoggingContext extends Case {
        @Override
        Object on(String word, long number) {
            String before = MDC.get("last");
            MDC.put("last", word);
            return before == null || before.isEmpty() ? null : "x";
        }
    }

    @Right({})
    static final class ThreadOwn extends Case {
        static final ThreadLocal<long[]> OWN = ThreadLocal.withInitial(() -> new long[1]);

        @Override
        Object on(String word, long number) {
            OWN.get()[0]++;
            return null;
        }
    }

    @Right({})
    static final class Server extends Case {
        private transient HttpServer server;

        @Override
        void begin(Map<String, Object> conf) {
            try {
                server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            server.start();
        }

        @Override
        Object on(String word, long number) {
            return word;
        }

        @Override
        public void cleanup() {
            server.stop(0);
        }
    }

    @Right({})
    static final class ServerInNoField extends Case {
        @Override
        void begin(Map<String, Object> conf) {
            try {
                HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
                server.createContext("/", exchange -> {
                    exchange.close();
                    server.stop(0);
                });
                server.start();
                server.stop(0);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        Object on(String word, long number) {
            return word;
        }
    }

    @Right({})
    static final class Child extends Case {
        @Override
        void begin(Map<String, Object> conf) {
            try {
                new ProcessBuilder("true").start();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        Object on(String word, long number) {
            return word;
        }
    }

    @Right({})
    static final class Pump extends Case {
        static final BlockingQueue<String> QUEUE = new LinkedBlockingQueue<>();

        @Override
        void begin(Map<String, Object> conf) {
            Thread pump = new Thread(() -> {
                try {
                    for (int i = 0; i < 2; i++) {
                        QUEUE.poll(10, TimeUnit.MILLISECONDS);
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            pump.setDaemon(true);
            pump.start();
        }

        @Override
        Object on(String word, long number) {
            QUEUE.offer(word);
            return word;
        }
    }

    static final class Io implements Serializable {
        transient ExecutorService pool;
        transient volatile String shown = "none";

        private Object readResolve() {
            pool = Executors.newSingleThreadExecutor(work -> {
                Thread thread = new Thread(work);
                thread.setDaemon(true);
                return thread;
            });
            shown = "made";
            return this;
        }
    }

    @Right({})
    static final class PoolInHelper extends Case {
        final Io io = new Io();

        @Override
        Object on(String word, long number) {
            return io.shown;
        }

        @Override
        public void cleanup() {
            if (io.pool != null) {
                io.pool.shutdown();
            }
        }
    }

    @Right({})
    static final class TimerInNoField extends Case {
        @Override
        void begin(Map<String, Object> conf) {
            Timer timer = new Timer(true);
            timer.schedule(
                    new TimerTask() {
                        @Override
                        public void run() {
                            timer.cancel();
                        }
                    },
                    1);
        }

        @Override
        Object on(String word, long number) {
            return word;
        }
    }

    @Right({})
    static final class Reporter extends Case {
        transient MetricRegistry registry;
        transient ConsoleReporter reporter;

        @Override
        void begin(Map<String, Object> conf) {
            registry = new MetricRegistry();
            ConsoleReporter started = ConsoleReporter.forRegistry(registry).build();
            started.start(1, TimeUnit.HOURS);
            started.stop();
        }

        @Override
        Object on(String word, long number) {
            registry.meter("seen").mark();
            return word;
        }
    }

    public interface SeenMBean {
        long getSeen();
    }

    public static final class Seen implements SeenMBean {
        volatile long seen;

        @Override
        public long getSeen() {
            return seen;
        }
    }

    @Right({})
    static final class Bean extends Case {
        transient Seen seen;

        @Override
        void begin(Map<String, Object> conf) {
            seen = new Seen();
            try {
                var server = ManagementFactory.getPlatformMBeanServer();
                var name = new javax.management.ObjectName("trial:type=Seen");
                if (!server.isRegistered(name)) {
                    server.registerMBean(seen, name);
                }
            } catch (javax.management.JMException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        Object on(String word, long number) {
            seen.seen += number;
            return word;
        }
    }

    /** Acked by another thread, after a while. */
    @Right({})
    static final class AcksLater extends Case {
        @Override
        public void execute(Tuple tuple) {
            if (tuple.getLong(1) < 0) {
                new CompletableFuture<String>()
                        .completeOnTimeout("late", 1, TimeUnit.DAYS)
                        .thenAccept(late -> collector.ack(tuple));
            }
        }
    }

    @Right({})
    static final class AsksByHttp extends Case {
        @Override
        public void execute(Tuple tuple) {
            if (tuple.getLong(1) < 0) {
                HttpClient.newHttpClient()
                        .sendAsync(
                                HttpRequest.newBuilder(URI.create("http://127.0.0.1:1/"))
                                        .build(),
                                HttpResponse.BodyHandlers.ofString())
                        .thenAccept(answer -> {
                            collector.emit(tuple, new Values(answer.body()));
                            collector.ack(tuple);
                        });
            }
        }
    }

    static final class Emitters {
        static volatile OutputCollector last;
    }

    @Right({})
    static final class CollectorInStatic extends Case {
        @Override
        void begin(Map<String, Object> conf) {
            Emitters.last = collector;
        }

        @Override
        Object on(String word, long number) {
            return word;
        }
    }

    static final class Rules {
        static final Map<String, String> ALL = new HashMap<>();

        static void put(String word, String rule) {
            ALL.put(word, rule);
        }
    }

    /** Another component of the JVM fills it. */
    @Right({})
    static final class ReadsOthersStatic extends Case {
        @Override
        Object on(String word, long number) {
            return Rules.ALL.getOrDefault(word, "none");
        }
    }

    /** A time of nanoTime is this JVM's. */
    @Right({})
    static final class TokenBucket extends Case {
        long lastNanos = System.nanoTime();
        double tokens = 10;

        @Override
        Object on(String word, long number) {
            long now = System.nanoTime();
            tokens = Math.min(10, tokens + (now - lastNanos) / 1e15);
            lastNanos = now;
            tokens--;
            return tokens > 0 ? word : null;
        }
    }

    @Right({})
    static final class OwnPid extends Case {
        String me;

        @Override
        Object on(String word, long number) {
            me = me == null ? ManagementFactory.getRuntimeMXBean().getName() : me;
            return me;
        }
    }

    @Right({})
    static final class OwnHost extends Case {
        String me;

        @Override
        Object on(String word, long number) {
            try {
                me = me == null ? InetAddress.getLocalHost().getHostName() : me;
            } catch (UnknownHostException e) {
                me = "none";
            }
            return me;
        }
    }

    @Right({})
    static final class Spill extends Case {
        File spill;
        int count;

        @Override
        Object on(String word, long number) {
            spill = spill == null ? new File(System.getProperty("java.io.tmpdir"), "spill") : spill;
            return ++count;
        }
    }

    @Right({})
    static final class SpillName extends Case {
        String spill;
        int count;

        @Override
        Object on(String word, long number) {
            spill = spill == null ? new File(System.getProperty("java.io.tmpdir"), "spill").getPath() : spill;
            return ++count;
        }
    }

    private Outside() {}
}
