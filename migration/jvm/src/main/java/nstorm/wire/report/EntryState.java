package nstorm.wire.report;

/** How far a worker is with an entry, with respect to the entry's phase in the plan it applied. */
public enum EntryState {
    NONE,
    READY,
    ROUTED,
    DRAINED,
    LOADED,
    REFUSED,
    STOPPED,
    STUCK,
    /** The entry's phase or way is of a later version: this worker has changed nothing for it. */
    NOT_UNDERSTOOD
}
