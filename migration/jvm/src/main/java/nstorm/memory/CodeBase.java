package nstorm.memory;

import java.util.Arrays;

/** Which classes are the user's own, of all that a topology's jar holds: those whose packages begin with the same two names as the bolt's. */
public final class CodeBase {
    private static final int NAMES = 2;

    private final ClassLoader loader;
    private final String prefix;

    public CodeBase(Class<?> bolt) {
        loader = bolt.getClassLoader();
        prefix = prefix(bolt);
    }

    public boolean has(Class<?> type) {
        return type.getClassLoader() == loader && prefix(type).equals(prefix) && !Bytecode.isOfTheJdk(LiveTypes.nameOf(type));
    }

    private static String prefix(Class<?> type) {
        String[] names = type.getPackageName().split("\\.");
        return String.join(".", Arrays.copyOf(names, Math.min(NAMES, names.length)));
    }
}
