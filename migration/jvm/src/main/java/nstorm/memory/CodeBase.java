package nstorm.memory;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Which classes are the user's own, of all in a topology's jar: those whose packages begin as the bolt's does, or as
 * one above it. The common begin has two names, or three where many projects share two. All others are libraries.
 */
public final class CodeBase {
    private static final Set<String> SHARED =
            Set.of("org.apache", "com.github", "io.github", "org.example", "com.google");

    private final ClassLoader loader;
    private final Set<String> prefixes = new HashSet<>();

    public CodeBase(Class<?> bolt) {
        loader = bolt.getClassLoader();
        for (Class<?> at = bolt; at != null && !Bytecode.isOfTheJdk(LiveTypes.nameOf(at)); at = at.getSuperclass()) {
            prefixes.add(prefix(at.getName()));
        }
    }

    /** Whether it comes with the JDK, whatever its name. */
    public static boolean ofTheJdk(Class<?> type) {
        return type.getClassLoader() == null || type.getClassLoader() == ClassLoader.getPlatformClassLoader();
    }

    public boolean has(Class<?> type) {
        return type.getClassLoader() == loader && has(type.getName());
    }

    /** @param name with dots or slashes */
    boolean has(String name) {
        return prefixes.contains(prefix(name.replace('/', '.')));
    }

    /** The classes within a class, but for those that cannot be loaded: as without a library, no code of theirs runs. */
    public static List<Class<?>> within(Class<?> type) {
        try {
            return List.of(type.getDeclaredClasses());
        } catch (LinkageError e) { // of one; it does not name the others
            List<Class<?>> found = new ArrayList<>();
            for (String name : Bytecode.within(type)) {
                try {
                    found.add(Class.forName(name.replace('/', '.'), false, type.getClassLoader()));
                } catch (ClassNotFoundException | LinkageError missing) {
                    // This one.
                }
            }
            return found;
        }
    }

    private static String prefix(String name) {
        String[] names = name.substring(0, Math.max(name.lastIndexOf('.'), 0)).split("\\.");
        String two = String.join(".", Arrays.copyOf(names, Math.min(2, names.length)));
        return SHARED.contains(two) ? String.join(".", Arrays.copyOf(names, Math.min(3, names.length))) : two;
    }
}
