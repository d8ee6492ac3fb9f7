package nstorm.worker.state;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntFunction;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import nstorm.state.BoltState;
import nstorm.state.StateBytes;

/**
 * States of bolts on their way: cut into pieces at the source, put together at the target. Pieces may come twice, and in
 * any order. Only those of a move to here are kept, and only from a sender that has its key.
 */
final class StateArrivals {
    private static final String MAC = "HmacSHA256";
    private static final int MAC_BYTES = 32;

    /** What is there of the state of one move. */
    private static final class Arrival {
        final byte[] key;
        int length;
        long crc;
        /** Null before the first piece, and once the state was given away whole. */
        byte[] state;
        /** The code of each piece that is there; null before the first piece. */
        byte[][] codes;

        String refusal;
        /** Whether that would be so for each try. */
        boolean tooLarge;

        Arrival(byte[] key) {
            this.key = key;
        }

        boolean has(int index, byte[] code) {
            return codes != null && index >= 0 && index < codes.length && Arrays.equals(codes[index], code);
        }

        boolean contradicts(int length, long crc, int index) {
            return codes != null && (this.length != length || this.crc != crc || codes[index] != null);
        }

        boolean isWhole() {
            return state != null && Arrays.stream(codes).allMatch(Objects::nonNull);
        }
    }

    private final IntFunction<byte[]> room;
    private final int mostBytes;
    private volatile Map<String, Arrival> byMove = Map.of();

    StateArrivals() {
        this(byte[]::new, BoltState.SIZE_MAX_BYTES);
    }

    /**
     * @param room makes the array that a state is put together in
     * @param mostBytes how large a state may be that this worker's heap takes: that of its source may be larger
     */
    StateArrivals(IntFunction<byte[]> room, int mostBytes) {
        this.room = room;
        this.mostBytes = mostBytes;
    }

    /** The moves whose state is to come here, each with its key; what is there of others is dropped. */
    void await(Map<String, byte[]> moves) {
        Map<String, Arrival> before = byMove;
        Map<String, Arrival> now = new HashMap<>();
        moves.forEach((move, key) -> {
            Arrival known = before.get(move);
            now.put(move, known != null && Arrays.equals(known.key, key) ? known : new Arrival(key));
        });
        byMove = now;
    }

    /** One piece of a state, with its place in it, and a code that only who has the key can make. */
    static byte[] piece(String move, byte[] key, StateBytes state, long crc, int index) {
        ByteBuffer bytes = state.piece(index);
        byte[] name = move.getBytes(StandardCharsets.UTF_8);
        ByteBuffer piece =
                ByteBuffer.allocate(name.length + 3 * Integer.BYTES + Long.BYTES + bytes.remaining() + MAC_BYTES);
        piece.putInt(name.length)
                .put(name)
                .putInt(state.size())
                .putLong(crc)
                .putInt(index)
                .put(bytes);
        return piece.put(code(key, piece.array(), piece.position())).array();
    }

    private static byte[] code(byte[] key, byte[] bytes, int length) {
        try {
            Mac mac = Mac.getInstance(MAC);
            mac.init(new SecretKeySpec(key, MAC));
            mac.update(bytes, 0, length);
            return mac.doFinal();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("each Java has " + MAC, e);
        }
    }

    /**
     * Takes a piece, of any thread. What is sent again changes nothing, even after the state was taken; what contradicts a piece that is there has the
     * move refused.
     *
     * @throws IOException if it is no piece, or not from who has the key, or contradicts another
     */
    void take(byte[] piece) throws IOException {
        int signed = piece.length - MAC_BYTES;
        try {
            ByteBuffer in = ByteBuffer.wrap(piece, 0, Math.max(signed, 0));
            byte[] name = new byte[Math.min(in.getInt(), in.remaining())];
            in.get(name);
            String move = new String(name, StandardCharsets.UTF_8);
            Arrival arrival = byMove.get(move);
            int length = in.getInt();
            long crc = in.getLong();
            int index = in.getInt();
            byte[] code = Arrays.copyOfRange(piece, signed, piece.length);
            if (arrival == null || has(arrival, index, code)) {
                return;
            }
            if (!MessageDigest.isEqual(code(arrival.key, piece, signed), code)) {
                throw new IOException("a piece of the state of move " + move + " is not from its source");
            }
            put(arrival, length, crc, index, in, code);
        } catch (BufferUnderflowException
                | IllegalArgumentException
                | IndexOutOfBoundsException
                | NegativeArraySizeException e) {
            throw new IOException("no piece of a state", e);
        }
    }

    private static boolean fits(int length, int index, int bytes) {
        return length >= 0
                && index >= 0
                && index <= length / StateBytes.PIECE_BYTES
                && bytes == Math.min(StateBytes.PIECE_BYTES, length - index * StateBytes.PIECE_BYTES);
    }

    /** Rounded up: it is larger than the bound, which is rounded down. */
    private static int megabytes(int bytes) {
        return (int) ((bytes + (1L << 20) - 1) >> 20);
    }

    private synchronized boolean has(Arrival arrival, int index, byte[] code) {
        return arrival.has(index, code);
    }

    private synchronized void put(Arrival arrival, int length, long crc, int index, ByteBuffer bytes, byte[] code)
            throws IOException {
        if (!fits(length, index, bytes.remaining())) {
            throw new IOException("a piece that fits into no state");
        }
        if (arrival.refusal != null || arrival.has(index, code)) {
            return;
        }
        if (arrival.contradicts(length, crc, index)) {
            arrival.refusal = "came in pieces that contradict one another";
            arrival.state = null;
            throw new IOException("its state " + arrival.refusal);
        }
        if (arrival.codes == null) {
            if (length > mostBytes) {
                arrival.refusal = "is of " + megabytes(length) + " MB, and the heap of its target takes "
                        + (mostBytes >> 20) + " MB";
                arrival.tooLarge = true;
                return;
            }
            try {
                arrival.state = room.apply(length);
            } catch (OutOfMemoryError e) {
                arrival.refusal = "no room for it";
                return;
            }
            arrival.length = length;
            arrival.crc = crc;
            arrival.codes = new byte[StateBytes.pieces(length)][];
        }
        bytes.get(arrival.state, index * StateBytes.PIECE_BYTES, bytes.remaining());
        arrival.codes[index] = code;
    }

    /** The state of a move, once it is whole, and only once; else null. */
    synchronized byte[] whole(String move) {
        Arrival arrival = byMove.get(move);
        if (arrival == null || !arrival.isWhole()) {
            return null;
        }
        byte[] state = arrival.state;
        arrival.state = null;
        return state;
    }

    /** Forgets what is there: another one may come. */
    synchronized void again(String move) {
        Arrival arrival = byMove.get(move);
        arrival.codes = null;
        arrival.state = null;
    }

    /** Why no state of that size is ever taken here; null if it may be. */
    synchronized String tooLarge(String move) {
        Arrival arrival = byMove.get(move);
        return arrival == null || !arrival.tooLarge ? null : arrival.refusal;
    }

    /** Why the state of the move is not taken; null as long as it may be. */
    synchronized String refusal(String move) {
        Arrival arrival = byMove.get(move);
        return arrival == null ? null : arrival.refusal;
    }
}
