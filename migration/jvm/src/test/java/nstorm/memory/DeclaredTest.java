package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class DeclaredTest {
    @Test
    void eachComponentHasItsWord() {
        Declared declared = Declared.of(Map.of("nstorm.move", Map.of("count", "live", "sink", "never")));
        assertTrue(declared.isLive("count"));
        assertNull(declared.reason("count"));
        assertFalse(declared.isLive("sink"));
        assertEquals("nstorm.move is never", declared.reason("sink"));
        assertFalse(declared.isLive("other"));
        assertNull(declared.reason("other"));
    }

    @Test
    void withoutTheKeyNothingIsDeclared() {
        assertNull(Declared.of(Map.of()).reason("count"));
    }

    @Test
    void whatCannotBeReadPinsAllBolts() {
        for (Object wrong : List.of("live", List.of("count"), Map.of("count", "lvie"), Map.of("count", true))) {
            Declared declared = Declared.of(Map.of("nstorm.move", wrong));
            assertFalse(declared.isLive("count"));
            assertEquals(
                    "nstorm.move must name live, carry, drain, renew or never for each component, is " + wrong,
                    declared.reason("count"));
        }
    }

    @Test
    void classesOfAStateAreNamedOrTheirPackages() {
        Declared declared =
                Declared.of(Map.of("nstorm.state.classes", List.of("com.acme.Session", "com.acme.events.*")));
        for (String name : List.of("com.acme.Session", "com.acme.events.Click", "com.acme.events.deep.Click$Kind")) {
            assertTrue(declared.isOfState(name), name);
        }
        for (String name : List.of("com.acme.Session$1", "com.acme.eventsToo.Click", "com.acme.Other")) {
            assertFalse(declared.isOfState(name), name);
        }
        assertEquals(
                "nstorm.state.classes must be a list of names of classes, or of packages with .* behind them, is com.acme.*",
                Declared.of(Map.of("nstorm.state.classes", "com.acme.*")).reason("count"));
    }
}
