package nstorm.wire.report;

/** Tuples from one component to another that were looked at as they left the worker, and their bytes. */
public record TupleSize(String source, String destination, long tuples, long bytes) {}
