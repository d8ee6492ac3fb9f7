package nstorm.state;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import nstorm.memory.CodeBase;

/**
 * The JDK's hash tables of one state. Where a key leads back to its table, an object stream puts it in before its fields are read. It then stands in the
 * place of another hash code, and is never found again.
 */
final class HashTables {
    private final List<Object> tables = new ArrayList<>();

    /** Takes an object whose content has been read, as far as it does not lead back to it. */
    void read(Object object) {
        if (isTable(object) && !keys(object).stream().allMatch(Plain::is)) {
            tables.add(object);
        }
    }

    /** @throws IOException if a table does not find what it holds, now that all is read */
    void check() throws IOException {
        for (Object table : tables) {
            Collection<?> keys = keys(table);
            for (Object key : keys) {
                if (!Plain.is(key) && !(table instanceof Map<?, ?> map ? map.containsKey(key) : keys.contains(key))) {
                    throw new IOException("has a " + table.getClass().getSimpleName()
                            + " that does not find its own keys, which lead back to it");
                }
            }
        }
    }

    /** To ask a user's own would run the user's code. */
    private static boolean isTable(Object object) {
        boolean any = object instanceof HashMap<?, ?>
                || object instanceof HashSet<?>
                || object instanceof Hashtable<?, ?>
                || object instanceof ConcurrentHashMap<?, ?>
                || object.getClass().getName().startsWith("java.util.ImmutableCollections$")
                        && (object instanceof Map<?, ?> || object instanceof Set<?>);
        return any && CodeBase.ofTheJdk(object.getClass());
    }

    private static Collection<?> keys(Object table) {
        return table instanceof Map<?, ?> map ? map.keySet() : (Collection<?>) table;
    }
}
