package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;

class TrafficTest {

    private static AddressedTuple sent(int source, int destination, String stream) {
        Object tuple = Proxy.newProxyInstance(
                TrafficTest.class.getClassLoader(),
                new Class<?>[] {Tuple.class},
                (proxy, method, args) -> method.getName().equals("getSourceTask") ? source : stream);
        return new AddressedTuple(destination, (Tuple) tuple);
    }

    @Test
    void whatStormReportsUpstreamIsNoTrafficOfTheUsers() {
        Traffic.prepare(2);
        Traffic.addSource(1);
        Traffic.count(sent(1, 2, "default"));
        Traffic.count(sent(1, 2, "__ack_ack"));
        Traffic.count(sent(1, 2, Traffic.FEEDBACK));
        assertEquals(2, Traffic.counters()[2][3]);
    }

    @Test
    void aThreadThatRunsWithoutKnownCpuIsUnmeasured() throws InterruptedException {
        Thread here = Thread.currentThread();
        assertTrue(LoadSampler.isUnmeasured(here, id -> -1));
        assertFalse(LoadSampler.isUnmeasured(here, id -> 0));
        Thread ended = new Thread(() -> {});
        ended.start();
        ended.join();
        assertFalse(LoadSampler.isUnmeasured(ended, id -> -1));
    }
}
