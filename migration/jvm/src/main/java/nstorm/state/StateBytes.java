package nstorm.state;

import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;

/**
 * What a state is written to: as many bytes as may travel at once. They stand in pieces until they are sent: an array of all
 * would leave the collector as many bytes again, in a pause.
 */
public final class StateBytes extends OutputStream {
    /** Of each piece but the last. */
    public static final int PIECE_BYTES = 256 << 10;

    private static final int FIRST_BYTES = 1 << 13;

    private final List<byte[]> full = new ArrayList<>();
    private byte[] last = new byte[FIRST_BYTES];
    private int at;

    @Override
    public void write(int b) {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] b, int off, int len) {
        if (size() + (long) len > BoltState.SIZE_MAX_BYTES) {
            throw new IllegalStateException("its state is larger than " + (BoltState.SIZE_MAX_BYTES >> 20) + " MB");
        }
        int from = off;
        int left = len;
        while (left > 0) {
            if (at == PIECE_BYTES) {
                full.add(last);
                last = new byte[PIECE_BYTES];
                at = 0;
            }
            int some = Math.min(left, PIECE_BYTES - at);
            if (at + some > last.length) {
                last = Arrays.copyOf(last, Math.min(PIECE_BYTES, Math.max(2 * last.length, at + some)));
            }
            System.arraycopy(b, from, last, at, some);
            from += some;
            left -= some;
            at += some;
        }
    }

    /** How many bytes there are. */
    public int size() {
        return full.size() * PIECE_BYTES + at;
    }

    /** How many pieces there are. */
    public int pieces() {
        return pieces(size());
    }

    /** The number of pieces for a number of bytes; at least one, which may be empty. */
    public static int pieces(int bytes) {
        return Math.max(1, (bytes + PIECE_BYTES - 1) / PIECE_BYTES);
    }

    /** The bytes of a piece, to be read. */
    public ByteBuffer piece(int index) {
        return index < full.size() ? ByteBuffer.wrap(full.get(index)) : ByteBuffer.wrap(last, 0, at);
    }

    /** A sum over all bytes. */
    public long crc() {
        CRC32 crc = new CRC32();
        for (int i = 0; i < pieces(); i++) {
            crc.update(piece(i));
        }
        return crc.getValue();
    }
}
