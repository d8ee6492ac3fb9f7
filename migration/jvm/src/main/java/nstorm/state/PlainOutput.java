package nstorm.state;

import java.io.IOException;
import java.io.OutputStream;
import java.util.UUID;

/** Writes {@link Plain} values, without the handle that an object stream keeps of each. */
final class PlainOutput {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final int NUMBER_MAX_BYTES = 10;
    private static final int LATIN_MAX = 0xff;

    private final OutputStream out;
    private final byte[] buffer = new byte[BUFFER_BYTES];
    private final String[] recent = new String[Plain.RECENT_TEXTS];
    private int at;

    PlainOutput(OutputStream out) {
        this.out = out;
    }

    void value(Object value) throws IOException {
        int kind = Plain.kind(value);
        switch (kind) {
            case Plain.NULL, Plain.FALSE, Plain.TRUE -> oneByte(kind);
            case Plain.LATIN -> text((String) value);
            case Plain.DOUBLE -> {
                oneByte(kind);
                eightBytes(Double.doubleToRawLongBits((Double) value));
            }
            case Plain.UNIQUE -> {
                oneByte(kind);
                eightBytes(((UUID) value).getMostSignificantBits());
                eightBytes(((UUID) value).getLeastSignificantBits());
            }
            default -> {
                long bits = bits(kind, value);
                oneByte(kind);
                unsigned(bits << 1 ^ bits >> 63);
            }
        }
    }

    private static long bits(int kind, Object value) {
        return switch (kind) {
            case Plain.LONG, Plain.INTEGER, Plain.SHORT, Plain.BYTE -> ((Number) value).longValue();
            case Plain.FLOAT -> Float.floatToRawIntBits((Float) value);
            case Plain.CHARACTER -> (Character) value;
            default -> throw new IllegalStateException("not plain: " + value.getClass());
        };
    }

    /** What many entries share goes once, and they share it afterwards: else a state could take more heap there than here. */
    @SuppressWarnings("ReferenceEquality") // one that is equal is not shared
    private void text(String text) throws IOException {
        int slot = Plain.slot(text);
        if (recent[slot] == text) {
            oneByte(Plain.RECENT);
            number(slot);
            return;
        }
        recent[slot] = text;
        boolean latin = isLatin(text);
        oneByte(latin ? Plain.LATIN : Plain.WIDE);
        number(text.length());
        for (int i = 0; i < text.length(); i++) {
            room(2);
            char one = text.charAt(i);
            if (!latin) {
                buffer[at++] = (byte) (one >> 8);
            }
            buffer[at++] = (byte) one;
        }
    }

    private static boolean isLatin(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (text.charAt(i) > LATIN_MAX) {
                return false;
            }
        }
        return true;
    }

    void oneByte(int value) throws IOException {
        room(1);
        buffer[at++] = (byte) value;
    }

    /** One that is not negative; small ones take less. */
    void number(int number) throws IOException {
        unsigned(number);
    }

    private void unsigned(long bits) throws IOException {
        room(NUMBER_MAX_BYTES);
        long left = bits;
        while ((left & ~0x7fL) != 0) {
            buffer[at++] = (byte) (left | 0x80);
            left >>>= 7;
        }
        buffer[at++] = (byte) left;
    }

    void eightBytes(long value) throws IOException {
        room(Long.BYTES);
        for (int shift = Long.SIZE - Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            buffer[at++] = (byte) (value >> shift);
        }
    }

    private void room(int bytes) throws IOException {
        if (buffer.length - at < bytes) {
            flush();
        }
    }

    /** To be called at the end. */
    void flush() throws IOException {
        out.write(buffer, 0, at);
        at = 0;
    }
}
