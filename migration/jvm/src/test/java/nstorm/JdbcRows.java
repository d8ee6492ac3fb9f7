package nstorm;

import java.sql.Connection;
import java.sql.Types;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.jdbc.bolt.JdbcInsertBolt;
import org.apache.storm.jdbc.common.Column;
import org.apache.storm.jdbc.common.ConnectionProvider;
import org.apache.storm.jdbc.common.HikariCPConnectionProvider;
import org.apache.storm.jdbc.mapper.JdbcMapper;
import org.apache.storm.jdbc.mapper.SimpleJdbcMapper;

/** A bolt of storm-jdbc that writes its tuples' field {@code n} into the table {@code numbers}. */
public final class JdbcRows {
    private JdbcRows() {}

    /** One that a user may have, of which nobody knows what its clean-up closes. */
    public static final class SharedConnections implements ConnectionProvider {
        private static final long serialVersionUID = 1L;

        @Override
        public void prepare() {}

        @Override
        public Connection getConnection() {
            throw new UnsupportedOperationException();
        }

        @Override
        public void cleanup() {}
    }

    public static ConnectionProvider hikari(String url) {
        Map<String, Object> conf = new HashMap<>(Map.of("jdbcUrl", url, "maximumPoolSize", "2"));
        return new HikariCPConnectionProvider(conf);
    }

    public static JdbcInsertBolt insertBolt(ConnectionProvider connections) {
        return insertBolt(connections, new SimpleJdbcMapper(List.of(new Column<Long>("n", Types.BIGINT))));
    }

    public static JdbcInsertBolt insertBolt(ConnectionProvider connections, JdbcMapper mapper) {
        return new JdbcInsertBolt(connections, mapper).withTableName("numbers");
    }
}
