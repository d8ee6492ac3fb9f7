package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import nstorm.wire.Entry;
import nstorm.wire.Golden;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class PlanStoreTest {

    /** More polls than pass between two looks at the directory. */
    private static final int MANY = 100;

    @TempDir
    Path dir;

    private PlanStore store;

    @BeforeEach
    void open() {
        store = new PlanStore(dir, topology -> true);
    }

    private static String entry(int i, long start) {
        return "{\"id\":\"m" + i + "\",\"executor\":[" + i + "," + i + "],\"from\":\"a:6700\",\"to\":\"b:6701\","
                + "\"phase\":\"SWITCH\",\"base\":[\"a:6700\"," + start + "],\"void\":null}";
    }

    private static String plan(String topology, long epoch, long version, int entries) {
        return "{\"cluster\":\"c\",\"epoch\":" + epoch + ",\"version\":" + version + ",\"topology\":\"" + topology
                + "\",\"entries\":["
                + IntStream.rangeClosed(1, entries)
                        .mapToObj(i -> entry(i, version))
                        .collect(Collectors.joining(",")) + "]}";
    }

    private static String local(String... plans) {
        return "{\"cluster\":\"c\",\"plans\":[" + String.join(",", plans) + "]}";
    }

    private LocalPlan pollMany() {
        LocalPlan last = null;
        for (int i = 0; i < MANY; i++) {
            last = store.poll();
        }
        return last;
    }

    private long version() {
        return store.poll().of("t").version();
    }

    @Test
    void readsTheGoldenPlanAsPythonStoredIt() throws Exception {
        Python.writePlan(dir, new String(Golden.bytes("local_plan.json"), StandardCharsets.UTF_8));
        assertEquals(LocalPlan.parse(Golden.bytes("local_plan.json")), store.poll());
        assertNull(store.lastError());
        assertSame(store.poll(), store.poll(), "nothing new, nothing parsed");
    }

    /** As the agent writes it into the folder of a user: each time another file. */
    @Test
    void aWorkerOfAnotherUserReadsAFile(@TempDir Path storeDir) throws Exception {
        store = PlanStore.ofUser(storeDir, "t");
        assertNull(store.poll());
        Path folder = Files.createDirectories(UserFolders.own(storeDir));
        for (int version = 1; version <= 3; version++) {
            byte[] payload = local(plan("t", 1, version, version)).getBytes(StandardCharsets.UTF_8);
            Path part = Files.write(folder.resolve("part"), new Envelope(version, payload).toBytes());
            Files.move(part, folder.resolve("t.plan.bin"), StandardCopyOption.ATOMIC_MOVE);
            assertEquals(version, version());
            assertNull(store.lastError());
            assertSame(store.poll(), store.poll(), "nothing new, nothing parsed");
        }
        Files.write(folder.resolve("t.plan.bin"), new byte[] {1, 2, 3});
        assertEquals(3, version(), "the last good one");
        assertTrue(store.lastError().contains("envelope"), store.lastError());
        Files.delete(folder.resolve("t.plan.bin"));
        assertEquals(3, version());
        assertTrue(store.lastError().contains("t.plan.bin"), store.lastError());
    }

    /** What it has read of a move it follows to its end; then it takes nothing new until it is switched on. */
    @Test
    void takesNoNewMovesWhileItIsOff(@TempDir Path storeDir) throws Exception {
        Path plans = Files.createDirectory(storeDir.resolve("plan"));
        store = new PlanStore(plans, topology -> true);
        Python.writePlan(plans, local(plan("t", 1, 1, 1), plan("u", 1, 1, 0)));
        assertNull(store.inert());
        assertEquals(1, pollMany().of("t").entries().size());
        Files.writeString(storeDir.resolve("off.cluster"), "a \u001b[2Jfault\nand more");
        Thread.sleep(600);
        assertNull(store.inert(), "what has begun before is to be read first");
        store.poll();
        Python.writePlan(plans, local(plan("t", 1, 2, 2), plan("u", 1, 2, 3), plan("v", 1, 1, 1)));
        assertEquals(2, pollMany().of("t").entries().size(), "a move is under way");
        assertEquals(0, store.poll().of("u").entries().size(), "none was");
        assertNull(store.poll().of("v"), "nor of what was not known");
        assertNull(store.inert());
        Python.writePlan(plans, local(plan("t", 1, 3, 0), plan("u", 1, 2, 3)));
        assertEquals(0, pollMany().of("t").entries().size());
        assertEquals("a ?[2Jfault", store.inert());
        Python.writePlan(plans, local(plan("t", 1, 4, 1), plan("u", 1, 2, 3)));
        assertEquals(3, pollMany().of("t").version());
        Files.delete(storeDir.resolve("off.cluster"));
        Files.createFile(storeDir.resolve("off"));
        assertTrue(switches(() -> "no reason given".equals(store.inert())));
        LocalPlan first = new PlanStore(plans, topology -> true).poll();
        assertEquals(1, first.of("t").entries().size(), "a JVM that starts takes what the others may follow");
        Files.delete(storeDir.resolve("off"));
        assertTrue(switches(() -> store.poll().of("t").version() == 4), "what was passed over counts now");
        assertEquals(3, store.poll().of("u").entries().size());
    }

    private static boolean switches(BooleanSupplier done) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!done.getAsBoolean() && System.nanoTime() < end) {
            Thread.sleep(50);
        }
        return done.getAsBoolean();
    }

    /** As the agent writes them: by topology, the name before each. */
    private void writeByTopology(String cluster, String... plans) throws Exception {
        Python.run("""
            from migration.wire import encode_local
            plans = {name: plan.encode() for name, plan in zip(sys.argv[3::2], sys.argv[4::2])}
            with env() as e, e.begin(write=True) as txn:
                txn.put(b"plan", pack(1, encode_local(sys.argv[2], plans)))
            """, Stream.concat(Stream.of(dir, cluster), Stream.of(plans)).toArray());
    }

    @Test
    void decodesOfOneTopologyNothingElse() throws Exception {
        store = PlanStore.of(dir, "t");
        writeByTopology("c", "s-\u00fc", "no plan", "t", plan("t", 2, 5, 3), "u", "{}");
        LocalPlan first = store.poll();
        assertNull(store.lastError());
        assertEquals(List.of("t"), first.plans().stream().map(Plan::topology).toList());
        assertEquals(3, first.of("t").entries().size());
        writeByTopology("c", "t", plan("t", 2, 5, 3), "u", plan("u", 1, 1, 200));
        assertSame(first.of("t"), store.poll().of("t"), "of what has not changed nothing is decoded");
        writeByTopology("c", "t", plan("t", 2, 6, 1));
        assertEquals(6, version());
        writeByTopology("c", "t", plan("t", 2, 4, 1), "u", plan("u", 1, 2, 1));
        assertEquals(6, version());
        assertEquals("plan of t refused: 2.4 after 2.6", store.lastError());
        writeByTopology("c", "u", plan("u", 1, 3, 1));
        assertEquals(6, version(), "a topology that is missing keeps its plan");
        writeByTopology("adopted");
        assertNull(store.poll().of("t"), "another cluster that does not name it has no plan of it");
        assertEquals("adopted", store.poll().cluster());
    }

    @Test
    void decodesOfAllTopologiesWhatHasChanged() throws Exception {
        writeByTopology("c", "t", plan("t", 2, 5, 3), "u", plan("u", 1, 1, 3));
        LocalPlan first = store.poll();
        writeByTopology("c", "t", plan("t", 2, 6, 3), "u", plan("u", 1, 1, 3));
        assertEquals(6, version());
        assertSame(first.of("u"), store.poll().of("u"));
        writeByTopology("c", "t", plan("t", 2, 7, 3), "u", "garbage");
        assertEquals(6, version());
        assertTrue(store.lastError().startsWith("not JSON"), store.lastError());
    }

    @Test
    void refusesAnIndexThatDoesNotFit() throws Exception {
        String plans = "\"plans\":[" + plan("t", 1, 1, 1) + "]}";
        Python.writePlan(dir, local(plan("t", 1, 1, 1)));
        assertEquals(1, version());
        int bytes = plans.length() - "\"plans\":[]}".length();
        for (String index : List.of(
                "[[\"t\"," + (bytes - 1) + "]]",
                "[[\"t\",2147483647],[\"u\",2147483647]]",
                "[[\"t\"," + bytes + "],[\"u\",0]]",
                "[[\"t\",-1]]",
                "[[\"\",1]]",
                "[7]",
                "{}",
                "[[\"u\"," + bytes + "]]")) {
            Python.writePlan(
                    dir, "{\"cluster\":\"c\",\"index\":" + index + "," + plans.replace("version\":1", "version\":2"));
            assertEquals(1, version(), index);
            assertNotNull(store.lastError(), index);
        }
        String sound = "[[\"t\"," + bytes + ",\"later\"]]";
        Python.writePlan(dir, "{\"index\":" + sound + ",\"later\":1," + plans.replace("version\":1", "version\":2"));
        assertEquals(1, version());
        assertEquals("cluster is missing", store.lastError());
        Python.writePlan(
                dir,
                "{\"index\":" + sound + ",\"later\":1,\"cluster\":\"c\","
                        + plans.replace("version\":1", "version\":2"));
        assertEquals(2, version());
        assertNull(store.lastError());
    }

    @Test
    void readsWithoutWritingAnything() throws Exception {
        Python.writePlan(dir, local());
        Files.delete(dir.resolve("lock.mdb"));
        assertNotNull(store.poll());
        assertFalse(Files.exists(dir.resolve("lock.mdb")));
    }

    @Test
    void readsValuesOfManyPages() throws Exception {
        for (int entries : new int[] {1, 10, 20, 200, 800}) {
            Python.writePlan(dir, local(plan("t", 1, entries, entries)));
            assertEquals(entries, store.poll().of("t").entries().size());
            assertNull(store.lastError());
        }
    }

    @Test
    void isPatientWhileThereIsNothing() throws Exception {
        assertNull(store.poll());
        assertTrue(store.lastError().startsWith("no plan at "), store.lastError());
        Python.run("env().close()", dir);
        assertNull(store.poll());
        assertTrue(store.lastError().endsWith("has no key plan"), store.lastError());
        Python.writePlan(dir, local(plan("t", 1, 1, 1)));
        assertEquals(1, version());
        assertNull(store.lastError());
    }

    @Test
    void keepsTheLastGoodPlanOnGarbage() throws Exception {
        Python.writePlan(dir, local(plan("t", 1, 1, 1)));
        assertEquals(1, version());
        Python.run("""
            with env() as e, e.begin(write=True) as txn:
                txn.put(b"plan", b"garbage" * 100)
            """, dir);
        assertEquals(1, version());
        assertTrue(store.lastError().startsWith("envelope "), store.lastError());
        Python.writePlan(dir, "{\"cluster\":7}");
        assertEquals(1, version());
        assertTrue(store.lastError().startsWith("cluster is not a text"), store.lastError());
        Python.writePlan(dir, local(plan("t", 1, 2, 1)));
        assertEquals(2, version());
        assertNull(store.lastError());
    }

    @Test
    void refusesOlderPlans() throws Exception {
        Python.writePlan(dir, local(plan("t", 2, 5, 1), plan("u", 2, 6, 1)));
        assertEquals(5, version());
        Python.writePlan(dir, local(plan("t", 1, 9, 2), plan("u", 2, 7, 1)));
        assertEquals(5, version());
        assertEquals("plan of t refused: 1.9 after 2.5", store.lastError());
        assertEquals(7, store.poll().of("u").version(), "each topology by itself");
        Python.writePlan(dir, local(plan("t", 3, 0, 0)));
        assertEquals(0, version());
        assertEquals(3, store.poll().of("t").epoch());
        assertEquals(7, store.poll().of("u").version(), "a topology that is missing keeps its plan");
    }

    @Test
    void forgetsAMissingTopologyThatNobodyNeeds() throws Exception {
        store = new PlanStore(dir, "t"::equals);
        Python.writePlan(dir, local(plan("t", 2, 5, 1), plan("u", 2, 6, 1)));
        assertEquals(List.of(), store.poll().kept());
        Python.writePlan(dir, local());
        assertEquals(List.of(), store.poll().plans(), "what the agent names");
        assertEquals(5, version());
        assertNull(store.poll().of("u"));
        Python.writePlan(dir, local(plan("v", 2, 6, 1)));
        assertEquals(5, version());
        Python.writePlan(dir, local(plan("t", 2, 4, 1)));
        assertEquals(5, version(), "as old as it was");
        assertEquals("plan of t refused: 2.4 after 2.5", store.lastError());
        assertEquals(List.of(), store.poll().kept());
    }

    @Test
    void followsWhatItUnderstands() throws Exception {
        Python.writePlan(dir, local(plan("t", 1, 1, 2)));
        assertEquals(2, store.poll().of("t").entries().size());
        Python.writePlan(dir, local(plan("t", 1, 2, 3).replace("SWITCH", "LEAP")));
        Plan followed = store.poll().of("t");
        assertEquals(2, followed.version());
        assertEquals(
                List.of(1L, 1L),
                followed.entries().stream().map(Entry::baseStartSecs).toList());
        assertEquals(3, followed.notUnderstood().size());
        assertEquals(
                0, new PlanStore(dir, topology -> true).poll().of("t").entries().size(), "after a restart: none");
    }

    @Test
    void startsAnewFromAnotherCluster() throws Exception {
        Python.writePlan(dir, local(plan("t", 2, 5, 1), plan("u", 2, 6, 1)));
        assertEquals(5, version());
        Python.writePlan(dir, local(plan("t", 1, 0, 2)).replace("\"c\"", "\"adopted\""));
        assertEquals("adopted", store.poll().cluster());
        assertEquals(0, version(), "the count begins anew with the cluster");
        assertNull(store.poll().of("u"), "what the new cluster does not name has no plan");
        assertNull(store.lastError());
        Python.writePlan(dir, local(plan("t", 0, 9, 0)).replace("\"c\"", "\"adopted\""));
        assertEquals(0, version());
        assertEquals("plan of t refused: 0.9 after 1.0", store.lastError(), "within the cluster as ever");
    }

    @Test
    void refusesAPlanOfAnotherClusterThanItsOwnFrame() throws Exception {
        Python.writePlan(dir, local(plan("t", 2, 5, 1)));
        assertEquals(5, version());
        Python.writePlan(dir, local(plan("t", 2, 6, 1).replace("\"c\"", "\"other\"")));
        assertEquals(5, version());
        assertEquals("plan of t refused: it is of cluster other, not of c", store.lastError());
    }

    @Test
    void followsAReplacedFile(@TempDir Path other) throws Exception {
        Python.writePlan(dir, local(plan("t", 1, 1, 1)));
        assertEquals(1, version());
        Python.writePlan(other, local(plan("t", 1, 2, 1)));
        Files.move(other.resolve("data.mdb"), dir.resolve("data.mdb"), StandardCopyOption.ATOMIC_MOVE);
        assertEquals(2, pollMany().of("t").version());
    }

    @Test
    void survivesARemovedAndATruncatedFile() throws Exception {
        Python.writePlan(dir, local(plan("t", 1, 1, 1)));
        assertEquals(1, version());
        Files.write(dir.resolve("data.mdb"), new byte[0]);
        assertEquals(1, pollMany().of("t").version());
        assertNotNull(store.lastError());
        Files.write(dir.resolve("data.mdb"), new byte[100_000]);
        assertEquals(1, pollMany().of("t").version());
        assertTrue(store.lastError().endsWith("is not an LMDB 0.9 file"), store.lastError());
        Files.delete(dir.resolve("data.mdb"));
        assertEquals(1, pollMany().of("t").version());
        Python.writePlan(dir, local(plan("t", 1, 2, 1)));
        assertEquals(2, pollMany().of("t").version());
        assertNull(store.lastError());
    }

    /** A reader that maps the file may hang here: the JVM tells it of the truncation in the middle of the JDK. */
    @Test
    @Timeout(300)
    void keepsThePlanWhileTheFileIsTruncatedAndPutBack(@TempDir Path aside) throws Exception {
        Python.writePlan(dir, local(plan("t", 1, 1, 200)));
        byte[] whole = Files.readAllBytes(dir.resolve("data.mdb"));
        LocalPlan first = store.poll();
        Thread vandal = new Thread(() -> {
            for (int round = 0; round < 2000; round++) {
                truncateAndPutBack(aside.resolve("data.mdb"), whole, round);
            }
        });
        vandal.start();
        while (vandal.isAlive()) {
            assertEquals(first, store.poll());
            readAnew();
        }
        vandal.join();
        assertEquals(first, pollMany());
        assertNull(store.lastError());
    }

    private void readAnew() {
        try (LmdbFile file = new LmdbFile(dir.resolve("data.mdb"))) {
            file.read("plan");
        } catch (IOException e) {
            // Truncated, and told so.
        }
    }

    private void truncateAndPutBack(Path next, byte[] whole, int round) {
        try {
            try (RandomAccessFile file =
                    new RandomAccessFile(dir.resolve("data.mdb").toFile(), "rw")) {
                file.setLength(whole.length * (round % 4) / 4);
            }
            Thread.sleep(1);
            Files.move(Files.write(next, whole), dir.resolve("data.mdb"), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void keepsThePlanWhateverIsWrittenOverTheFile() throws Exception {
        Python.writePlan(dir, local(plan("t", 1, 1, 200)));
        byte[] whole = Files.readAllBytes(dir.resolve("data.mdb"));
        LocalPlan first = store.poll();
        Random random = new Random(7);
        for (int round = 0; round < 2000; round++) {
            byte[] damaged = whole.clone();
            byte[] garbage = new byte[1 + random.nextInt(200)];
            random.nextBytes(garbage);
            int end = round % 2 == 0 ? 3 * 4096 : damaged.length;
            System.arraycopy(garbage, 0, damaged, random.nextInt(end - garbage.length), garbage.length);
            Files.write(dir.resolve("data.mdb"), damaged);
            assertEquals(first, store.poll());
            LocalPlan fresh = new PlanStore(dir, topology -> true).poll();
            assertTrue(fresh == null || fresh.equals(first), "a JVM that starts now has the plan or none");
        }
        Python.run("import os; os.remove(sys.argv[1] + '/data.mdb')", dir);
        Python.writePlan(dir, local(plan("t", 1, 2, 1)));
        assertEquals(2, pollMany().of("t").version());
    }

    @Test
    void readsWholePlansWhilePythonCommits() throws Exception {
        String hammer = """
            e = env(sync=False)
            entry = '{{"id":"m{i}","executor":[{i},{i}],"from":"a:6700","to":"b:6701","phase":"SWITCH",' \\
                '"base":["a:6700",{v}],"void":null}}'
            for v in range(1, 200000):
                entries = ",".join(entry.format(i=i, v=v) for i in range(1, 2 + v * 7 % 60))
                plan = '{"cluster":"c","plans":[{"cluster":"c","epoch":1,"version":%d,"topology":"t","entries":[%s]}]}'
                with e.begin(write=True) as txn:
                    txn.put(b"plan", pack(v, (plan % (v, entries)).encode()))
                if v == 1:
                    print("first", flush=True)
            """;
        try (Python python = new Python(hammer, dir)) {
            assertEquals("first", python.line());
            Set<Long> versions = new TreeSet<>();
            long end = System.nanoTime() + 300_000_000_000L;
            while (versions.size() < 1000 && System.nanoTime() < end) {
                Plan plan = store.poll().of("t");
                assertNull(store.lastError());
                assertEquals(1 + plan.version() * 7 % 60, plan.entries().size());
                assertTrue(plan.entries().stream().allMatch(entry -> entry.baseStartSecs() == plan.version()));
                versions.add(plan.version());
            }
            assertTrue(python.isAlive());
            assertTrue(versions.size() >= 1000, "only " + versions.size() + " plans seen");
            python.kill9();
        }
        long last = version();
        assertNull(store.lastError(), "a killed writer leaves the last commit whole");
        Python.writePlan(dir, local(plan("t", 1, last + 1, 1)));
        assertEquals(last + 1, version(), "the next writer goes on");
    }
}
