package nstorm.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class PlainTest {
    private static byte[] written(List<?> values) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PlainOutput out = new PlainOutput(bytes);
        for (Object value : values) {
            out.value(value);
        }
        out.flush();
        return bytes.toByteArray();
    }

    private static PlainInput input(byte[] bytes) {
        return new PlainInput(new ByteArrayInputStream(bytes), bytes.length);
    }

    private static List<Object> back(List<?> values) throws IOException {
        PlainInput in = input(written(values));
        List<Object> back = new ArrayList<>();
        for (int i = 0; i < values.size(); i++) {
            back.add(in.value());
        }
        assertThrows(IOException.class, in::value);
        return back;
    }

    @Test
    void eachValueComesBack() throws IOException {
        List<Object> values = Arrays.asList(
                null,
                true,
                false,
                "",
                "a",
                "\u00ff\u0000",
                "\u20ac",
                "\ud83d alone",
                Long.MIN_VALUE,
                Long.MAX_VALUE,
                -1L,
                0L,
                63L,
                64L,
                -64L,
                -65L,
                Integer.MIN_VALUE,
                Integer.MAX_VALUE,
                7,
                Short.MIN_VALUE,
                (short) 300,
                Byte.MIN_VALUE,
                (byte) 5,
                Character.MAX_VALUE,
                'x',
                0.1,
                -0.0,
                Double.NaN,
                Double.longBitsToDouble(0x7ff8000000000001L),
                Float.MIN_VALUE,
                -0.0f,
                Float.NaN,
                new UUID(-1, 2));
        List<Object> back = back(values);
        assertEquals(values, back);
        assertEquals(0x7ff8000000000001L, Double.doubleToRawLongBits((Double) back.get(28)));
    }

    /** Also where they cross the end of a buffer, at each place in them. */
    @Test
    void textsOfAnyLengthComeBack() throws IOException {
        List<Object> values =
                new ArrayList<>(List.of("a".repeat(1 << 20), "\u20ac".repeat(70_000), "\u00e9".repeat(65_536)));
        for (int i = 0; i < 20_000; i++) {
            values.add((i % 3 == 0 ? "w\u00f6rd-" : "\u8bcd-") + i);
            values.add((long) i * i * i * i);
        }
        assertEquals(values, back(values));
    }

    @Test
    void whatManyShareTheyShareAfterwards() throws IOException {
        String shared = new String("on");
        List<Object> back = back(List.of(shared, "off", shared, new String("on")));
        assertEquals(List.of("on", "off", "on", "on"), back);
        assertSame(back.get(0), back.get(2));
        assertNotSame(back.get(0), back.get(3));
    }

    @Test
    void whatCanChangeIsNotPlain() {
        for (Object value : List.of(new AtomicLong(), new byte[0], List.of(), new StringBuilder(), Thread.State.NEW)) {
            assertFalse(Plain.is(value), value.toString());
            assertThrows(IllegalStateException.class, () -> written(List.of(value)));
        }
    }

    @Test
    void whatIsNoneIsRefused() {
        byte[] endless = new byte[20];
        Arrays.fill(endless, (byte) 0xff);
        assertThrows(IOException.class, () -> input(endless).number());
        assertThrows(IOException.class, () -> input(endless).value());
        assertThrows(
                IOException.class,
                () -> input(new byte[] {(byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0xff, 0x0f})
                        .number());
        assertThrows(
                IOException.class,
                () -> input(new byte[] {Plain.LATIN, (byte) 0xff, (byte) 0xff, (byte) 0xff, 0x7, 'a'})
                        .value());
        assertThrows(IOException.class, () -> input(new byte[] {3, 1, 1}).entries());
    }
}
