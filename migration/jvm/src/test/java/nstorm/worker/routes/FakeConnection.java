package nstorm.worker.routes;

import java.util.Collection;
import java.util.Map;
import org.apache.storm.grouping.Load;
import org.apache.storm.messaging.ConnectionWithStatus;
import org.apache.storm.messaging.netty.BackPressureStatus;

/** A connection to another worker that stands, or not. */
abstract class FakeConnection extends ConnectionWithStatus {
    volatile Status status = Status.Ready;

    @Override
    public Status status() {
        return status;
    }

    @Override
    public void sendLoadMetrics(Map<Integer, Double> taskToLoad) {}

    @Override
    public void sendBackPressureStatus(BackPressureStatus status) {}

    @Override
    public Map<Integer, Load> getLoad(Collection<Integer> tasks) {
        return Map.of();
    }

    @Override
    public int getPort() {
        return 0;
    }

    @Override
    public void close() {}
}
