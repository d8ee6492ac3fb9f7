package nstorm.state;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** The maps of a {@link FirstPass} at the target, for one state: it takes them, and changes them. */
public final class FirstMaps {
    private final long id;
    private final List<FirstMap> maps;

    private FirstMaps(long id, List<FirstMap> maps) {
        this.id = id;
        this.maps = maps;
    }

    /**
     * Reads what {@link FirstPass#write} has written.
     *
     * @return null of no bytes, and of zeros, which are padding
     * @throws IOException if the bytes are something else
     */
    public static FirstMaps orNull(byte[] firstPass) throws IOException {
        PlainInput in = new PlainInput(new ByteArrayInputStream(firstPass), firstPass.length);
        try {
            long id = firstPass.length == 0 ? FirstPass.NONE : in.eightBytes();
            if (id == FirstPass.NONE) {
                return null;
            }
            List<FirstMap> maps = new ArrayList<>();
            for (int left = in.number(); left > 0; left--) {
                maps.add(PlainMaps.read(in));
            }
            if (!in.atEnd()) {
                throw new IOException("more than a first pass");
            }
            return new FirstMaps(id, maps);
        } catch (RuntimeException e) {
            throw new IOException(e);
        }
    }

    long id() {
        return id;
    }

    /** Gives away a map, which is no longer as it was then. */
    FirstMap take(int place) throws IOException {
        FirstMap map = maps.set(place, null);
        if (map == null) {
            throw new IOException("this map of the first pass is taken already");
        }
        return map;
    }
}
