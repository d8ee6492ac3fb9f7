package nstorm.workload;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.kafka.bolt.KafkaBolt;
import org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/** Lines that a KafkaBolt writes into a topic, and a KafkaSpout reads again, to see whether each offset comes once and in its order. */
final class Kafka {
    static final String PORT = "workload.kafka.port";
    static final String HOST = "workload.kafka.host";

    private Kafka() {}

    static StormTopology build(Map<String, Object> conf) {
        String servers = conf.get(HOST) + ":" + WordCount.integer(conf, PORT, 0);
        // Of its own: an earlier topology of another name may have left a topic.
        String topic =
                Path.of((String) conf.get(WordCount.LEDGER_DIR)).getFileName().toString();
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new LedgerSpout(Sentences::of, true), WordCount.integer(conf, WordCount.SPOUTS, 2));
        builder.setBolt("kafka-bolt", producer(servers, topic), WordCount.integer(conf, "workload.produces", 2))
                .shuffleGrouping("spout");
        builder.setSpout(
                "kafka-spout",
                new KafkaSpout<>(consumer(servers, topic, conf)),
                WordCount.integer(conf, "workload.consumes", 2));
        WordCount.ticking(
                builder.setBolt("offsets", new OffsetsBolt(), WordCount.integer(conf, WordCount.COUNTS, 4))
                        .fieldsGrouping("kafka-spout", new Fields("partition")),
                conf);
        return builder.createTopology();
    }

    private static KafkaBolt<String, Long> producer(String servers, String topic) {
        Properties producer = new Properties();
        producer.put("bootstrap.servers", servers);
        producer.put("key.serializer", StringSerializer.class.getName());
        producer.put("value.serializer", LongSerializer.class.getName());
        return new KafkaBolt<String, Long>()
                .withProducerProperties(producer)
                .withTopicSelector(topic)
                .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper<>("sentence", "number"));
    }

    private static KafkaSpoutConfig<String, Long> consumer(String servers, String topic, Map<String, Object> conf) {
        return new KafkaSpoutConfig.Builder<String, Long>(servers, topic)
                .setProp("group.id", topic)
                .setProp("key.deserializer", StringDeserializer.class.getName())
                .setProp("value.deserializer", LongDeserializer.class.getName())
                .setProcessingGuarantee(ProcessingGuarantee.valueOf((String) conf.get("workload.kafka.guarantee")))
                .build();
    }
}
