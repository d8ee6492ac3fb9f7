package nstorm.worker;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import nstorm.state.BoltState;
import nstorm.state.StateBytes;

/**
 * States of bolts on their way: cut into pieces at the source, put together at the target. Pieces may come twice, and in
 * any order. Only those of a move to here are kept, and only from a sender that has its key, which is in no message.
 */
final class StateArrivals {
    private static final String MAC = "HmacSHA256";
    private static final int MAC_BYTES = 32;

    /** What is there of the state of one move. */
    private static final class Arrival {
        final byte[] key;
        long crc;
        byte[] state;
        BitSet missing;
        /** It was given away whole: what is sent again is not kept. */
        volatile boolean taken;
        boolean tooLarge;

        Arrival(byte[] key) {
            this.key = key;
        }

        boolean isOf(int length, long crc) {
            return state != null && state.length == length && this.crc == crc;
        }
    }

    private final IntFunction<byte[]> room;
    private volatile Map<String, Arrival> byMove = Map.of();

    StateArrivals() {
        this(byte[]::new);
    }

    /** @param room makes the array that a state is put together in */
    StateArrivals(IntFunction<byte[]> room) {
        this.room = room;
    }

    /** The moves whose state is to come here, each with its key; what is there of others is dropped. */
    void await(Map<String, byte[]> moves) {
        Map<String, Arrival> before = byMove;
        Map<String, Arrival> now = new HashMap<>();
        moves.forEach((move, key) -> now.put(move, before.containsKey(move) ? before.get(move) : new Arrival(key)));
        byMove = now;
    }

    /** One piece of a state, with its place in it, and a code that only who has the key can make. */
    static byte[] piece(String move, byte[] key, StateBytes state, long crc, int index) {
        ByteBuffer bytes = state.piece(index);
        byte[] name = move.getBytes(StandardCharsets.UTF_8);
        ByteBuffer piece = ByteBuffer.allocate(name.length + 3 * Integer.BYTES + Long.BYTES + bytes.remaining() + MAC_BYTES);
        piece.putInt(name.length).put(name).putInt(state.size()).putLong(crc).putInt(index).put(bytes);
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
     * Takes a piece, of any thread. A state that is another one than before begins anew.
     *
     * @throws IOException if it is no piece, or not from who knows the plan
     */
    void take(byte[] piece) throws IOException {
        int signed = piece.length - MAC_BYTES;
        try {
            ByteBuffer in = ByteBuffer.wrap(piece, 0, Math.max(signed, 0));
            byte[] name = new byte[Math.min(in.getInt(), in.remaining())];
            in.get(name);
            String move = new String(name, StandardCharsets.UTF_8);
            Arrival arrival = byMove.get(move);
            if (arrival == null || arrival.taken) {
                return;
            }
            if (!MessageDigest.isEqual(code(arrival.key, piece, signed), Arrays.copyOfRange(piece, signed, piece.length))) {
                throw new IOException("a piece of the state of move " + move + " is not from its source");
            }
            put(arrival, in.getInt(), in.getLong(), in.getInt(), in);
        } catch (BufferUnderflowException | IndexOutOfBoundsException | NegativeArraySizeException e) {
            throw new IOException("no piece of a state", e);
        }
    }

    private static boolean fits(int length, int index, int bytes) {
        return length >= 0 && length <= BoltState.SIZE_MAX_BYTES && index >= 0 && index <= length / StateBytes.PIECE_BYTES
                && bytes == Math.min(StateBytes.PIECE_BYTES, length - index * StateBytes.PIECE_BYTES);
    }

    private synchronized void put(Arrival arrival, int length, long crc, int index, ByteBuffer bytes) throws IOException {
        if (!fits(length, index, bytes.remaining())) {
            throw new IOException("a piece that fits into no state");
        }
        if (arrival.taken || arrival.tooLarge) {
            return;
        }
        if (!arrival.isOf(length, crc)) {
            try {
                arrival.state = room.apply(length);
            } catch (OutOfMemoryError e) {
                arrival.tooLarge = true;
                return;
            }
            arrival.crc = crc;
            arrival.missing = new BitSet();
            arrival.missing.set(0, StateBytes.pieces(length));
        }
        bytes.get(arrival.state, index * StateBytes.PIECE_BYTES, bytes.remaining());
        arrival.missing.clear(index);
    }

    /** The state of a move, once it is whole, and only once; else null. */
    synchronized byte[] whole(String move) {
        Arrival arrival = byMove.get(move);
        if (arrival == null || arrival.state == null || !arrival.missing.isEmpty()) {
            return null;
        }
        byte[] state = arrival.state;
        arrival.state = null;
        arrival.taken = true;
        return state;
    }

    /** Whether this JVM has no room for the state of the move. */
    synchronized boolean tooLarge(String move) {
        Arrival arrival = byMove.get(move);
        return arrival != null && arrival.tooLarge;
    }
}
