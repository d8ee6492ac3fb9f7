package nstorm.wire;

import java.io.IOException;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.WireException;

/** Where a worker JVM runs: a supervisor's id and a port of it. */
public record Slot(String supervisor, int port) {

    /** Reads {@code "<supervisor-id>:<port>"}, split at the last colon. */
    public static Slot parse(String text) {
        int colon = text.lastIndexOf(':');
        try {
            if (colon > 0 && namesANode(text.substring(0, colon))) {
                return new Slot(text.substring(0, colon), portOf(text.substring(colon + 1)));
            }
        } catch (NumberFormatException e) {
            // falls through to the one message
        }
        throw new IllegalArgumentException("not a slot <supervisor-id>:<port>: '" + text + "'");
    }

    /** Whether a supervisor's id may be the last name of a path in ZooKeeper, as those of Storm are. */
    private static boolean namesANode(String id) {
        return JsonInput.isName(id) && id.indexOf('/') < 0 && !id.equals(".") && !id.equals("..");
    }

    static Slot read(JsonInput in) throws IOException, WireException {
        try {
            return parse(in.text());
        } catch (IllegalArgumentException e) {
            throw in.wrong("is " + e.getMessage());
        }
    }

    private static int portOf(String digits) {
        int port = Integer.parseInt(digits);
        // parseInt takes signs and other scripts' digits too, which no program writes.
        if (port < 1 || port > 65535 || !digits.chars().allMatch(c -> c >= '0' && c <= '9')) {
            throw new NumberFormatException(digits);
        }
        return port;
    }

    @Override
    public String toString() {
        return supervisor + ":" + port;
    }
}
