package nstorm.worker.routes;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.ListIterator;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.storm.utils.JCQueue;

/**
 * Which tasks of the topology are delivered inside this JVM: task id → receive queue, or null.
 *
 * <p>Storm's executors index an {@code ArrayList} by task id; handing all of them this one table makes
 * local delivery follow a single volatile write. Index 0 is the system task (−1).
 */
public final class Routes extends ArrayList<JCQueue> {
    /** Storm's {@code indexingBase}: table index = task id − base. */
    static final int INDEXING_BASE = -1;

    private static final long serialVersionUID = 1L;

    private final transient AtomicReferenceArray<JCQueue> queues;
    /** Where tuples go that come from other workers: also to a copy that tuples are not delivered to any more, or not yet. */
    private final transient AtomicReferenceArray<JCQueue> arrivals;

    Routes(int maxTaskId) {
        queues = new AtomicReferenceArray<>(maxTaskId - INDEXING_BASE + 1);
        arrivals = new AtomicReferenceArray<>(maxTaskId - INDEXING_BASE + 1);
    }

    /** Where the task's tuples are delivered here; null if they go to another worker. */
    JCQueue queue(int task) {
        JCQueue queue = at(task, queues);
        return queue instanceof LocalTurn turn ? turn.delivering() : queue;
    }

    /** The turn that the way to a task is just taking, or null. */
    LocalTurn turn(int task) {
        return at(task, queues) instanceof LocalTurn turn ? turn : null;
    }

    public JCQueue arrival(int task) {
        return at(task, arrivals);
    }

    /** Flushes what the calling thread holds back in batches of any queue of this JVM. */
    public void flushArrivals() {
        for (int i = 0; i < arrivals.length(); i++) {
            JCQueue queue = arrivals.get(i);
            if (queue != null) {
                queue.tryFlush();
            }
        }
    }

    private static JCQueue at(int task, AtomicReferenceArray<JCQueue> table) {
        int index = task - INDEXING_BASE;
        return index >= 0 && index < table.length() ? table.get(index) : null;
    }

    void arrive(int task, JCQueue queueOrNull) {
        if (task >= INDEXING_BASE) {
            arrivals.set(task - INDEXING_BASE, queueOrNull);
        }
    }

    void deliver(int task, JCQueue queueOrNull) {
        queues.set(task - INDEXING_BASE, queueOrNull);
    }

    @Override
    public int size() {
        return queues.length();
    }

    @Override
    public boolean isEmpty() {
        return queues.length() == 0;
    }

    @Override
    public JCQueue get(int index) {
        JCQueue queue = queues.get(index);
        return queue instanceof LocalTurn turn ? turn.ofThread() : queue;
    }

    @Override
    public Iterator<JCQueue> iterator() {
        return IntStream.range(0, queues.length()).mapToObj(queues::get).iterator();
    }

    /**
     * The worker's own task ids. A change replaces an array, so that Storm's threads and the groupings that keep this
     * list iterate over it while executors come and go.
     *
     * <p>Users get it as {@code getThisWorkerTasks()}. What they change is a copy: Storm has no use for it. What they may call on an
     * {@code ArrayList} does not throw here either, or their workers would end.
     */
    public static final class TaskIds extends ArrayList<Integer> {
        private static final long serialVersionUID = 1L;

        private transient volatile Integer[] tasks;

        TaskIds(Collection<Integer> initial) {
            tasks = initial.toArray(new Integer[0]);
        }

        /** Another object after each change. */
        Object version() {
            return tasks;
        }

        synchronized void addAllOf(int start, int end) {
            List<Integer> next = new ArrayList<>(Arrays.asList(tasks));
            for (int task = start; task <= end; task++) {
                if (!next.contains(task)) {
                    next.add(task);
                }
            }
            next.sort(null);
            tasks = next.toArray(new Integer[0]);
        }

        synchronized void removeAllOf(int start, int end) {
            tasks = Arrays.stream(tasks).filter(t -> t < start || t > end).toArray(Integer[]::new);
        }

        @Override
        public int size() {
            return tasks.length;
        }

        @Override
        public boolean isEmpty() {
            return tasks.length == 0;
        }

        @Override
        public Integer get(int index) {
            return tasks[index];
        }

        @Override
        public boolean contains(Object task) {
            return indexOf(task) >= 0;
        }

        @Override
        public int indexOf(Object task) {
            return Arrays.asList(tasks).indexOf(task);
        }

        @Override
        public int lastIndexOf(Object task) {
            return Arrays.asList(tasks).lastIndexOf(task);
        }

        private List<Integer> copy() {
            return new ArrayList<>(Arrays.asList(tasks));
        }

        @Override
        public Iterator<Integer> iterator() {
            return copy().iterator();
        }

        @Override
        public ListIterator<Integer> listIterator() {
            return copy().listIterator();
        }

        @Override
        public ListIterator<Integer> listIterator(int index) {
            return copy().listIterator(index);
        }

        @Override
        public List<Integer> subList(int from, int to) {
            return copy().subList(from, to);
        }

        @Override
        public Integer set(int index, Integer task) {
            return copy().set(index, task);
        }

        @Override
        public void add(int index, Integer task) {
            copy().add(index, task);
        }

        @Override
        public boolean add(Integer task) {
            return copy().add(task);
        }

        @Override
        public boolean addAll(Collection<? extends Integer> more) {
            return copy().addAll(more);
        }

        @Override
        public boolean addAll(int index, Collection<? extends Integer> more) {
            return copy().addAll(index, more);
        }

        @Override
        public Integer remove(int index) {
            return copy().remove(index);
        }

        @Override
        public boolean remove(Object task) {
            return copy().remove(task);
        }

        @Override
        public boolean removeIf(Predicate<? super Integer> which) {
            return copy().removeIf(which);
        }

        @Override
        public boolean removeAll(Collection<?> others) {
            return copy().removeAll(others);
        }

        @Override
        public boolean retainAll(Collection<?> others) {
            return copy().retainAll(others);
        }

        // Of Java 21, whose list returns objects as these do.

        public Object getFirst() {
            return listIterator().next();
        }

        public Object getLast() {
            return listIterator(tasks.length).previous();
        }

        public Object removeFirst() {
            return getFirst();
        }

        public Object removeLast() {
            return getLast();
        }

        public List<Integer> reversed() {
            List<Integer> reversed = copy();
            Collections.reverse(reversed);
            return reversed;
        }

        @Override
        public Object[] toArray() {
            return tasks.clone();
        }

        @Override
        public <T> T[] toArray(T[] target) {
            return Arrays.asList(tasks).toArray(target);
        }

        @Override
        public void forEach(Consumer<? super Integer> action) {
            Arrays.asList(tasks).forEach(action);
        }

        @Override
        public Spliterator<Integer> spliterator() {
            return Spliterators.spliterator(tasks, Spliterator.ORDERED | Spliterator.IMMUTABLE);
        }

        @Override
        public Stream<Integer> stream() {
            return StreamSupport.stream(spliterator(), false);
        }

        @Override
        public Object clone() {
            return new ArrayList<>(Arrays.asList(tasks));
        }

        @Override
        public boolean equals(Object other) {
            return Arrays.asList(tasks).equals(other);
        }

        @Override
        public int hashCode() {
            return Arrays.asList(tasks).hashCode();
        }
    }
}
