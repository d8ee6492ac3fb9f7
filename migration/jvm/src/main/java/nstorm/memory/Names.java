package nstorm.memory;

import java.util.Set;

/** Names of classes and methods as a text, many to a line. */
final class Names {
    private Names() {}

    /** The names in a text, in which blanks and ends of lines are between them; none may be there twice. */
    static Set<String> of(String text) {
        return Set.of(text.strip().split("\\s+"));
    }
}
