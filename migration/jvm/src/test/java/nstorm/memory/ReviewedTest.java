package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.FieldVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import nstorm.JdbcRows;
import nstorm.memory.Reviewed.How;
import org.apache.hadoop.hbase.client.HTable;
import org.apache.storm.jdbc.bolt.JdbcInsertBolt;
import org.apache.storm.jdbc.common.Column;
import org.apache.storm.jdbc.mapper.SimpleJdbcMapper;
import org.apache.storm.task.IBolt;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.objenesis.ObjenesisStd;

/** That {@code reviewed.txt} is about the code which the registry has, and says what users read. */
class ReviewedTest {
    private static final Path JARS = Path.of("target/reviewed");
    private static final Path PAGE = Path.of("../../docs/moves.md");
    private static URL[] crawler;

    @BeforeAll
    static void findJars() throws IOException {
        crawler = new URL[] {JARS.resolve("storm-crawler-core-2.4.jar").toUri().toURL()};
    }

    private static ReviewedClass entry(String simpleName) throws IOException {
        return ReviewedClass.all().values().stream()
                .filter(one -> one.name().endsWith("." + simpleName))
                .findFirst()
                .orElseThrow();
    }

    private static String artifact(ReviewedClass entry) {
        return entry.one("jar").split(":")[1];
    }

    /** Of a jar alone: what it needs is not there. */
    private static URLClassLoader loader(Path jar) throws IOException {
        return new URLClassLoader(new URL[] {jar.toUri().toURL()}, null);
    }

    /** A class of the jar, or null. */
    private static ClassReader read(ClassLoader loader, String type) throws IOException {
        if (Bytecode.isOfTheJdk(type.replace('.', '/'))) {
            return null;
        }
        try (InputStream file = loader.getResourceAsStream(type.replace('.', '/') + ".class")) {
            return file == null ? null : new ClassReader(file);
        }
    }

    private static Set<String> fields(ClassReader type) {
        Set<String> fields = new HashSet<>();
        String simpleName = type.getClassName().substring(type.getClassName().lastIndexOf('/') + 1);
        type.accept(
                new ClassVisitor(Opcodes.ASM9) {
                    @Override
                    public FieldVisitor visitField(
                            int access, String name, String descriptor, String signature, Object value) {
                        fields.add((access & Opcodes.ACC_STATIC) == 0 ? name : simpleName + "." + name);
                        return null;
                    }
                },
                ClassReader.SKIP_CODE);
        return fields;
    }

    @Test
    void eachHashIsThatOfTheJarsThatItNames() throws Exception {
        Map<String, ReviewedClass> all = ReviewedClass.all();
        assertEquals(39, all.size());
        for (ReviewedClass entry : all.values()) {
            List<Path> jars = new ArrayList<>();
            for (Map.Entry<String, List<String>> code : entry.versionsByHash().entrySet()) {
                for (String version : code.getValue()) {
                    Path jar = JARS.resolve(artifact(entry) + "-" + version + ".jar");
                    jars.add(jar);
                    try (URLClassLoader loader = loader(jar)) {
                        assertEquals(code.getKey(), entry.hash(loader), entry.name() + " of " + jar);
                    }
                }
            }
            try (Stream<Path> there = Files.list(JARS)) {
                assertEquals(
                        there.filter(one -> one.getFileName().toString().matches(artifact(entry) + "-[0-9.]+jar"))
                                .sorted()
                                .toList(),
                        jars.stream().sorted().toList(),
                        "every version is read of " + entry.name());
            }
        }
    }

    /** A superclass of the jar may hold the behaviour; a name of a field may have been mistyped, or be another in one version. */
    @Test
    void superclassesAreReadTooAndFieldsAreThere() throws Exception {
        for (ReviewedClass entry : ReviewedClass.all().values()) {
            for (List<String> versions : entry.versionsByHash().values()) {
                try (URLClassLoader loader = loader(JARS.resolve(artifact(entry) + "-" + versions.get(0) + ".jar"))) {
                    Set<String> fields = new TreeSet<>();
                    for (ClassReader at = read(loader, entry.name());
                            at != null;
                            at = read(loader, at.getSuperName())) {
                        String name = at.getClassName().replace('/', '.');
                        assertTrue(
                                entry.one("way").equals("stays")
                                        || name.equals(entry.name())
                                        || entry.names("with").contains(name),
                                entry.name() + " was read without " + name);
                        fields.addAll(fields(at));
                    }
                    Set<String> named = new TreeSet<>(entry.names("tuples"));
                    named.addAll(entry.names("again"));
                    entry.names("closes").forEach(path -> named.add(path.split("\\.")[0]));
                    named.removeAll(fields);
                    assertEquals(Set.of(), named, entry.name());
                }
            }
        }
    }

