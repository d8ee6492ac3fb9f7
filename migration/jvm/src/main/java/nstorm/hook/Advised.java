package nstorm.hook;

/**
 * A method of Storm that an advice is woven into.
 *
 * @param method           its name, {@code <init>} for the constructors
 * @param descriptorOrNull its JVM descriptor where the name alone is not enough
 * @param observes         it only counts: a JVM without this method has all other hooks
 */
public record Advised(String type, String method, String descriptorOrNull, Class<?> advice, boolean observes) {

    /** A method that the JVM must have. */
    public Advised(String type, String method, String descriptorOrNull, Class<?> advice) {
        this(type, method, descriptorOrNull, advice, false);
    }

    public Symbol symbol() {
        return new Symbol(type, method, descriptorOrNull);
    }
}
