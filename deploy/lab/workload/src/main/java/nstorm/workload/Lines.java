package nstorm.workload;

import java.io.Serializable;
import java.util.Map;

/** Makes the lines that a source repeats for ever: what a task emits is known from how much it has emitted. */
@FunctionalInterface
interface Lines extends Serializable {
    String[] of(Map<String, Object> conf, int task);
}
