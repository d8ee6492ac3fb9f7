package nstorm.wire.json;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/** What is long is compressed in ZooKeeper (RFC 1952); what is short stays readable by other tools. */
public final class Packing {

    private static final int PLAIN_BYTES = 2_048;
    /** Nothing that nstorm writes comes near; garbage may pretend to be anything. */
    private static final int LARGEST_BYTES = 16 << 20;

    private static final int RESERVED_FLAGS = 0xE0;

    private Packing() {}

    public static byte[] pack(byte[] message) {
        if (message.length <= PLAIN_BYTES) {
            return message;
        }
        ByteArrayOutputStream packed = new ByteArrayOutputStream(message.length / 4);
        try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
            out.write(message);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return packed.toByteArray();
    }

    /** Gives back what was packed; what is not compressed stays as it is. */
    public static byte[] unpack(byte[] message) throws WireException {
        byte[] unpacked = isPacked(message) ? inflated(message) : message;
        if (unpacked.length > LARGEST_BYTES) {
            throw new WireException("longer than " + LARGEST_BYTES + " bytes");
        }
        return unpacked;
    }

    private static boolean isPacked(byte[] message) {
        return message.length > 1 && message[0] == 0x1F && message[1] == (byte) 0x8B;
    }

    private static byte[] inflated(byte[] message) throws WireException {
        // Java passes over flags that zlib refuses.
        if (message.length > 3 && (message[3] & RESERVED_FLAGS) != 0) {
            throw new WireException("cannot be uncompressed: unknown flags");
        }
        try (InputStream in = new GZIPInputStream(new ByteArrayInputStream(message))) {
            return in.readNBytes(LARGEST_BYTES + 1);
        } catch (IOException e) {
            throw new WireException("cannot be uncompressed: " + e.getMessage(), e);
        }
    }
}
