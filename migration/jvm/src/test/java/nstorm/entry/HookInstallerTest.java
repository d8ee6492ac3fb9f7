package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.IllegalClassFormatException;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;
import org.junit.jupiter.api.Test;

class HookInstallerTest {

    private static final byte[] WOVEN = {1};

    private static final HookSet HOOKS = new HookSet() {
        @Override
        public List<Advised> advised() {
            return List.of(new Advised("org.apache.storm.A$B", "run", null, Object.class));
        }

        @Override
        public List<Symbol> reflected() {
            return List.of();
        }
    };

    /** A spout that opens may load thousands of a library's. */
    @Test
    void onlyClassesWithAnAdviceAreLookedAt() throws Exception {
        List<String> looked = new ArrayList<>();
        ClassFileTransformer weaving = new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    Module module,
                    ClassLoader loader,
                    String name,
                    Class<?> redefined,
                    ProtectionDomain domain,
                    byte[] classFile) {
                looked.add(name);
                return WOVEN;
            }
        };
        assertArrayEquals(WOVEN, transformed(weaving, "org/apache/storm/A$B"));
        assertNull(transformed(weaving, "org/apache/storm/A"));
        assertNull(transformed(weaving, "org/apache/kafka/clients/consumer/KafkaConsumer"));
        assertNull(transformed(weaving, null), "a hidden class");
        assertEquals(List.of("org/apache/storm/A$B"), looked);
    }

    private static byte[] transformed(ClassFileTransformer weaving, String name) throws IllegalClassFormatException {
        return HookInstaller.only(HOOKS, weaving)
                .transform(HookInstaller.class.getModule(), null, name, null, null, new byte[0]);
    }
}
