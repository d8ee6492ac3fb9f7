package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Through the packaged jar, where lmdbjava lies apart. */
class SampleStoreIT {

    private static final String READ = """
        with env(readonly=True) as e, e.begin() as txn:
            found = unpack(txn.get(sys.argv[2].encode()))
            print(found.payload.decode())
        """;

    @Test
    void pythonReadsWhatJavaPut(@TempDir Path dir) throws Exception {
        Path env = dir.resolve("w/6700-1");
        try (SampleStore store = SampleStore.open(env)) {
            assertTrue(Files.exists(env.resolve("data.mdb")), "LMDB, not the fallback");
            store.put("ack", "one".getBytes(StandardCharsets.UTF_8));
            assertEquals("one\n", Python.run(READ, env, "ack"));
            store.put("load", "two".getBytes(StandardCharsets.UTF_8));
            store.put("ack", "three".repeat(2000).getBytes(StandardCharsets.UTF_8));
            assertEquals("three".repeat(2000) + "\n", Python.run(READ, env, "ack"));
            assertEquals("two\n", Python.run(READ, env, "load"));
        }
    }

    @Test
    void manyPutsUnderAReader(@TempDir Path dir) throws Exception {
        String follow = """
            print("on", flush=True)
            last, payload = 0, b""
            with env(readonly=True) as e:
                while payload != b"last":
                    with e.begin() as txn:
                        envelope = unpack(txn.get(b"ack"))
                        version, payload = envelope.version, envelope.payload
                    assert version >= last
                    last = version
            print("end", flush=True)
            """;
        try (SampleStore store = SampleStore.open(dir)) {
            store.put("ack", new byte[10]);
            try (Python python = new Python(follow, dir)) {
                assertEquals("on", python.line());
                for (int i = 0; i < 2000; i++) {
                    store.put("ack", new byte[i % 500]);
                    Thread.sleep(1);
                }
                store.put("ack", "last".getBytes(StandardCharsets.UTF_8));
                assertEquals("end", python.line());
            }
        }
    }

    /** An agent that was killed in the middle of a read must not end all later reports. */
    @Test
    void aReaderThatWasKilledKeepsNoPut(@TempDir Path dir) throws Exception {
        String held = """
            import os, time
            e = env(readonly=True)
            txn = e.begin()
            txn.get(b"ack")
            print(os.getpid(), flush=True)
            time.sleep(600)
            """;
        try (SampleStore store = SampleStore.open(dir)) {
            store.put("ack", new byte[10]);
            try (Python python = new Python(held, dir)) {
                long pid = Long.parseLong(python.line());
                ProcessHandle reader = ProcessHandle.of(pid).orElseThrow();
                reader.destroyForcibly();
                reader.onExit().get(30, TimeUnit.SECONDS);
            }
            for (int i = 0; i < 200; i++) {
                store.put("load", new byte[150_000]);
                store.put("ack", new byte[i]);
            }
        }
    }

    @Test
    void theLockFileHasItsBytesOnTheDisk(@TempDir Path dir) throws Exception {
        Files.createFile(dir.resolve("lock.mdb")); // as a full disk leaves it
        SampleStore.open(dir).close();
        assertEquals(8192, Files.size(dir.resolve("lock.mdb")));
        Process stat =
                new ProcessBuilder("stat", "-c", "%b", dir.resolve("lock.mdb").toString()).start();
        String blocks = new String(stat.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        assertEquals(16, Integer.parseInt(blocks), "of 512 bytes");
    }

    /** In a JVM of its own: without the guard it ends by SIGBUS. */
    @Test
    void aTruncatedEnvironmentEndsNoJvm(@TempDir Path dir) throws Exception {
        Path tests = Path.of(
                getClass().getProtectionDomain().getCodeSource().getLocation().toURI());
        Path said = dir.resolve("said");
        Process child = new ProcessBuilder(
                        ProcessHandle.current().info().command().orElseThrow(),
                        "-Xmx64m",
                        "-XX:-CreateCoredumpOnCrash",
                        "-XX:ErrorFile=" + dir.resolve("crash.log"),
                        "-cp",
                        System.getProperty("hooks.jar") + File.pathSeparator + tests,
                        TruncatedStores.class.getName(),
                        dir.toString())
                .redirectErrorStream(true)
                .redirectOutput(said.toFile())
                .start();
        int exit = child.waitFor();
        String printed = Files.readString(said);
        assertEquals(0, exit, printed);
        assertEquals(
                TruncatedStores.ROUNDS,
                printed.lines().filter(line -> line.contains("is shorter than")).count(),
                "each store says it once");
        for (int round = 0; round < TruncatedStores.ROUNDS; round++) {
            byte[] last = Files.readAllBytes(dir.resolve(round + "/ack.bin"));
            assertEquals("after " + round, new String(Envelope.parse(last).payload(), StandardCharsets.UTF_8));
        }
    }

    @Test
    void userCodeSeesNothingOfIt() throws Exception {
        assertTrue(ManagementFactory.getRuntimeMXBean()
                .getInputArguments()
                .toString()
                .contains("nstorm-hooks.jar"));
        for (String inside : List.of("com/kenai/jffi/Library.class", "org/lmdbjava/Env.class")) {
            for (URL seen : Collections.list(getClass().getClassLoader().getResources(inside))) {
                assertFalse(seen.toString().contains("nstorm-hooks"), seen.toString());
            }
        }
        assertFalse(System.getProperties().containsKey("lmdbjava.extract.dir"));
    }
}
