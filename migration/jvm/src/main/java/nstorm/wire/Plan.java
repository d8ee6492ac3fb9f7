package nstorm.wire;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.WireException;

/**
 * A topology's plan: an overlay of moves on Storm's own assignment, of one (epoch, version).
 *
 * @param notUnderstood entries as they were read whose phase or way this JVM does not know; empty before {@link #understood}
 */
public record Plan(
        String cluster, long epoch, long version, String topology, List<Entry> entries, List<Entry> notUnderstood) {

    public Plan(String cluster, long epoch, long version, String topology, List<Entry> entries) {
        this(cluster, epoch, version, topology, entries, List.of());
    }

    /** Reads a plan as it stands in ZooKeeper. */
    public static Plan parse(byte[] json) throws WireException {
        return JsonInput.parse(json, Plan::read);
    }

    public boolean newerThan(long otherEpoch, long otherVersion) {
        return epoch != otherEpoch ? epoch > otherEpoch : version > otherVersion;
    }

    /**
     * The plan that this JVM follows: an entry whose phase or way it does not know stays as it last understood it.
     * One that it never did is left out.
     *
     * @param last the plan that this JVM followed until now, or null
     */
    public Plan understood(Plan last) {
        List<Entry> followed = new ArrayList<>();
        List<Entry> unknown = new ArrayList<>();
        for (Entry entry : entries) {
            if (entry.understood()) {
                followed.add(entry);
            } else {
                unknown.add(entry);
                Entry before = last == null || !last.cluster.equals(cluster) ? null : last.entry(entry.id());
                if (before != null && before.executor().equals(entry.executor())) {
                    followed.add(before);
                }
            }
        }
        return unknown.isEmpty()
                ? this
                : new Plan(cluster, epoch, version, topology, List.copyOf(followed), List.copyOf(unknown));
    }

    private Entry entry(String id) {
        return entries.stream()
                .filter(entry -> entry.id().equals(id))
                .findFirst()
                .orElse(null);
    }

    static Plan read(JsonInput in) throws IOException, WireException {
        String cluster = null;
        Long epoch = null;
        Long version = null;
        String topology = null;
        List<Entry> entries = List.of();
        in.beginObject();
        for (String key = in.nextKey(); key != null; key = in.nextKey()) {
            switch (key) {
                case "cluster" -> cluster = in.text();
                case "epoch" -> epoch = in.whole(0, Long.MAX_VALUE);
                case "version" -> version = in.whole(-1, Long.MAX_VALUE);
                case "topology" -> topology = in.name();
                case "entries" -> entries = in.list(Entry::read);
                default -> in.pass();
            }
        }
        Plan plan = new Plan(
                in.required(cluster, "cluster"),
                in.required(epoch, "epoch"),
                in.required(version, "version"),
                in.required(topology, "topology"),
                entries);
        Set<Object> seen = new HashSet<>();
        for (Entry entry : entries) {
            if (!seen.add(entry.executor()) || !seen.add(entry.id())) {
                throw in.wrong("entries has " + entry.id() + " or executor " + entry.executor() + " twice");
            }
        }
        return plan;
    }
}
