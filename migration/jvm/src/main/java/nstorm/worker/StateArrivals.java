package nstorm.worker;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32;
import nstorm.memory.BoltState;

/**
 * States of bolts on their way: cut into pieces at the source, put together at the target. Pieces may come twice, and in
 * any order; only those of a move to here are kept.
 */
final class StateArrivals {
    static final int PIECE_BYTES = 256 << 10;

    /** What is there of one state; the bytes of a piece are put in place once. */
    private static final class Parts {
        final byte[][] pieces;
        final int length;
        final long crc;

        Parts(int count, int length, long crc) {
            pieces = new byte[count][];
            this.length = length;
            this.crc = crc;
        }
    }

    private final Map<String, Parts> byMove = new ConcurrentHashMap<>();
    private volatile Set<String> awaited = Set.of();

    /** The moves whose state is to come here; what is there of others is dropped. */
    void await(Set<String> moves) {
        awaited = Set.copyOf(moves);
        byMove.keySet().retainAll(moves);
    }

    /** Cuts a state into pieces. */
    static List<byte[]> cut(String move, byte[] state) {
        CRC32 crc = new CRC32();
        crc.update(state);
        int count = Math.max(1, (state.length + PIECE_BYTES - 1) / PIECE_BYTES);
        List<byte[]> pieces = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int from = i * PIECE_BYTES;
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(PIECE_BYTES + 256);
            try (DataOutputStream out = new DataOutputStream(bytes)) {
                out.writeUTF(move);
                out.writeInt(state.length);
                out.writeLong(crc.getValue());
                out.writeInt(i);
                out.write(state, from, Math.min(PIECE_BYTES, state.length - from));
            } catch (IOException e) {
                throw new IllegalStateException("into memory", e);
            }
            pieces.add(bytes.toByteArray());
        }
        return pieces;
    }

    /** Takes a piece, of any thread. A state that is another one than before begins anew. */
    synchronized void take(byte[] piece) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(piece));
        String move = in.readUTF();
        int length = in.readInt();
        long crc = in.readLong();
        int index = in.readInt();
        int count = Math.max(1, (length + PIECE_BYTES - 1) / PIECE_BYTES);
        if (!awaited.contains(move) || length < 0 || length > BoltState.SIZE_MAX_BYTES || index < 0 || index >= count) {
            return;
        }
        Parts parts = byMove.get(move);
        if (parts == null || parts.length != length || parts.crc != crc) {
            parts = new Parts(count, length, crc);
            byMove.put(move, parts);
        }
        parts.pieces[index] = in.readAllBytes();
    }

    /** The state of a move, once it is whole and right; else null. */
    synchronized byte[] whole(String move) {
        Parts parts = byMove.get(move);
        if (parts == null || Arrays.asList(parts.pieces).contains(null)) {
            return null;
        }
        ByteArrayOutputStream all = new ByteArrayOutputStream(parts.length);
        for (byte[] piece : parts.pieces) {
            all.writeBytes(piece);
        }
        byte[] state = all.toByteArray();
        CRC32 crc = new CRC32();
        crc.update(state);
        byMove.remove(move);
        return state.length == parts.length && crc.getValue() == parts.crc ? state : null;
    }
}
