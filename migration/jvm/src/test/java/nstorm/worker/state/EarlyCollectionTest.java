package nstorm.worker.state;

import static org.junit.jupiter.api.Assertions.assertNull;

import java.lang.ref.WeakReference;
import org.junit.jupiter.api.Test;

class EarlyCollectionTest {
    @Test
    void itHasCollected() {
        WeakReference<Object> young = new WeakReference<>(new Object());
        EarlyCollection.provoke();
        assertNull(young.get());
    }
}
