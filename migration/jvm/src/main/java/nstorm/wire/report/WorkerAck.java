package nstorm.wire.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import nstorm.wire.ExecutorId;
import nstorm.wire.Protocol;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.wire.json.JsonText;
import org.apache.storm.Config;

/**
 * What a worker has applied of the plan: a state, not a message.
 *
 * @param cluster of the plan it has applied, empty before the first one
 * @param fault   the last error that the hooks contained, null if none
 * @param error   why this worker cannot follow plans, null if it can
 * @param storm   version of Storm
 * @param off     why it does nothing until it is switched on, null if it does
 * @param messaging what guards Storm's connections to other workers, null if that is not known
 */
public record WorkerAck(
        String topology,
        Slot slot,
        long pid,
        String incarnation,
        String hooks,
        long timeMs,
        String cluster,
        long epoch,
        long version,
        List<EntryAck> entries,
        List<ExecutorId> executors,
        List<Pinned> pinned,
        List<ExecutorWay> ways,
        Counters counters,
        String fault,
        String error,
        String storm,
        String off,
        Messaging messaging) {

    /** An executor that may not move, and why. */
    public record Pinned(ExecutorId executor, String reason) {}

    /** An executor that moves by another way than live; for older controllers it also stands among the pinned. */
    public record ExecutorWay(ExecutorId executor, Way way) {}

    /** Totals since the JVM started. */
    public record Counters(long forwarded, long parked, long dropped, long errors, long unordered) {}

    /**
     * Of "sasl" and "tls".
     *
     * @param has what this worker's connections have
     * @param due what the storm.yaml of its node asks for
     */
    public record Messaging(List<String> has, List<String> due) {
        /** Storm connects by the configuration of the topology, which may differ from that of the node. */
        public static Messaging of(Map<String, Object> topology, Map<String, Object> node) {
            return new Messaging(guards(topology), guards(node));
        }

        private static List<String> guards(Map<String, Object> conf) {
            List<String> found = new ArrayList<>();
            if (isTrue(conf, Config.STORM_MESSAGING_NETTY_AUTHENTICATION)) {
                found.add("sasl");
            }
            if (isTrue(conf, Config.STORM_MESSAGING_NETTY_TLS_ENABLE)) {
                found.add("tls");
            }
            return List.copyOf(found);
        }

        private static boolean isTrue(Map<String, Object> conf, String key) {
            return Boolean.TRUE.equals(conf.get(key));
        }

        private void write(JsonText json) {
            json.open("messaging")
                    .list("has", has, JsonText::value)
                    .list("due", due, JsonText::value)
                    .close();
        }
    }

    /** The same with other counters. */
    public WorkerAck with(Counters others) {
        return with(timeMs, others);
    }

    /** The same at another time. */
    public WorkerAck at(long unixMs) {
        return with(unixMs, counters);
    }

    private WorkerAck with(long unixMs, Counters others) {
        return new WorkerAck(
                topology,
                slot,
                pid,
                incarnation,
                hooks,
                unixMs,
                cluster,
                epoch,
                version,
                entries,
                executors,
                pinned,
                ways,
                others,
                fault,
                error,
                storm,
                off,
                messaging);
    }

    public byte[] toJson() {
        JsonText json = new JsonText()
                .open()
                .put("topology", topology)
                .put("slot", slot)
                .put("pid", pid)
                .put("incarnation", incarnation)
                .put("hooks", hooks)
                .put("speaks", Protocol.SPEAKS)
                .put("time_ms", timeMs)
                .put("cluster", cluster)
                .put("epoch", epoch)
                .put("version", version)
                .list("entries", entries, (out, entry) -> {
                    out.open().put("id", entry.id()).put("state", entry.state()).put("assigned", entry.assigned());
                    if (entry.awaitsAhead()) {
                        out.put("awaits_ahead", true);
                    }
                    out.close();
                })
                .list("executors", executors, ExecutorId::write)
                .list(
                        "pinned",
                        pinned,
                        (out, pin) -> out.open()
                                .put("executor", pin.executor(), ExecutorId::write)
                                .put("reason", pin.reason())
                                .close())
                .list(
                        "ways",
                        ways,
                        (out, each) -> out.open()
                                .put("executor", each.executor(), ExecutorId::write)
                                .put("way", each.way())
                                .close());
        json.open("counters")
                .put("forwarded", counters.forwarded())
                .put("parked", counters.parked())
                .put("dropped", counters.dropped())
                .put("errors", counters.errors())
                .put("unordered", counters.unordered())
                .close()
                .put("fault", fault)
                .put("error", error)
                .put("storm", storm);
        if (off != null) {
            json.put("off", off);
        }
        if (messaging != null) {
            messaging.write(json);
        }
        return json.close().bytes();
    }
}
