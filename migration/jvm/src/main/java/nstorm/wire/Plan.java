package nstorm.wire;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import nstorm.wire.json.JsonFields;
import nstorm.wire.json.WireException;

/** A topology's plan: an overlay of moves on Storm's own assignment, of one (epoch, version). */
public record Plan(String cluster, long epoch, long version, String topology, List<Entry> entries) {

    /** Reads a plan as it stands in ZooKeeper. */
    public static Plan parse(byte[] json) throws WireException {
        return from(JsonFields.parse(json));
    }

    public boolean newerThan(long otherEpoch, long otherVersion) {
        return epoch != otherEpoch ? epoch > otherEpoch : version > otherVersion;
    }

    static Plan from(JsonFields plan) throws WireException {
        plan.only("cluster", "epoch", "version", "topology", "entries");
        List<Entry> entries = plan.list("entries", Plan::entry);
        Set<Object> seen = new HashSet<>();
        for (Entry entry : entries) {
            if (!seen.add(entry.executor()) || !seen.add(entry.id())) {
                throw plan.wrong("entries", "has " + entry.id() + " or executor " + entry.executor() + " twice");
            }
        }
        return new Plan(plan.text("cluster"), plan.whole("epoch", 0), plan.whole("version", 0),
            plan.text("topology"), entries);
    }

    private static Entry entry(JsonFields entry) throws WireException {
        entry.only("id", "executor", "from", "to", "phase", "base", "void");
        JsonFields base = entry.pair("base");
        return new Entry(entry.text("id"), ExecutorId.read(entry, "executor"), Slot.read(entry, "from"), Slot.read(entry, "to"),
            entry.choice("phase", Phase.class), Slot.read(base, "0"), base.whole("1", 0), entry.textOrNull("void"));
    }
}
