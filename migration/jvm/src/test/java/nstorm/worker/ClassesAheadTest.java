package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import org.junit.jupiter.api.Test;

class ClassesAheadTest {
    private static final String INITIALISED = "nstorm.test.initialised";

    static final class Spout {
        Object open() {
            return new Client[] {new Client()};
        }

        Object absent() {
            return new Absent();
        }
    }

    static final class Client {
        static {
            System.setProperty(INITIALISED, "true");
        }

        final Connection connection = new Connection();
    }

    static final class Connection {}

    static final class Absent {}

    /** Loads these classes anew, and shows which. */
    private static final class Loader extends URLClassLoader {
        Loader() {
            super(
                    new URL[] {
                        ClassesAheadTest.class
                                .getProtectionDomain()
                                .getCodeSource()
                                .getLocation()
                    },
                    ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.equals(Absent.class.getName())) {
                throw new ClassNotFoundException(name);
            }
            return super.findClass(name);
        }

        boolean has(Class<?> type) {
            return findLoadedClass(type.getName()) != null;
        }
    }

    private static Class<?> spoutOf(Loader loader) throws Exception {
        Class<?> spout = Class.forName(Spout.class.getName(), false, loader);
        assertEquals(loader, spout.getClassLoader());
        return spout;
    }

    @Test
    void whatASpoutLeadsToIsLoadedAndNotInitialised() throws Exception {
        try (Loader loader = new Loader()) {
            Class<?> spout = spoutOf(loader);
            assertFalse(loader.has(Client.class));
            new ClassesAhead().load(spout);
            for (Class<?> type : List.of(Client.class, Connection.class)) {
                assertTrue(loader.has(type), type.getName());
            }
            assertNull(System.getProperty(INITIALISED));
        }
    }

    @Test
    void noMoreThanTheBound() throws Exception {
        try (Loader loader = new Loader()) {
            new ClassesAhead(1).load(spoutOf(loader));
            assertFalse(loader.has(Client.class));
        }
    }

    @Test
    void whatStormOpensByItselfNeedsNothing() throws Exception {
        try (Loader loader = new Loader()) {
            ClassesAhead ahead = new ClassesAhead();
            ahead.opens(spoutOf(loader));
            ahead.load(spoutOf(loader));
            assertFalse(loader.has(Client.class));
        }
    }
}
