package nstorm.entry;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import net.bytebuddy.dynamic.ClassFileLocator;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;
import org.objectweb.asm.tree.MethodNode;

/**
 * The code of Storm that the hooks are made for. Of each method that they are woven into or rely on, there is its hash in
 * each known version. Names alone do not show that a method does something else by now.
 */
final class Fingerprints {
    private static final String FILE = "fingerprints.txt";

    /** By class and method, the versions of each hash; some versions may lack the method. */
    private final Map<String, Map<String, Set<String>>> known = new TreeMap<>();

    private final Set<String> versions = new LinkedHashSet<>();

    private Fingerprints(String text) {
        String owner = "";
        for (String line : text.lines().toList()) {
            List<String> words = List.of(line.strip().split(" +"));
            if (line.startsWith("versions ")) {
                versions.addAll(words.subList(1, words.size()));
            } else if (words.size() == 1) {
                owner = words.get(0);
            } else if (!line.startsWith("#")) {
                known.computeIfAbsent(owner + "." + words.get(0), method -> new LinkedHashMap<>())
                        .put(words.get(1), words.size() == 2 ? versions : Set.copyOf(words.subList(2, words.size())));
            }
        }
    }

    /** Those in the jar. */
    static Fingerprints shipped() throws IOException {
        try (InputStream file = Fingerprints.class.getResourceAsStream(FILE)) {
            return new Fingerprints(new String(file.readAllBytes(), StandardCharsets.UTF_8));
        }
    }

    /**
     * What a Storm's code is.
     *
     * @param versions those whose code it has throughout
     * @param unknown  the methods whose code is of no version, or that all versions have and this Storm has not
     */
    record Verdict(Set<String> versions, List<String> unknown) {}

    /** Judges the code of one kind of JVM. */
    Verdict of(HookSet hooks, ClassFileLocator locator) throws IOException {
        Map<String, String> found = hashes(hooks, locator);
        Set<String> methods = new TreeSet<>(found.keySet());
        List<Symbol> symbols = symbols(hooks);
        known.keySet().stream()
                .filter(method -> symbols.stream().anyMatch(symbol -> isOf(method, symbol)))
                .forEach(methods::add);
        Set<String> fitting = new LinkedHashSet<>(versions);
        List<String> unknown = new ArrayList<>();
        for (String method : methods) {
            Set<String> having = having(method, found.get(method));
            if (having.isEmpty()) {
                unknown.add(shortName(method));
            }
            fitting.retainAll(having);
        }
        return new Verdict(fitting, unknown);
    }

    /** The versions in which the method has this hash, or that have no such method. */
    private Set<String> having(String method, String hashOrNull) {
        Map<String, Set<String>> codes = known.getOrDefault(method, Map.of());
        if (hashOrNull != null) {
            return codes.getOrDefault(hashOrNull, Set.of());
        }
        Set<String> without = new LinkedHashSet<>(versions);
        codes.values().forEach(without::removeAll);
        return without;
    }

    /** Of the classes that a kind of JVM needs, the hash of each method that counts, by class, name and descriptor. */
    static Map<String, String> hashes(HookSet hooks, ClassFileLocator locator) throws IOException {
        Map<String, List<Symbol>> byOwner = symbols(hooks).stream()
                .collect(Collectors.groupingBy(Symbol::owner, TreeMap::new, Collectors.toList()));
        Map<String, String> all = new TreeMap<>();
        for (Map.Entry<String, List<Symbol>> each : byOwner.entrySet()) {
            ClassFileLocator.Resolution file = locator.locate(each.getKey());
            if (file.isResolved()) {
                CodeHash.of(file.resolve(), method -> each.getValue().stream().anyMatch(one -> isOf(method, one)))
                        .forEach((method, hash) -> all.put(each.getKey() + "." + method, hash));
            }
        }
        return all;
    }

    private static List<Symbol> symbols(HookSet hooks) {
        List<Symbol> symbols = new ArrayList<>(hooks.reliedOn());
        hooks.advised().stream().map(Advised::symbol).forEach(symbols::add);
        return symbols;
    }

    private static boolean isOf(MethodNode method, Symbol symbol) {
        return symbol.member() == null
                || method.name.equals(symbol.member())
                        && (symbol.descriptor() == null || method.desc.equals(symbol.descriptor()));
    }

    private static boolean isOf(String method, Symbol symbol) {
        String inClass = symbol.owner() + ".";
        if (!method.startsWith(inClass)) {
            return false;
        }
        String name = method.substring(inClass.length());
        return symbol.member() == null
                || name.startsWith(symbol.member() + "(")
                        && (symbol.descriptor() == null || name.equals(symbol.member() + symbol.descriptor()));
    }

    /** {@code Slot.handleRunning}: what a person looks for. */
    private static String shortName(String method) {
        String name = method.substring(0, method.indexOf('('));
        return name.substring(name.lastIndexOf('.', name.lastIndexOf('.') - 1) + 1);
    }
}
