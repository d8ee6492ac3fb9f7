package nstorm.reviewed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.LongStream;
import nstorm.memory.Reviewed.How;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.storm.kafka.bolt.KafkaBolt;
import org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** KafkaBolt on a broker: what one copy was given is in the topic and acked once it is cleaned up, and another goes on. */
class KafkaTest {
    private static final String TOPIC = "numbers";

    @TempDir
    Path folder;

    private static List<String> java(String mainClass, String... arguments) {
        List<String> command = new ArrayList<>(List.of(
                System.getProperty("java.home") + "/bin/java",
                "-Xmx512m",
                "-cp",
                System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                mainClass));
        command.addAll(List.of(arguments));
        return command;
    }

    private Server broker(int port) throws Exception {
        int controllerPort = Server.freePort();
        Path conf = Files.writeString(
                folder.resolve("server.properties"), """
                process.roles=broker,controller
                node.id=1
                listeners=PLAINTEXT://127.0.0.1:%1$d,CONTROLLER://127.0.0.1:%2$d
                controller.listener.names=CONTROLLER
                controller.quorum.voters=1@127.0.0.1:%2$d
                offsets.topic.replication.factor=1
                log.dirs=%3$s
                """.formatted(port, controllerPort, folder.resolve("data")));
        Path log = folder.resolve("format.log");
        List<String> command = java(
                "kafka.tools.StorageTool", "format", "-t", Uuid.randomUuid().toString(), "-c", conf.toString());
        Process format = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        assertEquals(0, format.waitFor(), () -> log.toString());
        return Server.start(java("kafka.Kafka", conf.toString()), port, folder.resolve("broker.log"));
    }

    private static KafkaBolt<Long, Long> bolt(int port) {
        Properties producer = new Properties();
        producer.put("bootstrap.servers", "127.0.0.1:" + port);
        producer.put("key.serializer", LongSerializer.class.getName());
        producer.put("value.serializer", LongSerializer.class.getName());
        // So that at any moment much is on its way.
        producer.put("linger.ms", "2000");
        return new KafkaBolt<Long, Long>()
                .withProducerProperties(producer)
                .withTopicSelector(TOPIC)
                .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper<>("n", "n"));
    }

    private static List<Long> read(int port, int count) {
        Map<String, Object> conf = Map.of(
                "bootstrap.servers",
                "127.0.0.1:" + port,
                "group.id",
                "look",
                "auto.offset.reset",
                "earliest",
                "key.deserializer",
                LongDeserializer.class.getName(),
                "value.deserializer",
                LongDeserializer.class.getName());
        List<Long> found = new ArrayList<>();
        try (KafkaConsumer<Long, Long> consumer = new KafkaConsumer<>(conf)) {
            consumer.subscribe(List.of(TOPIC));
            for (int tries = 0; found.size() < count && tries < 60; tries++) {
                consumer.poll(Duration.ofSeconds(1)).forEach(one -> found.add(one.value()));
            }
            consumer.poll(Duration.ofSeconds(1)).forEach(one -> found.add(one.value()));
        }
        return found;
    }

    @Test
    void whatACopyWasGivenIsSentAndAckedBeforeItEnds() throws Exception {
        int port = Server.freePort();
        try (Server broker = broker(port)) {
            Copy source = new Copy(bolt(port), new HashMap<>());
            assertEquals(How.RENEW, source.verdict().how());
            source.take(0, 1000);
            assertTrue(source.acked.get() < 1000, "some are on their way");
            assertNull(source.remembers());
            source.cleanUp();
            assertEquals(1000, source.acked.get());
            Copy target = new Copy(bolt(port), new HashMap<>());
            target.take(1000, 2000);
            target.cleanUp();
            assertEquals(1000, target.acked.get());
            assertEquals(0, source.failed.get() + target.failed.get());
            assertEquals(LongStream.range(0, 2000).boxed().toList(), read(port, 2000));
        }
    }
}
