package nstorm.memory;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import nstorm.memory.Origins.Kind;
import nstorm.memory.Origins.Origin;

/** What a walk has seen a bolt do; while it prepares, only what outlasts that. */
final class Findings {
    private record Started(String by, BitSet reached) {}

    final Set<String> fields = new TreeSet<>();
    final Set<String> statics = new TreeSet<>();
    final Set<String> tuples = new TreeSet<>();
    private final List<Started> started = new ArrayList<>();
    /** Fields in which it finds something by what the input carries: no batch needs that. */
    final Set<String> lookedUp = new TreeSet<>();

    String thread;
    String undecided;
    /** What no look at the heap can heal, as a sentence without its subject. */
    String stays;

    String outside;
    /** Whether it compares values by identity: those that travel are other objects. */
    boolean identity;

    private boolean preparing = true;

    void prepared() {
        preparing = false;
    }

    void changed(Origin of, boolean tuple, boolean bolt) {
        if (preparing) {
            if (bolt) {
                undecided("puts itself into " + of.name() + ", for the whole JVM");
            }
            return;
        }
        (of.kind() == Kind.STATIC ? statics : fields).add(of.name());
        if (tuple) {
            tuples.add(of.name());
        }
    }

    /** An iterator in a field moves on by being read. */
    void read(String field, LiveTypes valueOrNull) {
        if (!preparing && valueOrNull != null && valueOrNull.cursor()) {
            fields.add(field);
        }
    }

    void undecided(String why) {
        if (undecided == null) {
            undecided = why;
        }
    }

    void handsTupleTo(String to, boolean ofTheJdk) {
        if (!preparing && ofTheJdk) {
            stays("hands tuples to " + to + ", which may ack them later");
        } else if (!preparing) {
            undecided("hands tuples to " + to);
        }
    }

    void stays(String why) {
        if (stays == null) {
            stays = why;
        }
    }

    /** What is done for each tuple: in prepare each copy does it for itself. */
    void staysWhileExecuting(String why) {
        if (!preparing) {
            stays(why);
        }
    }

    void actsOutside(String by) {
        stopsFirst("acts outside its heap (" + by + ")");
    }

    /** For that its source has to stop before its target begins. */
    void stopsFirst(String why) {
        if (!preparing && outside == null) {
            outside = why;
        }
    }

    boolean isPreparing() {
        return preparing;
    }

    void readsBack(String name) {
        if (!preparing) {
            statics.add(name);
        }
    }

    void looksUp(String field) {
        lookedUp.add(field);
    }

    /** Whether it matters what code does to which this is given. */
    boolean mindsCallOf(BitSet reached, Origins origins) {
        return preparing
                ? reached.get(Origins.BOLT)
                : reached.stream().anyMatch(one -> !origins.is(one, Kind.MADE) && !origins.is(one, Kind.VALUE));
    }

    void startsThread(String by, BitSet reached) {
        if (preparing) {
            started.add(new Started(by, reached));
        } else {
            thread = by;
        }
    }

    /**
     * Judges the threads that were started while preparing. One that the whole JVM shares leads to a static field and
     * to nothing of this bolt.
     *
     * @param owned all that the fields of the bolt lead to
     */
    void judgeThreads(BitSet owned, Origins origins) {
        for (Started one : started) {
            BitSet reached = origins.closure(one.reached);
            boolean shared = reached.stream().anyMatch(origin -> origins.is(origin, Kind.STATIC));
            boolean own = reached.intersects(owned)
                    || reached.stream()
                            .anyMatch(origin -> origins.is(origin, Kind.BOLT) || origins.is(origin, Kind.FIELD));
            if (own || !shared) {
                thread = one.by;
            }
        }
    }
}
