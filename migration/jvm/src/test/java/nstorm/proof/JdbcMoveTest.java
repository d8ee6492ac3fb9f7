package nstorm.proof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import nstorm.JdbcRows;
import nstorm.memory.Declared;
import org.apache.storm.jdbc.bolt.JdbcInsertBolt;
import org.apache.storm.jdbc.common.Column;
import org.apache.storm.jdbc.mapper.JdbcMapper;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.ITuple;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The verdict on JdbcInsertBolt, tried on the bolt and a database: a copy writes, is cleaned up, and another goes on. */
class JdbcMoveTest {
    private static final String URL = "jdbc:h2:mem:moved";

    private Connection look;
    private long acked;

    /** Numbers its rows itself, which a user's mapper may do. */
    private static final class Counting implements JdbcMapper {
        private static final long serialVersionUID = 1L;
        private long last;

        @Override
        @SuppressWarnings("rawtypes")
        public List<Column> getColumns(ITuple tuple) {
            return List.of(new Column<Long>("n", ++last, Types.BIGINT));
        }
    }

    @BeforeEach
    void makeTable() throws SQLException {
        look = DriverManager.getConnection(URL);
        try (Statement statement = look.createStatement()) {
            statement.execute("create table numbers (n bigint)");
        }
    }

    @AfterEach
    void close() throws SQLException {
        look.close();
    }

    private long ask(String question) throws SQLException {
        try (Statement statement = look.createStatement();
                ResultSet answer = statement.executeQuery(question)) {
            answer.next();
            return answer.getLong(1);
        }
    }

    /** As Storm makes one: from the topology's bytes. */
    private JdbcInsertBolt prepared(JdbcInsertBolt bolt) {
        JdbcInsertBolt copy = Utils.javaDeserialize(Utils.javaSerialize(bolt), JdbcInsertBolt.class);
        OutputCollector collector = new OutputCollector((IOutputCollector) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {IOutputCollector.class}, (self, method, arguments) -> {
                    acked += method.getName().equals("ack") ? 1 : 0;
                    return null;
                }));
        copy.prepare(new HashMap<>(Map.of("topology.message.timeout.secs", 30)), null, collector);
        return copy;
    }

    private static Memory remembered(JdbcInsertBolt bolt) {
        Memory memory = new Memory("sink", List.of(bolt), List.of(), Declared.of(Map.of()));
        memory.prepared();
        return memory;
    }

    private static void write(JdbcInsertBolt bolt, long from, long to) {
        LongStream.range(from, to)
                .forEach(n -> bolt.execute((Tuple) Proxy.newProxyInstance(
                        JdbcMoveTest.class.getClassLoader(),
                        new Class<?>[] {Tuple.class},
                        (self, method, arguments) -> method.getName().equals("getLongByField") ? n : "split")));
    }

    @Test
    void whatOneCopyHasWrittenStaysAndNoConnectionIsLeft() throws Exception {
        JdbcInsertBolt bolt = JdbcRows.insertBolt(JdbcRows.hikari(URL));
        JdbcInsertBolt source = prepared(bolt);
        Memory memory = remembered(source);
        memory.read();
        assertTrue(memory.way().renews(), memory.way().toString());
        write(source, 0, 100);
        assertNull(memory.changedSincePrepared(), "its pool is made again, and it has nothing else");
        source.cleanup();
        assertEquals(1, ask("select count(*) from information_schema.sessions"), "all of its connections are closed");
        JdbcInsertBolt target = prepared(bolt);
        write(target, 100, 200);
        target.cleanup();
        assertEquals(200, acked);
        assertEquals(200, ask("select count(distinct n) from numbers"));
        assertEquals(200, ask("select count(*) from numbers"));
    }

    @Test
    void whatIsPluggedInMayNotRemember() {
        JdbcInsertBolt source = prepared(JdbcRows.insertBolt(JdbcRows.hikari(URL), new Counting()));
        Memory memory = remembered(source);
        write(source, 0, 100);
        assertEquals("sink.jdbcMapper.last: 0 → 100", memory.changedSincePrepared());
        assertNull(memory.way().state(), "nothing travels with one that is renewed");
        source.cleanup();
    }
}
