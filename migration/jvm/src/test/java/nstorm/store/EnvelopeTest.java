package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import nstorm.wire.Golden;
import nstorm.wire.json.WireException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class EnvelopeTest {

    @ParameterizedTest
    @CsvSource({"local_plan.bin,local_plan.json", "worker_ack.bin,worker_ack.json"})
    void goldenBothWays(String enveloped, String payload) throws Exception {
        Envelope read = Envelope.parse(Golden.bytes(enveloped));
        assertArrayEquals(Golden.bytes(payload), read.payload());
        assertArrayEquals(Golden.bytes(enveloped), read.toBytes());
    }

    @Test
    void edges() throws Exception {
        assertEquals(0, Envelope.parse(Golden.bytes("empty_payload.bin")).payload().length);
        byte[] highest = Golden.bytes("highest_version.bin");
        assertEquals(Long.MAX_VALUE, Envelope.parse(highest).version());
        assertArrayEquals(highest, Envelope.parse(highest).toBytes());
    }

    @ParameterizedTest
    @ValueSource(strings = {"bad_crc", "bad_length", "bad_magic", "bad_schema", "nothing", "short", "short_frame"})
    void refuses(String name) throws Exception {
        byte[] bytes = Golden.bytes(name + ".bin");
        assertThrows(WireException.class, () -> Envelope.parse(bytes));
    }
}
