package nstorm.store;

import java.io.Closeable;
import java.io.IOException;

/** The plans where the agent has written them, in one of two forms. */
interface PlanFile extends Closeable {

    /** A value as of a change; null where the key is absent. */
    record Read(long change, byte[] value) {}

    /** The number of the newest change; cheap, for it is asked for in each poll. */
    long newest() throws IOException;

    /** The newest value of a key. */
    Read read(String key) throws IOException;
}
