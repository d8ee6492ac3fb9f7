package nstorm.entry;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import net.bytebuddy.dynamic.ClassFileLocator;

/** The jars of each version of Storm in storm-versions.tsv, which {@code make build/compared.stamp} copies. */
final class StormJars {
    private static final Path COMPARED = Path.of("../../build/compared");

    private StormJars() {}

    /** The versions in the order of the table, with the one whose other jars go with it. */
    static Map<String, String> versions() throws IOException {
        Map<String, String> versions = new TreeMap<>();
        for (String line : Files.readAllLines(Path.of("storm-versions.tsv"))) {
            if (!line.startsWith("#") && !line.startsWith("version\t")) {
                String[] cells = line.split("\t");
                versions.put(cells[0], cells[1]);
            }
        }
        return versions;
    }

    /** The class files of a version's clients and servers, with those of their libraries that the hooks need. */
    static ClassFileLocator of(String version) throws IOException {
        List<ClassFileLocator> locators = new ArrayList<>();
        for (Path folder : List.of(
                COMPARED.resolve(version),
                COMPARED.resolve("parts").resolve(versions().get(version)))) {
            try (Stream<Path> jars = Files.list(folder)) {
                for (Path jar : jars.toList()) {
                    locators.add(ClassFileLocator.ForJarFile.of(jar.toFile()));
                }
            }
        }
        locators.add(ClassFileLocator.ForClassLoader.ofPlatformLoader());
        return new ClassFileLocator.Compound(locators);
    }
}
