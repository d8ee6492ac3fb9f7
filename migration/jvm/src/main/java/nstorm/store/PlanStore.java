package nstorm.store;

import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.Stream;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;
import nstorm.wire.PlanTexts;
import nstorm.wire.json.WireException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The plans of this node, as its agent stores them; keeps the last good ones whatever happens to the file.
 *
 * <p>For one thread. A poll that finds nothing new reads two longs. Of new ones a plan is decoded only if it is asked for
 * and its text is another one than before.
 */
public final class PlanStore {

    private static final Logger LOG = LoggerFactory.getLogger(PlanStore.class);
    private static final String KEY = "plan";
    /** How many polls see nothing of a file that was put in place of the open one. */
    private static final int POLLS_A_LOOK = 64;

    /** A plan as it was last decoded. */
    private record Decoded(byte[] text, Plan plan) {}

    /** Opens the file of the plans. */
    private interface Opening {
        PlanFile apply(Path file) throws IOException;
    }

    private final Path file;
    private final Opening opens;
    private final OffSwitch off;
    private final Predicate<String> reads;
    private final Predicate<String> keeps;
    private final Map<String, Decoded> decoded = new HashMap<>();
    private PlanFile open;
    private Object fileKey;
    private long seen = -1;
    private int untilLook;
    private boolean wasOff;
    /** Whether the plans were read since it was off: then every move that had begun before is known. */
    private boolean latched;

    private LocalPlan good;
    private String error;

    /**
     * Reads the plans of all topologies that the agent stores.
     *
     * @param keeps whether the last plan of a topology that is missing in the newest ones is still needed here
     */
    public PlanStore(Path planDir, Predicate<String> keeps) {
        this(planDir.resolve("data.mdb"), LmdbFile::new, planDir.resolveSibling(""), topology -> true, keeps);
    }

    private PlanStore(Path file, Opening opens, Path storeDir, Predicate<String> reads, Predicate<String> keeps) {
        this.file = file;
        this.opens = opens;
        off = new OffSwitch(storeDir);
        this.reads = reads;
        this.keeps = keeps;
    }

    /** Reads the plan of one topology, and keeps the last one if it is missing in the newest ones. */
    public static PlanStore of(Path planDir, String topology) {
        return new PlanStore(
                planDir.resolve("data.mdb"),
                LmdbFile::new,
                planDir.resolveSibling(""),
                topology::equals,
                topology::equals);
    }

    /** The same where the workers of this user have a folder of their own. */
    public static PlanStore ofUser(Path storeDir, String topology) {
        Path file = UserFolders.own(storeDir).resolve(topology + ".plan.bin");
        return new PlanStore(file, WholeFile::new, storeDir, topology::equals, topology::equals);
    }

    /**
     * Why no move concerns this JVM any more: it is switched off, and no plan that it has read has entries. Else null. Until it is switched
     * on no newer plan of such a topology is taken, so that this stays as it is.
     */
    public String inert() {
        String reason = off.reason();
        return reason == null || !latched || good != null && good.hasEntries() ? null : reason;
    }

    private void lookAtSwitch() {
        String reason = off.reason();
        if (wasOff && reason == null) {
            LOG.info("nstorm: switched on");
            seen = -1; // what was passed over counts now
        } else if (!wasOff && reason != null) {
            LOG.warn("nstorm: switched off: {}", reason);
        }
        wasOff = reason != null;
        latched = latched && wasOff;
    }

    /** The newest good plans, or the last good ones; null if there never were any. Never throws. */
    public LocalPlan poll() {
        try {
            lookAtSwitch();
            if (--untilLook < 0 || open == null) {
                look();
            }
            if (open.newest() != seen) {
                read();
            }
        } catch (EOFException e) {
            close();
            error = file + " was truncated";
        } catch (WireException e) {
            error = e.getMessage();
        } catch (IOException e) {
            // It may be a file that has been replaced by a sound one since.
            close();
            error = e.getMessage();
        } catch (RuntimeException e) {
            close();
            error = file + " cannot be read: " + e;
        }
        latched = wasOff;
        return good;
    }

    /** The next poll opens the file again. */
    private void close() {
        try (PlanFile closing = open) {
            open = null;
        } catch (IOException e) {
            error = e.getMessage();
        }
    }

