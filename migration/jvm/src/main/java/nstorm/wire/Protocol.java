package nstorm.wire;

/** Which formats and phases this JVM understands; PROTOCOL.md lists what came with which version. */
public final class Protocol {

    /** The version of the protocol; every JVM reports it, and the controller writes only what all of them understand. */
    public static final long SPEAKS = 2;

    private Protocol() {}
}
