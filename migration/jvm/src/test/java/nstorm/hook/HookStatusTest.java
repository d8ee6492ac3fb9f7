package nstorm.hook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import nstorm.nimbus.NimbusCalls;
import nstorm.supervisor.SupervisorCalls;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.storm.daemon.supervisor.Supervisor;
import org.apache.storm.scheduler.DefaultScheduler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.objenesis.ObjenesisStd;

/** What a daemon logs where Storm first reaches its hooks. */
class HookStatusTest {
    private static final String LINE = "nstorm: hooks active, for a test";

    private final List<String> logged = new ArrayList<>();
    private final Logger root = (Logger) LogManager.getRootLogger();
    private final AbstractAppender appender = new AbstractAppender("lines", null, null, true, Property.EMPTY_ARRAY) {
        @Override
        public void append(LogEvent event) {
            logged.add(event.getMessage().getFormattedMessage());
        }
    };

    @BeforeEach
    void begin() {
        appender.start();
        root.addAppender(appender);
        HookStatus.announce(LINE);
        HookStatus.activate();
    }

    @AfterEach
    void end() {
        root.removeAppender(appender);
        HookStatus.refuse("the test has ended");
        System.clearProperty(HookStatus.REFUSED);
    }

    @Test
    void theLogOfNimbusHasThatTheHooksAreActive() {
        NimbusCalls.wrap(new DefaultScheduler());
        NimbusCalls.wrap(new DefaultScheduler());
        assertEquals(List.of(LINE), logged);
    }

    @Test
    void thatOfASupervisorToo() {
        SupervisorCalls.launched(new ObjenesisStd().newInstance(Supervisor.class));
        assertEquals(LINE, logged.get(0));
    }
}
