package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
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

    /** What a bolt does with {@code getThisWorkerTasks()} in prepare() would end its worker at each start. */
    @Test
    void whatUsersMayCallOnAnArrayListAnswersAsItsOwn() {
        List<Function<List<Integer>, Object>> calls = List.of(
                tasks -> List.copyOf(tasks.subList(0, 2)),
                tasks -> tasks.lastIndexOf(5),
                tasks -> tasks.listIterator().next(),
                tasks -> tasks.listIterator(3).previous(),
                tasks -> tasks.set(2, 7),
                tasks -> tasks.remove(2),
                tasks -> tasks.remove(Integer.valueOf(3)),
                tasks -> tasks.removeIf(task -> task < 0),
                tasks -> tasks.removeAll(List.of(3)),
                tasks -> tasks.retainAll(List.of(3)),
                tasks -> tasks.addAll(1, List.of(3)),
                tasks -> tasks.toString());
        for (Function<List<Integer>, Object> call : calls) {
            assertEquals(call.apply(new ArrayList<>(List.of(-1, 3, 5))), call.apply(ids()));
        }
        List<Integer> tasks = ids();
        Collections.shuffle(tasks);
        tasks.sort(null);
        tasks.add(1, 9);
        tasks.add(9);
        tasks.clear();
        Iterator<Integer> some = tasks.iterator();
        some.next();
        some.remove();
        assertEquals(List.of(-1, 3, 5), tasks, "Storm's own view");
    }

    /** As its lists are from Java 21 on. */
    @Test
    void norDoesWhatLaterVersionsOfJavaAdd() throws Exception {
        Map<String, Integer> ends = Map.of("getFirst", -1, "getLast", 5, "removeFirst", -1, "removeLast", 5);
        for (Map.Entry<String, Integer> one : ends.entrySet()) {
            Method method = Routes.TaskIds.class.getMethod(one.getKey());
            assertEquals(Object.class, method.getReturnType(), one.getKey());
            assertEquals(one.getValue(), method.invoke(ids()), one.getKey());
        }
        Method reversed = Routes.TaskIds.class.getMethod("reversed");
        assertEquals(List.class, reversed.getReturnType());
        assertEquals(List.of(5, 3, -1), reversed.invoke(ids()));
    }

    private static List<Integer> ids() {
        return new Routes.TaskIds(List.of(-1, 3, 5));
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
