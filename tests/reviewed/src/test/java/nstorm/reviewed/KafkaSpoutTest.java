package nstorm.reviewed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import java.util.Map;
import nstorm.memory.Declared;
import nstorm.memory.Reviewed;
import nstorm.memory.Reviewed.How;
import nstorm.proof.Memory;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** KafkaSpout by its guarantee; nothing of it is opened. */
class KafkaSpoutTest {
    private static KafkaSpout<String, String> spout(ProcessingGuarantee guarantee) {
        return new KafkaSpout<>(KafkaSpoutConfig.builder("127.0.0.1:9", "numbers")
                .setProcessingGuarantee(guarantee)
                .build());
    }

    @ParameterizedTest
    @EnumSource(ProcessingGuarantee.class)
    void onlyWhatCannotLoseAnythingMoves(ProcessingGuarantee guarantee) {
        How expected = guarantee == ProcessingGuarantee.AT_MOST_ONCE ? How.STAYS : How.SPOUT;
        assertEquals(expected, Reviewed.of(spout(guarantee)).how());
    }

    /** What it holds is never as it was, and its source gives all of it again. */
    @Test
    void itIsNotLookedAtBeforeItIsClosed() {
        Memory memory = new Memory(
                "numbers", List.of(spout(ProcessingGuarantee.AT_LEAST_ONCE)), List.of(), Declared.of(Map.of()));
        memory.readSpout();
        assertNull(memory.way().pinned());
        assertNull(memory.changedSincePrepared());
    }
}
