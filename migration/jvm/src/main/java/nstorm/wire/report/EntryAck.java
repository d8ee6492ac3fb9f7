package nstorm.wire.report;

import nstorm.wire.Slot;

/**
 * A worker's word on one entry.
 *
 * @param assigned where Storm's own assignment, as this worker last read it, has the executor; null if nowhere
 * @param awaitsAhead whether a target is ready but for what the source sends of its state before it stands still
 */
public record EntryAck(String id, EntryState state, Slot assigned, boolean awaitsAhead) {}
