package nstorm.trial;

import java.io.Serializable;
import java.util.AbstractList;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Date;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;

/** Objects that call the user's code, which throws, whatever they are asked. */
final class Touchy {
    static int called;

    static RuntimeException called() {
        called++;
        return new IllegalStateException("the user's code was called");
    }

    /** Whatever is asked of it calls the user's code, which throws. */
    static class Any implements Serializable, Comparable<Any> {
        int changes;

        @Override
        public boolean equals(Object other) {
            throw called();
        }

        @Override
        public int hashCode() {
            throw called();
        }

        @Override
        public String toString() {
            throw called();
        }

        @Override
        public int compareTo(Any other) {
            throw called();
        }
    }

    static final class OwnNumber extends Number {
        int held = 1;

        @Override
        public int intValue() {
            throw called();
        }

        @Override
        public long longValue() {
            throw called();
        }

        @Override
        public float floatValue() {
            throw called();
        }

        @Override
        public double doubleValue() {
            throw called();
        }
    }

    static final class OwnText implements CharSequence, Serializable {
        String held = "text";

        @Override
        public int length() {
            throw called();
        }

        @Override
        public char charAt(int index) {
            throw called();
        }

        @Override
        public CharSequence subSequence(int start, int end) {
            throw called();
        }

        @Override
        public String toString() {
            throw called();
        }
    }

    static final class OwnList extends AbstractList<Object> implements Serializable {
        int held = 3;

        @Override
        public Object get(int index) {
            throw called();
        }

        @Override
        public int size() {
            throw called();
        }

        @Override
        public Iterator<Object> iterator() {
            throw called();
        }

        @Override
        public int hashCode() {
            throw called();
        }
    }

    static final class OwnMap extends AbstractMap<Object, Object> implements Serializable {
        int held = 4;

        @Override
        public Set<Entry<Object, Object>> entrySet() {
            throw called();
        }

        @Override
        public int size() {
            throw called();
        }
    }

    static final class OwnDate extends Date {
        @Override
        public long getTime() {
            throw called();
        }

        @Override
        public String toString() {
            throw called();
        }
    }

    static final class OwnHashMap extends HashMap<String, Object> {
        @Override
        public Set<Map.Entry<String, Object>> entrySet() {
            throw called();
        }

        @Override
        public int size() {
            throw called();
        }
    }

    static final class OwnLocal extends ThreadLocal<Object> {
        @Override
        protected Object initialValue() {
            throw called();
        }
    }

    static final class OwnComparator implements Comparator<Object>, Serializable {
        @Override
        public int compare(Object left, Object right) {
            throw called();
        }
    }

    enum OwnEnum {
        ONE;

        int held;

        @Override
        public String toString() {
            throw called();
        }
    }

    static List<Object> all() {
        Map<Object, Object> byIdentity = new IdentityHashMap<>();
        byIdentity.put(new Any(), new Any());
        byIdentity.put(new Any(), new OwnNumber());
        Map<Object, Object> values = new LinkedHashMap<>();
        values.put("a", new Any());
        values.put("b", new OwnText());
        return new ArrayList<>(Arrays.asList(
                new Any(),
                new Any[] {new Any()},
                byIdentity,
                values,
                new HashMap<>(values),
                new OwnNumber(),
                new OwnText(),
                new OwnList(),
                new OwnMap(),
                new OwnDate(),
                new OwnHashMap(),
                new OwnLocal(),
                new OwnComparator(),
                OwnEnum.ONE,
                new TreeMap<>(new OwnComparator()),
                new PriorityQueue<>(List.of(new Any()))));
    }

    private Touchy() {}
}
