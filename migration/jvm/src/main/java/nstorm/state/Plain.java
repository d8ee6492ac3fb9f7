package nstorm.state;

import java.util.UUID;

/** Values that nobody can change: the same object has the same value later. Each kind has a byte that stands before it. */
final class Plain {
    static final int NULL = 0;
    static final int LATIN = 1;
    static final int WIDE = 2;
    static final int RECENT = 3;
    static final int LONG = 4;
    static final int INTEGER = 5;
    static final int DOUBLE = 6;
    static final int FALSE = 7;
    static final int TRUE = 8;
    static final int FLOAT = 9;
    static final int SHORT = 10;
    static final int BYTE = 11;
    static final int CHARACTER = 12;
    static final int UNIQUE = 13;
    private static final int NONE = -1;

    /** How many texts are remembered, to be sent once: a power of two. */
    static final int RECENT_TEXTS = 1024;

    private Plain() {}

    static boolean is(Object value) {
        return kind(value) != NONE;
    }

    /** Of a text that of the shortest form; how it is sent, its writer decides. */
    static int kind(Object value) {
        if (value == null) {
            return NULL;
        }
        Class<?> type = value.getClass();
        if (type == String.class) {
            return LATIN;
        } else if (type == Long.class) {
            return LONG;
        } else if (type == Integer.class) {
            return INTEGER;
        } else if (type == Double.class) {
            return DOUBLE;
        } else if (type == Boolean.class) {
            return (Boolean) value ? TRUE : FALSE;
        }
        return rareKind(type);
    }

    private static int rareKind(Class<?> type) {
        if (type == Float.class) {
            return FLOAT;
        } else if (type == Short.class) {
            return SHORT;
        } else if (type == Byte.class) {
            return BYTE;
        } else if (type == Character.class) {
            return CHARACTER;
        }
        return type == UUID.class ? UNIQUE : NONE;
    }

    /** Where a text is remembered: writer and reader compute the same place, so it is not sent. */
    static int slot(String text) {
        int hash = text.hashCode();
        return (hash ^ hash >>> 16) & RECENT_TEXTS - 1;
    }
}
