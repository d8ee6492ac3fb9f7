package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A process of the project's own Python, with the real py-lmdb. */
final class Python implements AutoCloseable {

    /** Opens {@code env} for what argv[1] names, in the one format that both sides read. */
    private static final String HEAD = """
        import lmdb, sys
        from kvstore.envelope import pack, unpack
        def env(**options):
            return lmdb.open(sys.argv[1], map_size=16 << 20, lib_version=0, **options)
        """;

    private final Process process;
    private final BufferedReader out;

    Python(String script, Object... args) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("python"), "-c", HEAD + script));
        for (Object arg : args) {
            command.add(arg.toString());
        }
        process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Runs to its end and gives what it printed. */
    static String run(String script, Object... args) throws Exception {
        try (Python python = new Python(script, args)) {
            String printed = new String(python.process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(0, python.process.waitFor(), printed);
            return printed;
        }
    }

    /** Puts an enveloped payload under the key {@code plan}. */
    static void writePlan(Path dir, String payload) throws Exception {
        run("""
            with env() as e, e.begin(write=True) as txn:
                txn.put(b"plan", pack(1, sys.argv[2].encode()))
            """, dir, payload);
    }

    String line() throws IOException {
        return out.readLine();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    void kill9() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor(10, TimeUnit.SECONDS);
    }

    @Override
    public void close() throws InterruptedException {
        kill9();
    }
}
