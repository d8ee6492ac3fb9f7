package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class RoutesTest {
    @Test
    void tasksOutsideTheTableHaveNoQueue() {
        Routes routes = new Routes(3);
        assertEquals(5, routes.size());
        assertNull(routes.queue(3));
        assertNull(routes.queue(-2));
        assertNull(routes.queue(4));
    }

    @Test
    void taskIdsBehaveAsAListWhileTheyChange() throws Exception {
        Routes.TaskIds tasks = new Routes.TaskIds(List.of(5, 9));
        ArrayList<Integer> asStormSeesIt = tasks;
        tasks.addAllOf(6, 7);
        tasks.addAllOf(7, 7);
        assertEquals(List.of(5, 6, 7, 9), new ArrayList<>(asStormSeesIt));
        Object version = tasks.version();
        assertSame(version, tasks.version());
        tasks.removeAllOf(6, 9);
        assertEquals(Set.of(5), new HashSet<>(asStormSeesIt));
        assertNotSame(version, tasks.version());
        assertTrue(asStormSeesIt.contains(5));
        assertFalse(asStormSeesIt.contains(6));
        assertEquals(5, asStormSeesIt.stream().mapToInt(t -> t).sum());
    }

    @Test
    void aReaderNeverSeesAHalfChangedList() throws Exception {
        Routes.TaskIds tasks = new Routes.TaskIds(List.of(1));
        AtomicReference<Throwable> fault = new AtomicReference<>();
        Thread reader = new Thread(() -> {
            try {
                for (int i = 0; i < 200_000; i++) {
                    for (Integer task : tasks) {
                        assertTrue(task >= 1 && task <= 9);
                    }
                    new HashSet<>(tasks);
                }
            } catch (Throwable t) {
                fault.set(t);
            }
        });
        reader.start();
        while (reader.isAlive()) {
            tasks.addAllOf(2, 9);
            tasks.removeAllOf(2, 9);
        }
        assertNull(fault.get());
    }
}
