package nstorm.entry;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** The bytes of the jar's own classes. */
final class OwnClasses {

    private OwnClasses() {}

    /** The class files of some packages, given like {@code nstorm/wire/}, with all below them. */
    static List<byte[]> of(String... packages) throws IOException, URISyntaxException {
        URI code = OwnClasses.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI();
        Path home = Path.of(code);
        if (Files.isDirectory(home)) {
            return read(home, packages);
        }
        try (FileSystem jar = FileSystems.newFileSystem(home, Map.of())) {
            return read(jar.getPath("/"), packages);
        }
    }

    private static List<byte[]> read(Path home, String... packages) throws IOException {
        List<byte[]> classes = new ArrayList<>();
        for (String each : packages) {
            try (Stream<Path> files = Files.walk(home.resolve(each))) {
                for (Path file :
                        files.filter(path -> path.toString().endsWith(".class")).toList()) {
                    classes.add(Files.readAllBytes(file));
                }
            }
        }
        return classes;
    }
}
