package nstorm.wire.report;

/** How far a worker is with an entry, with respect to the entry's phase in the plan it applied. */
public enum EntryState {
    NONE, READY, ROUTED, DRAINED, STOPPED, STUCK
}
