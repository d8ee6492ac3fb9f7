package nstorm.wire.report;

import nstorm.wire.ExecutorId;

/**
 * What one executor has used since its JVM started.
 *
 * @param pinned why the executor may not move, or null
 */
public record ExecutorLoad(ExecutorId executor, String component, long cpuNs, long queue, String pinned) {}