    /** What was wrong with the newest plan; null while the last good one is the newest. */
    public String lastError() {
        return error;
    }

    private void look() throws IOException {
        untilLook = POLLS_A_LOOK;
        if (!Files.exists(file)) {
            close();
            throw new IOException("no plan at " + file);
        }
        Object key = key();
        if (open == null || !key.equals(fileKey)) {
            close();
            open = opens.apply(file);
            fileKey = key;
            seen = -1;
            if (!key.equals(key())) {
                // What was opened may be another file than the key's, and a later file may get that key. The file
                // system gives the number
                // of a deleted file to another one.
                throw new IOException(file + " was replaced while it was opened");
            }
        }
    }

    private Object key() throws IOException {
        return Files.readAttributes(file, BasicFileAttributes.class).fileKey();
    }

    private void read() throws IOException, WireException {
        PlanFile.Read read = open.read(KEY);
        seen = read.change();
        if (read.value() == null) {
            throw new WireException(file + " has no key " + KEY);
        }
        error = null;
        byte[] payload = Envelope.parse(read.value()).payload();
        PlanTexts texts = PlanTexts.of(payload);
        good = merged(texts == null ? LocalPlan.parse(payload) : decoded(texts));
    }

    private LocalPlan decoded(PlanTexts texts) throws WireException {
        List<Plan> plans = new ArrayList<>();
        for (PlanTexts.PlanText one : texts.plans()) {
            if (reads.test(one.topology())) {
                plans.add(decoded(one));
            }
        }
        decoded.keySet()
                .removeIf(topology ->
                        plans.stream().noneMatch(plan -> plan.topology().equals(topology)));
        return new LocalPlan(texts.cluster(), plans);
    }

    private Plan decoded(PlanTexts.PlanText one) throws WireException {
        Decoded last = decoded.get(one.topology());
        if (last != null && Arrays.equals(last.text, one.text())) {
            return last.plan;
        }
        Plan plan = Plan.parse(one.text());
        if (!plan.topology().equals(one.topology())) {
            throw new WireException("the plan of " + one.topology() + " is of topology " + plan.topology());
        }
        decoded.put(one.topology(), new Decoded(one.text(), plan));
        return plan;
    }

    /** The newest plans as this JVM understands them; {@link #error} has what was refused. */
    private LocalPlan merged(LocalPlan newest) {
        LocalPlan last = lastOf(newest.cluster());
        List<Plan> plans = new ArrayList<>();
        for (Plan plan : newest.plans()) {
            Plan held = last.of(plan.topology());
            // A JVM that has just started takes the first ones: others may follow them.
            if (latched && good != null && (held == null || held.entries().isEmpty())) {
                plans.add(held);
                continue;
            }
            String refusal = refusal(newest, plan, held);
            if (refusal != null) {
                error = "plan of " + plan.topology() + " refused: " + refusal;
            }
            plans.add(refusal == null ? plan.understood(held) : held);
        }
        plans.removeIf(Objects::isNull);
        List<Plan> kept = Stream.concat(last.plans().stream(), last.kept().stream())
                .filter(held -> newest.of(held.topology()) == null && keeps.test(held.topology()))
                .toList();
        return new LocalPlan(newest.cluster(), List.copyOf(plans), kept);
    }

    /** What was last good of this cluster. The agent guards the lineage: another cluster is an operator's wish. */
    private LocalPlan lastOf(String cluster) {
        if (good != null && good.cluster().equals(cluster)) {
            return good;
        }
        if (good != null) {
            LOG.warn(
                    "nstorm: this node now follows cluster {}: the plans of cluster {} are forgotten, "
                            + "Storm's own assignment stands",
                    cluster,
                    good.cluster());
        }
        return new LocalPlan(cluster, List.of());
    }

    private static String refusal(LocalPlan local, Plan plan, Plan held) {
        if (!plan.cluster().equals(local.cluster())) {
            return "it is of cluster " + plan.cluster() + ", not of " + local.cluster();
        }
        if (held != null && held.newerThan(plan.epoch(), plan.version())) {
            return plan.epoch() + "." + plan.version() + " after " + held.epoch() + "." + held.version();
        }
        return null;
    }
}
