package nstorm.state;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/** Reads what {@link PlainOutput} has written, to the end of the stream. */
final class PlainInput {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final int ENTRY_MIN_BYTES = 2;

    private final InputStream in;
    private final byte[] buffer = new byte[BUFFER_BYTES];
    private final String[] recent = new String[Plain.RECENT_TEXTS];
    private int at;
    private int end;
    private int leftBytes;

    /** @param leftBytes about how many bytes the stream can still have, at most */
    PlainInput(InputStream in, int leftBytes) {
        this.in = in;
        this.leftBytes = leftBytes;
    }

    Object value() throws IOException {
        int kind = oneByte();
        return switch (kind) {
            case Plain.NULL -> null;
            case Plain.FALSE -> false;
            case Plain.TRUE -> true;
            case Plain.LATIN -> remembered(latin(number()));
            case Plain.WIDE -> remembered(wide(number()));
            case Plain.RECENT -> recent[number()];
            case Plain.DOUBLE -> Double.longBitsToDouble(eightBytes());
            case Plain.UNIQUE -> new UUID(eightBytes(), eightBytes());
            default -> boxed(kind, unsigned());
        };
    }

    private static Object boxed(int kind, long folded) throws IOException {
        long bits = folded >>> 1 ^ -(folded & 1);
        return switch (kind) {
            case Plain.LONG -> bits;
            case Plain.INTEGER -> (int) bits;
            case Plain.FLOAT -> Float.intBitsToFloat((int) bits);
            case Plain.SHORT -> (short) bits;
            case Plain.BYTE -> (byte) bits;
            case Plain.CHARACTER -> (char) bits;
            default -> throw new IOException("no kind of value: " + kind);
        };
    }

    private String remembered(String text) {
        recent[Plain.slot(text)] = text;
        return text;
    }

    private String latin(int length) throws IOException {
        if (length <= end - at) {
            at += length;
            return new String(buffer, at - length, length, StandardCharsets.ISO_8859_1);
        }
        // It grows with what is there: the length alone takes no heap.
        StringBuilder text = new StringBuilder();
        while (text.length() < length) {
            text.append((char) oneByte());
        }
        return text.toString();
    }

    private String wide(int length) throws IOException {
        StringBuilder text = new StringBuilder();
        while (text.length() < length) {
            text.append((char) (oneByte() << 8 | oneByte()));
        }
        return text.toString();
    }

    int oneByte() throws IOException {
        if (at == end && atEnd()) {
            throw new EOFException("it ends too early");
        }
        return buffer[at++] & 0xff;
    }

    /** Whether nothing more comes. */
    boolean atEnd() throws IOException {
        if (at == end) {
            at = 0;
            end = in.readNBytes(buffer, 0, buffer.length);
            leftBytes -= end;
        }
        return end == 0;
    }

    int number() throws IOException {
        long number = unsigned();
        if (number != (int) number || number < 0) {
            throw new IOException("no number: " + number);
        }
        return (int) number;
    }

    /** How many entries follow: more than the bytes can hold would be a lie that costs heap. */
    int entries() throws IOException {
        int entries = number();
        if (entries > (leftBytes + end - at) / ENTRY_MIN_BYTES) {
            throw new IOException("fewer bytes than entries");
        }
        return entries;
    }

    private long unsigned() throws IOException {
        long number = 0;
        for (int shift = 0; shift < Long.SIZE; shift += 7) {
            int next = oneByte();
            number |= (next & 0x7fL) << shift;
            if (next < 0x80) {
                return number;
            }
        }
        throw new IOException("a number without an end");
    }

    long eightBytes() throws IOException {
        long value = 0;
        for (int i = 0; i < Long.BYTES; i++) {
            value = value << Byte.SIZE | oneByte();
        }
        return value;
    }
}
