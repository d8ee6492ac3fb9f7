package nstorm.hook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import nstorm.hook.Failures.Line;
import org.junit.jupiter.api.Test;

class FailuresTest {
    private final Failures failures = new Failures();

    private Line at(long seconds, String message) {
        return failures.of(new IllegalStateException(message), TimeUnit.SECONDS.toNanos(seconds));
    }

    @Test
    void theSameFailureIsOneLineAMinute() {
        assertEquals(Line.TRACE, at(0, "no credentials"));
        assertEquals(Line.NONE, at(5, "no credentials"));
        assertEquals(Line.NONE, at(59, "no credentials"));
        assertEquals(Line.SENTENCE, at(60, "no credentials"));
        assertEquals(Line.NONE, at(119, "no credentials"));
        assertEquals(Line.SENTENCE, at(120, "no credentials"));
    }

    @Test
    void anotherFailureAndOneAfterASuccessHaveTheirTrace() {
        assertEquals(Line.TRACE, at(0, "no credentials"));
        assertEquals(Line.TRACE, at(5, "no quorum"));
        failures.over();
        assertEquals(Line.TRACE, at(10, "no quorum"));
    }
}
