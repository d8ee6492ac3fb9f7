package nstorm.proof;

/** Which objects a walk has met, by identity, and a number for each. Made for millions: two arrays, no object of its own for each. */
final class Seen {
    private static final int FIRST_SIZE = 64;

    private Object[] objects = new Object[FIRST_SIZE];
    private long[] numbers = new long[FIRST_SIZE];
    private int size;

    /** Notes an object with this number; returns the number it had before, or −1 if it is new. */
    long add(Object object, long number) {
        if (2 * size >= objects.length) {
            grow();
        }
        int at = place(object);
        if (objects[at] != null) {
            return numbers[at];
        }
        objects[at] = object;
        numbers[at] = number;
        size++;
        return -1;
    }

    /** The number of an object, or −1. */
    long find(Object object) {
        int at = place(object);
        return objects[at] == null ? -1 : numbers[at];
    }

    private int place(Object object) {
        int at = System.identityHashCode(object) * 0x9E3779B9 >>> Integer.numberOfLeadingZeros(objects.length) + 1;
        while (objects[at] != null && objects[at] != object) {
            at = at + 1 & objects.length - 1;
        }
        return at;
    }

    private void grow() {
        Object[] before = objects;
        long[] numbersBefore = numbers;
        objects = new Object[2 * before.length];
        numbers = new long[objects.length];
        for (int i = 0; i < before.length; i++) {
            if (before[i] != null) {
                int at = place(before[i]);
                objects[at] = before[i];
                numbers[at] = numbersBefore[i];
            }
        }
    }
}
