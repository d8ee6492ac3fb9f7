package nstorm.memory;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One block of {@code reviewed.txt}, whose head explains its lines.
 *
 * @param lines what stands after each key; a key that stands more than once has several
 */
record ReviewedClass(String name, Map<String, List<String>> lines) {
    private static final String FILE = "reviewed.txt";
    private static final Set<String> KEYS =
            Set.of("jar", "way", "with", "tuples", "again", "only", "closes", "why", "code");

    /** All blocks by class name, in the order of the file. */
    static Map<String, ReviewedClass> all() throws IOException {
        Map<String, ReviewedClass> all = new LinkedHashMap<>();
        try (InputStream file = ReviewedClass.class.getResourceAsStream(FILE);
                BufferedReader reader = new BufferedReader(new InputStreamReader(file, StandardCharsets.UTF_8))) {
            ReviewedClass current = null;
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (line.startsWith("[")) {
                    current = new ReviewedClass(line.substring(1, line.length() - 1), new LinkedHashMap<>());
                    if (all.put(current.name, current) != null) {
                        throw new IOException(FILE + " has " + current.name + " twice");
                    }
                } else if (!line.isBlank() && !line.startsWith("#")) {
                    current.add(line.split(" +", 2));
                }
            }
        }
        return all;
    }

    private void add(String[] keyAndText) throws IOException {
        if (!KEYS.contains(keyAndText[0])) {
            throw new IOException(FILE + ": " + name + " has an unknown line " + keyAndText[0]);
        }
        lines.merge(keyAndText[0], List.of(keyAndText[1]), (before, more) -> {
            List<String> both = new ArrayList<>(before);
            both.addAll(more);
            return both;
        });
    }

    String one(String key) {
        return all(key).get(0);
    }

    List<String> all(String key) {
        return lines.getOrDefault(key, List.of());
    }

    /** The names after a key; none if there is no such line. */
    Set<String> names(String key) {
        Set<String> names = new LinkedHashSet<>();
        all(key).forEach(line -> names.addAll(List.of(line.split(" "))));
        return names;
    }

    /** The hashes of the code that was read, each with the versions of the jar that have it. */
    Map<String, List<String>> versionsByHash() {
        Map<String, List<String>> versions = new LinkedHashMap<>();
        for (String line : all("code")) {
            List<String> parts = List.of(line.split(" +"));
            versions.put(parts.get(0), parts.subList(1, parts.size()));
        }
        return versions;
    }

    /** The hash of the code as this loader has it; null if a class is missing. */
    String hash(ClassLoader loader) throws IOException {
        MessageDigest digest = sha256();
        Set<String> types = new LinkedHashSet<>(Set.of(name));
        types.addAll(names("with"));
        for (String type : types) {
            try (InputStream file = loader.getResourceAsStream(type.replace('.', '/') + ".class")) {
                if (file == null) {
                    return null;
                }
                digest.update(file.readAllBytes());
            }
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every JVM has it
        }
    }
}
