package nstorm.proof;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The first objects that a walk has met, each with its way from the bolt and what it was. That is enough to name later what has changed.
 */
final class Outline {
    /** Of one that is sent: enough for the way to what is wrong. */
    static final int FEW = 40;

    static final int MANY = 100;

    /**
     * @param parent the line of the object that leads there, −1 for a root
     * @param what what it is, for a sentence; with how many elements, if there are any
     * @param hash of a value
     */
    private record Line(int parent, String step, String what, int size, long hash) {
        @Override
        public String toString() {
            return size < 0 ? what : String.format(Locale.ROOT, "%s of %,d", what, size);
        }
    }

    private final List<Line> lines = new ArrayList<>();
    private final int most;

    Outline(int most) {
        this.most = most;
    }

    /** Adds a line; returns its number, −1 once there is no room. */
    int add(int parent, String step, String what, int size, long hash) {
        if (!hasRoom()) {
            return -1;
        }
        lines.add(new Line(parent, step, what, size, hash));
        return lines.size() - 1;
    }

    void write(DataOutputStream out) throws IOException {
        out.writeInt(lines.size());
        for (Line line : lines) {
            out.writeInt(line.parent);
            out.writeUTF(line.step);
            out.writeUTF(line.what);
            out.writeInt(line.size);
            out.writeLong(line.hash);
        }
    }

    static Outline read(DataInputStream in) throws IOException {
        Outline outline = new Outline(FEW);
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            int parent = in.readInt();
            if (count > FEW || parent >= i) {
                throw new IOException("no outline of a graph");
            }
            outline.lines.add(new Line(parent, in.readUTF(), in.readUTF(), in.readInt(), in.readLong()));
        }
        return outline;
    }

    boolean hasRoom() {
        return lines.size() < most;
    }

    /** The first difference to a later outline, as {@code counts: HashMap of 0 → of 4,711}; null if no line shows one. */
    String difference(Outline later) {
        int both = Math.min(lines.size(), later.lines.size());
        for (int i = 0; i < both; i++) {
            Line was = lines.get(i);
            Line is = later.lines.get(i);
            String path = path(i);
            if (!path.equals(later.path(i))) {
                return later.path(is.parent < 0 ? i : is.parent) + " leads to something else";
            } else if (!was.what.equals(is.what) || was.size != is.size) {
                boolean same = was.what.equals(is.what);
                return path + ": " + was + " → " + (same ? String.format(Locale.ROOT, "of %,d", is.size) : is);
            } else if (was.hash != is.hash) {
                return path + ": " + was + " → another";
            }
        }
        return both == lines.size() && both == later.lines.size()
                ? null
                : (lines.size() > both ? path(both) + " is there no more" : later.path(both) + " is new");
    }

    /** The way from the bolt to a line, and a step on from there. */
    String pathOf(int line, Object stepOrNull) {
        String path = line < 0 ? "" : path(line);
        return stepOrNull == null ? path : path.isEmpty() ? stepOrNull.toString() : path + join(stepOrNull.toString());
    }

    private static String join(String step) {
        return step.startsWith("[") ? step : "." + step;
    }

    private String path(int line) {
        Line at = lines.get(line);
        if (at.parent < 0) {
            return at.step;
        }
        return path(at.parent) + join(at.step);
    }
}
