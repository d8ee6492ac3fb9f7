package nstorm.wire;

/** The phases of a move; PROTOCOL.md has the table. */
public enum Phase {
    OPEN,
    PREPARE,
    QUIET,
    SWITCH,
    DRAIN,
    CARRY,
    RECALL,
    STOP,
    SETTLE,
    UNDO,
    /** Of a later version of the protocol: this JVM changes nothing for such an entry, and reports it. */
    UNKNOWN;

    /** The phase of this name. */
    static Phase of(String name) {
        for (Phase phase : values()) {
            if (phase.name().equals(name)) {
                return phase;
            }
        }
        return UNKNOWN;
    }

    /** True where tuples go to the target. */
    public boolean routesToTarget() {
        return this == SWITCH || this == DRAIN || this == CARRY || this == RECALL || absorbed();
    }

    /** True where Nimbus puts the executor at the target in Storm's own assignment. */
    public boolean absorbed() {
        return this == STOP || this == SETTLE;
    }
}
