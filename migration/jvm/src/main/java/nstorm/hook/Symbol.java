package nstorm.hook;

/**
 * A class, field or method that must exist, by its Java names.
 *
 * @param owner      the class, with dots
 * @param member     field or method, {@code <init>} for constructors; null for the class itself
 * @param descriptor JVM descriptor of the member; null if any will do
 */
public record Symbol(String owner, String member, String descriptor) {

    @Override
    public String toString() {
        return owner + (member == null ? "" : "." + member) + (descriptor == null ? "" : " " + descriptor);
    }
}
