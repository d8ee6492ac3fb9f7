package nstorm.hook;

/**
 * A method of Storm that an advice is woven into.
 *
 * @param method           its name, {@code <init>} for the constructors
 * @param descriptorOrNull its JVM descriptor where the name alone is not enough
 */
public record Advised(String type, String method, String descriptorOrNull, Class<?> advice) {}
