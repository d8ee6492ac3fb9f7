package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.TopologyContext;

/** Writes its batches through a connection of its own, from prepare to cleanup, as a sink of a database does. */
final class ConnectionBolt extends BatchBolt {
    private transient Connection connection;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        super.open(conf, context);
        connection = Connection.open(Ledger.join(conf, context), task);
    }

    @Override
    void write(Map<String, Long> counts) {
        connection.write(counts);
    }

    @Override
    public void cleanup() {
        connection.close();
        super.cleanup();
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("unwritten", unwritten(), "connection", connection.id);
    }
}
