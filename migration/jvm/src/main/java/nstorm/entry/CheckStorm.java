package nstorm.entry;

import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * {@code nstorm check-storm}: what each kind of JVM of an unpacked Storm would do with the hooks. Argument: its folder.
 * It ends with 1 unless all are verified.
 */
public final class CheckStorm {

    private CheckStorm() {}

    public static void main(String[] arguments) throws IOException, URISyntaxException {
        Path home = Path.of(arguments[0]);
        boolean verified = true;
        for (Role role : List.of(Role.NIMBUS, Role.SUPERVISOR, Role.WORKER)) {
            try (URLClassLoader classPath = new URLClassLoader(jars(home, role), null)) {
                StormCheck found = StormCheck.of(role, classPath);
                verified &= found.refused() == null && found.unknown() == null;
                System.out.println(role + ": " + found);
            }
        }
        System.exit(verified ? 0 : 1);
    }

    /** As {@code bin/storm} puts them on the class path. */
    private static URL[] jars(Path home, Role role) throws IOException {
        boolean worker = role == Role.WORKER && Files.isDirectory(home.resolve("lib-worker"));
        List<URL> jars = new ArrayList<>();
        for (String folder : List.of(worker ? "lib-worker" : "lib", "lib-common", "extlib")) {
            if (Files.isDirectory(home.resolve(folder))) {
                try (Stream<Path> files = Files.list(home.resolve(folder))) {
                    for (Path jar : files.filter(file -> file.toString().endsWith(".jar"))
                            .sorted()
                            .toList()) {
                        jars.add(jar.toUri().toURL());
                    }
                }
            }
        }
        return jars.toArray(URL[]::new);
    }
}
