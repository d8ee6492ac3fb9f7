package nstorm.wire;

/** What Storm's assignment says of one executor: its slot and its start time. */
public record Assigned(Slot slot, long startSecs) {
}
