package nstorm.wire;

import java.io.IOException;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.WireException;

/** One executor in Storm's assignment: its slot and its start time. */
public record Assigned(Slot slot, long startSecs) {

    /** Reads a list of both; what a later version adds to it is passed over. */
    static Assigned read(JsonInput in) throws IOException, WireException {
        in.beginArray();
        Assigned assigned = new Assigned(Slot.read(in), in.whole(0, Long.MAX_VALUE));
        in.endArray();
        return assigned;
    }
}
