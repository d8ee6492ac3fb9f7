package nstorm.proof;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import nstorm.memory.BoltFields;
import nstorm.proof.GraphWalk.Found;

/**
 * What the fields that travel lead to, as hashes that are the same in each JVM. Source and target each make them by
 * their own walk over the objects, and they are compared. The stream between the two has no part in it.
 */
final class TravelProof {
    /** Of CPU. Larger than for a fingerprint: what is too large for this does not travel. */
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(2);

    /** One field of one task's bolt, by the hash of its content and by the first objects in it. */
    private record Part(String name, long hash, Outline outline) {}

    private final List<Part> parts = new ArrayList<>();
    private final List<Found> found = new ArrayList<>();
    private final Set<Class<?>> classes = new HashSet<>();
    private final Set<Integer> shared = new TreeSet<>();

    private TravelProof() {}

    /**
     * Walks the fields of each bolt, in their order.
     *
     * @param othersOrNull the objects that belong to fields that stay
     */
    static TravelProof of(Subject subject, Set<String> names, Seen othersOrNull) {
        TravelProof proof = new TravelProof();
        GraphWalk walk = new GraphWalk(false, subject.given(), proof.classes, LIMIT_NANOS);
        walk.beside(othersOrNull);
        for (int task = 0; task < subject.bolts().size(); task++) {
            for (Field field : BoltFields.named(subject.bolts().get(task), names)) {
                Outline outline = new Outline(Outline.FEW);
                walk.outline(outline);
                Found one = walk.root(
                        field.getName(), BoltFields.get(field, subject.bolts().get(task)));
                proof.found.add(one);
                proof.parts.add(new Part(task + " " + field.getName(), one.hash, outline));
            }
        }
        proof.shared.addAll(walk.shared);
        return proof;
    }

    /** The roots of the others that also lead to objects of these fields. */
    Set<Integer> shared() {
        return shared;
    }

    Set<Class<?>> classes() {
        return classes;
    }

    /** Why this may not travel, though it can be written: it is bound to this host, or more than can be looked at. Null if it may. */
    String obstacle() {
        for (int i = 0; i < found.size(); i++) {
            Found one = found.get(i);
            String why = one.obstacle != null
                    ? one.obstacle
                    : one.cut ? parts.get(i).name + " leads to more than can be looked at in time" : one.foreign;
            if (why != null) {
                return why;
            }
        }
        return null;
    }

    void write(DataOutputStream out) throws IOException {
        out.writeInt(parts.size());
        for (Part part : parts) {
            out.writeUTF(part.name);
            out.writeLong(part.hash);
            part.outline.write(out);
        }
    }

    /** Compares with what {@link #write} has written of the source's; null if both are the same, else what is not, with its path. */
    String difference(DataInputStream in) throws IOException {
        int count = in.readInt();
        if (count != parts.size()) {
            return "it is of another number of fields";
        }
        for (Part part : parts) {
            String name = in.readUTF();
            long hash = in.readLong();
            Outline outline = Outline.read(in);
            if (!name.equals(part.name)) {
                return "it is of other fields";
            } else if (hash != part.hash) {
                String difference = outline.difference(part.outline);
                return difference == null ? part.name + " is another one, deep in it" : difference;
            }
        }
        return null;
    }
}