    @Test
    void thePageSaysTheSame() throws Exception {
        List<String> rows = new ArrayList<>();
        for (ReviewedClass entry : ReviewedClass.all().values()) {
            Set<String> versions = new TreeSet<>();
            entry.versionsByHash().values().forEach(versions::addAll);
            String name = entry.name().substring(entry.name().lastIndexOf('.') + 1);
            rows.add("| " + artifact(entry) + " " + String.join(", ", versions) + " | `" + name + "` | `"
                    + entry.one("way") + "` | " + entry.one("why") + " |");
        }
        List<String> page = Files.readAllLines(PAGE);
        List<String> shown =
                page.subList(page.indexOf("| library and versions | class | way | why |") + 2, page.size());
        assertEquals(
                rows, shown.stream().takeWhile(line -> line.startsWith("|")).toList());
    }

    private Object fileSpout(ClassLoader loader) throws Exception {
        return loader.loadClass(entry("FileSpout").name())
                .getConstructor(String[].class)
                .newInstance((Object) new String[] {"seeds"});
    }

    @Test
    void aSpoutOfThatCodeHasItsVerdict() throws Exception {
        ReviewedClass entry = entry("FileSpout");
        Object spout = fileSpout(new URLClassLoader(crawler, getClass().getClassLoader()));
        Reviewed.Verdict verdict = Reviewed.of(spout);
        assertEquals(new Reviewed.Verdict(How.STAYS, Set.of(), entry.one("why"), "renew"), verdict);
        assertEquals(
                entry.one("why") + "; declare nstorm.move: {in: renew} if it may move all the same",
                verdict.reason("in"));
    }

    /** The name alone says nothing, nor does what a class extends. */
    @Test
    void otherCodeAndSubclassesAreNotReviewed() throws Exception {
        assertNull(Reviewed.of(fileSpout(new URLClassLoader(crawler, getClass().getClassLoader()) {
            @Override
            public InputStream getResourceAsStream(String name) {
                return new ByteArrayInputStream(new byte[] {1});
            }
        })));
        SimpleJdbcMapper mapper = new SimpleJdbcMapper(List.of(new Column<Long>("n", 1)));
        assertNull(Reviewed.of(new JdbcInsertBolt(JdbcRows.hikari("jdbc:h2:mem:x"), mapper) {}));
    }

    /** Stubs stand for HBase: cleanup() closes the table, and not the connection that was made for it alone. */
    @Test
    void whatCleanupLeavesOpenIsClosedAfterwards() throws Exception {
        URL[] jar = {JARS.resolve("storm-hbase-2.5.0.jar").toUri().toURL()};
        try (URLClassLoader loader = new URLClassLoader(jar, getClass().getClassLoader())) {
            HTable table = new HTable();
            Object client = unprepared(loader, "org.apache.storm.hbase.common.HBaseClient");
            set(client.getClass(), "table", client, table);
            IBolt bolt = (IBolt) unprepared(loader, entry("HBaseBolt").name());
            set(bolt.getClass().getSuperclass(), "hBaseClient", bolt, client);
            assertEquals(How.RENEW, Reviewed.of(bolt).how());
            bolt.cleanup();
            assertEquals("table", table.closed());
            Reviewed.closeLeftOpen(bolt);
            assertEquals("table connection", table.closed());
        }
        Reviewed.closeLeftOpen(fileSpout(new URLClassLoader(crawler, getClass().getClassLoader())));
    }

    private static Object unprepared(ClassLoader loader, String name) throws Exception {
        return new ObjenesisStd().newInstance(loader.loadClass(name));
    }

    private static void set(Class<?> type, String field, Object owner, Object value) throws Exception {
        Field found = type.getDeclaredField(field);
        found.setAccessible(true);
        found.set(owner, value);
    }

    @Test
    void whatIsPluggedInIsLookedAt() {
        Reviewed.Verdict known = Reviewed.of(JdbcRows.insertBolt(JdbcRows.hikari("jdbc:h2:mem:x")));
        assertEquals(How.RENEW, known.how());
        Reviewed.Verdict other = Reviewed.of(JdbcRows.insertBolt(new JdbcRows.SharedConnections()));
        assertEquals(How.STAYS, other.how());
        assertEquals(
                "its connectionProvider is nstorm.JdbcRows$SharedConnections, and "
                        + "org.apache.storm.jdbc.common.HikariCPConnectionProvider alone was reviewed",
                other.why());
    }

    @Test
    void aVerdictOfALibraryIsTheWayUnlessOneIsDeclared() throws Exception {
        Object bolt = JdbcRows.insertBolt(JdbcRows.hikari("jdbc:h2:mem:x"));
        assertNotEquals(
                MoveWay.of("sink", bolt, Declared.of(Map.of())),
                MoveWay.of("sink", bolt, Declared.of(Map.of("nstorm.move", Map.of("sink", "carry")))));
    }
}
