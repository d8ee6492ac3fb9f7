package nstorm.worker.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import nstorm.wire.report.WorkerAck.Messaging;
import org.apache.storm.Config;
import org.apache.storm.messaging.ConnectionWithStatus;
import org.apache.storm.messaging.ConnectionWithStatus.Status;
import org.apache.storm.messaging.IConnection;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.messaging.netty.BackPressureStatus;
import org.apache.storm.messaging.netty.Context;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/** What Storm's own connections do where one end asks for SASL, and what a worker says of its end. */
class GuardedConnectionsTest {
    private static final String TOPOLOGY = "wc-1-1700000000";
    private static final long ARRIVES_SECS = 30;
    private static final long SILENCE_SECS = 3;

    private static Map<String, Object> conf(boolean sasl) {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put(Config.STORM_MESSAGING_NETTY_AUTHENTICATION, sasl);
        conf.put(Config.TOPOLOGY_NAME, "wc");
        conf.put(Config.STORM_ZOOKEEPER_TOPOLOGY_AUTH_SCHEME, "digest");
        conf.put(Config.STORM_ZOOKEEPER_TOPOLOGY_AUTH_PAYLOAD, "of-the-topology:secret");
        return conf;
    }

    private static List<String> has(boolean sasl) {
        return Messaging.of(conf(sasl), conf(true)).has();
    }

    /** What comes out at the target of one message that the source sends as {@link PieceSender} does; null for nothing. */
    private static String sent(boolean source, boolean target) throws Exception {
        BlockingQueue<TaskMessage> came = new LinkedBlockingQueue<>();
        Context out = new Context();
        Context in = new Context();
        out.prepare(conf(source));
        in.prepare(conf(target));
        try (IConnection server = in.bind(
                        TOPOLOGY,
                        0,
                        came::addAll,
                        () -> new BackPressureStatus("w", new ArrayList<>(), new ArrayList<>()));
                IConnection client = out.connect(
                        TOPOLOGY, "127.0.0.1", server.getPort(), new AtomicBoolean[] {new AtomicBoolean()})) {
            boolean should = source == target;
            long untilNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(should ? ARRIVES_SECS : SILENCE_SECS);
            while (((ConnectionWithStatus) client).status() != Status.Ready && System.nanoTime() < untilNanos) {
                Thread.sleep(20);
            }
            assertEquals(source && !target, ((ConnectionWithStatus) client).status() != Status.Ready);
            if (source && !target) {
                return null; // WorkerTables sends nothing over it
            }
            byte[] state = "a state".getBytes(StandardCharsets.UTF_8);
            client.send(List.of(new TaskMessage(PieceSender.TASK, state)).iterator());
            TaskMessage found = came.poll(should ? ARRIVES_SECS : SILENCE_SECS, TimeUnit.SECONDS);
            return found == null ? null : new String(found.message(), StandardCharsets.UTF_8);
        } finally {
            out.term();
            in.term();
        }
    }

    @Test
    void aStateGoesWhereBothEndsHaveTheSame() throws Exception {
        assertEquals("a state", sent(true, true));
        assertEquals(List.of("sasl"), has(true));
        assertEquals("a state", sent(false, false));
        assertEquals(List.of(), has(false));
    }

    @Test
    void aSourceThatAsksForSaslIsNeverReadyToSendToATargetWithout() throws Exception {
        assertNull(sent(true, false));
    }

    @Test
    void aTargetThatAsksForSaslTakesNothingFromASourceWithout() throws Exception {
        assertNull(sent(false, true));
    }
}
