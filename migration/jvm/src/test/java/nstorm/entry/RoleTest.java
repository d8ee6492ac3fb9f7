package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RoleTest {

    @ParameterizedTest
    @CsvSource({
        "WORKER, org.apache.storm.daemon.worker.Worker wc-1 s1 6701 6700 id",
        "SUPERVISOR, org.apache.storm.daemon.supervisor.Supervisor",
        "NIMBUS, org.apache.storm.daemon.nimbus.Nimbus"
    })
    void byMainClass(Role role, String command) {
        assertEquals(role, Role.of(null, command));
        assertEquals(role, Role.of("", command));
    }

    @Test
    void byArgument() {
        assertEquals(Role.NIMBUS, Role.of("role=nimbus", "anything"));
        assertEquals(Role.WORKER, Role.of("role=worker", null));
    }

    @Test
    void anyOtherJvmIsLeftAlone() {
        assertNull(Role.of(null, "org.apache.storm.LogWriter java -server org.apache.storm.daemon.worker.Worker"));
        assertNull(Role.of(null, "org.apache.storm.daemon.drpc.DRPCServer"));
        assertNull(Role.of(null, null));
        assertNull(Role.of("role=other", "org.apache.storm.daemon.nimbus.Nimbus"));
    }
}
