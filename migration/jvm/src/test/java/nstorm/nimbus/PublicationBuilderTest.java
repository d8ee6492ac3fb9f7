package nstorm.nimbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import nstorm.wire.report.Publication;
import nstorm.wire.report.Publication.Component;
import org.apache.storm.generated.StormBase;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.generated.TopologyStatus;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

class PublicationBuilderTest {

    private static StormPasses passes(IScheduler stock) {
        return new StormPasses(stock, Map.of("nimbus.task.timeout.secs", 40), Set.of());
    }

    private static List<Component> components(IScheduler stock) {
        return publication(stock, Map.of()).components();
    }

    private static Publication publication(IScheduler stock, Map<String, Object> keys) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout());
        builder.setBolt("counts", new TestWordCounter())
                .fieldsGrouping("words", new Fields("word"))
                .setMemoryLoad(200, 56);
        Map<ExecutorDetails, String> executors = Map.of(
                new ExecutorDetails(1, 2),
                "words",
                new ExecutorDetails(3, 3),
                "counts",
                new ExecutorDetails(4, 4),
                "counts",
                new ExecutorDetails(5, 5),
                "__acker");
        Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
        conf.put("topology.name", "wc");
        conf.put("topology.component.resources.onheap.memory.mb", 96.0);
        conf.put("topology.acker.resources.onheap.memory.mb", 64.0);
        conf.putAll(keys);
        TopologyDetails details = new TopologyDetails("t", conf, builder.createTopology(), 1, executors, 1, "user");
        return new PublicationBuilder(details, null, passes(stock))
                .publication(new StormBase("wc", TopologyStatus.ACTIVE, 1));
    }

    private static String nodes(IScheduler stock) {
        SupervisorInfo supervisor = new SupervisorInfo(1, "host1");
        supervisor.set_resources_map(
                new HashMap<>(Map.of("supervisor.memory.capacity.mb", 800.0, "supervisor.cpu.capacity", 200.0)));
        return new String(
                PublicationBuilder.nodes(List.of(), Map.of("s1", supervisor), passes(stock))
                        .toJson(),
                StandardCharsets.UTF_8);
    }

    @Test
    void memoryIsPublishedWhereTheSchedulerCountsIt() {
        IScheduler counts = new ResourceAwareScheduler();
        Map<String, Double> declared =
                components(counts).stream().collect(Collectors.toMap(Component::id, Component::memoryMb));
        assertEquals(Map.of("words", 96.0, "counts", 256.0, "__acker", 64.0), declared, "an executor, on and off heap");
        assertEquals(
                "{\"nodes\":[{\"id\":\"s1\",\"host\":\"host1\",\"cpu_capacity\":200.0,\"slots\":[],"
                        + "\"slots_in_use\":0,\"closed\":null,\"memory_mb\":800.0}]}",
                nodes(counts));
    }

    @Test
    void timeOutsAreThoseThatNimbusUses() {
        IScheduler stock = new DefaultScheduler();
        Publication byDefault = publication(stock, Map.of());
        assertEquals(40, byDefault.workerTimeoutSecs());
        assertEquals(30, byDefault.messageTimeoutSecs());
        Publication longer =
                publication(stock, Map.of("topology.worker.timeout.secs", 90, "topology.message.timeout.secs", 45));
        assertEquals(90, longer.workerTimeoutSecs());
        assertEquals(45, longer.messageTimeoutSecs());
        Publication shorter =
                publication(stock, Map.of("nimbus.task.timeout.secs", 120, "topology.worker.timeout.secs", 20));
        assertEquals(40, shorter.workerTimeoutSecs(), "a topology may only ask for a longer time, and has an old one");
    }

    @Test
    void memoryThatNoSchedulerCountsIsNotPublished() {
        IScheduler stock = new DefaultScheduler();
        components(stock).forEach(one -> assertEquals(null, one.memoryMb(), one.id()));
        assertFalse(nodes(stock).contains("memory"));
    }
}
