package nstorm.wire;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.WireException;

/** The plans of a node as texts, found by the index that stands before them: whoever needs one decodes no other. */
public record PlanTexts(String cluster, List<PlanText> plans) {

    private static final byte[] BEFORE_PLANS = "\"plans\":[".getBytes(StandardCharsets.UTF_8);
    private static final int AFTER_PLANS = "]}".length();

    /** The JSON of one plan. */
    public record PlanText(String topology, byte[] text) {}

    private record Indexed(String topology, int bytes) {

        static Indexed read(JsonInput in) throws IOException, WireException {
            in.beginArray();
            Indexed read = new Indexed(in.name(), (int) in.whole(0, Integer.MAX_VALUE));
            in.endArray();
            return read;
        }
    }

    private record Head(String cluster, List<Indexed> index) {

        static Head read(JsonInput in) throws IOException, WireException {
            String cluster = null;
            List<Indexed> index = null;
            in.beginObject();
            for (String key = in.nextKey(); key != null && !key.equals("plans"); key = in.nextKey()) {
                switch (key) {
                    case "cluster" -> cluster = in.text();
                    case "index" -> index = in.list(Indexed::read);
                    default -> in.pass();
                }
            }
            if (index != null && cluster == null) {
                throw new WireException("cluster is missing");
            }
            return new Head(cluster, index);
        }
    }

    /**
     * Takes a LocalPlan apart.
     *
     * @return null if it has no index: agents that speak version 1 write none
     */
    public static PlanTexts of(byte[] localPlan) throws WireException {
        Head head = JsonInput.parseHead(localPlan, Head::read);
        if (head.index == null) {
            return null;
        }
        long bytes = head.index.stream().mapToLong(Indexed::bytes).sum() + Math.max(head.index.size() - 1, 0);
        long from = localPlan.length - AFTER_PLANS - bytes;
        long before = from - BEFORE_PLANS.length;
        if (before < 0 || !Arrays.equals(BEFORE_PLANS, Arrays.copyOfRange(localPlan, (int) before, (int) from))) {
            throw new WireException("index does not fit the plans");
        }
        List<PlanText> plans = new ArrayList<>();
        int at = (int) from;
        for (Indexed one : head.index) {
            plans.add(new PlanText(one.topology, Arrays.copyOfRange(localPlan, at, at + one.bytes)));
            at += one.bytes + 1;
        }
        return new PlanTexts(head.cluster, plans);
    }
}
