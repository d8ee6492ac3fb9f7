package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import org.junit.jupiter.api.Test;

class CodeBaseTest {

    /** Stands for a class of a library that is not there. */
    static class Library {}

    static class Bolt {
        static class Optional extends Library {}

        static class Counts {}

        interface Names {}
    }

    /** Loads the bolt and what is within it by itself, and has no library. */
    private static final class WithoutLibrary extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.equals(Library.class.getName())) {
                throw new ClassNotFoundException(name);
            }
            if (!name.startsWith(Bolt.class.getName())) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    @Test
    void aClassWithoutItsLibraryHidesNoOtherOne() throws Exception {
        Class<?> bolt = new WithoutLibrary().loadClass(Bolt.class.getName());
        assertThrows(LinkageError.class, bolt::getDeclaredClasses);
        List<String> within = CodeBase.within(bolt).stream()
                .map(Class::getSimpleName)
                .sorted()
                .toList();
        assertEquals(List.of("Counts", "Names"), within);
    }
}
