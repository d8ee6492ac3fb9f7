package nstorm.wire.report;

/** Tuples that a source task sent to those tasks of a component which are not named one by one. */
public record FoldedTraffic(int source, String component, long tuples) {}
