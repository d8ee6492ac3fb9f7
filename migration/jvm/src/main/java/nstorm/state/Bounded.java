package nstorm.state;

import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * As many bytes of a state as may travel at once. They stand in pieces until all are there: an array that doubles would leave
 * three times as many bytes to the collector, in a pause.
 */
final class Bounded extends OutputStream {
    private static final int PIECE_MIN_BYTES = 1 << 13;
    private static final int PIECE_MAX_BYTES = 1 << 20;

    private final List<byte[]> full = new ArrayList<>();
    private byte[] last = new byte[PIECE_MIN_BYTES];
    private int at;
    private int count;

    @Override
    public void write(int b) {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] b, int off, int len) {
        if (count + len > BoltState.SIZE_MAX_BYTES) {
            throw new IllegalStateException("its state is larger than " + (BoltState.SIZE_MAX_BYTES >> 20) + " MB");
        }
        int from = off;
        int left = len;
        while (left > 0) {
            if (at == last.length) {
                full.add(last);
                last = new byte[Math.min(2 * last.length, PIECE_MAX_BYTES)];
                at = 0;
            }
            int some = Math.min(left, last.length - at);
            System.arraycopy(b, from, last, at, some);
            from += some;
            left -= some;
            at += some;
        }
        count += len;
    }

    byte[] toByteArray() {
        byte[] all = new byte[count];
        int to = 0;
        for (byte[] piece : full) {
            System.arraycopy(piece, 0, all, to, piece.length);
            to += piece.length;
        }
        System.arraycopy(last, 0, all, to, at);
        return all;
    }
}
