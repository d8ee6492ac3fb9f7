package nstorm.wire;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The byte vectors that the Python tests read too. */
public final class Golden {

    private static final Path DIR = Path.of("../../tests/golden/wire");

    private Golden() {}

    public static byte[] bytes(String name) throws IOException {
        return Files.readAllBytes(DIR.resolve(name));
    }
}
