package nstorm.store;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reads one key of an LMDB 0.9 environment from its mapped data file, without the library and without locks.
 *
 * <p>A reader of the library's own writes the lock file and dies with SIGBUS when somebody truncates the data
 * file; this one needs no right to write and gets an {@link InternalError} then. Without a reader slot nothing
 * keeps the writer from reusing pages, so each read is checked: LMDB reuses the pages of snapshot t at the
 * earliest while it writes t+3, thus what was copied is whole if the newest snapshot is then at most t+1.
 *
 * <p>The layout is that of {@code MDB_page}, {@code MDB_meta}, {@code MDB_db} and {@code MDB_node} in LMDB's
 * mdb.c, data version 1, on a 64-bit machine.
 */
final class LmdbFile {

    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ORDER);

    private static final int MAGIC = 0xBEEFC0DE;
    private static final int DATA_VERSION = 1;
    private static final int PAGE_HEAD = 16;
    private static final int PAGE_FLAGS = 10;
    private static final int PAGE_LOWER = 12;
    private static final int LEAF = 0x02;
    private static final int OVERFLOW = 0x04;
    private static final int META_VERSION = PAGE_HEAD + 4;
    private static final int META_PAGE_SIZE = PAGE_HEAD + 24;
    private static final int META_MAIN_ROOT = PAGE_HEAD + 112;
    private static final int META_TXN = PAGE_HEAD + 128;
    private static final int META_END = META_TXN + 8;
    private static final int NODE_FLAGS = 4;
    private static final int NODE_KEY_SIZE = 6;
    private static final int NODE_KEY = 8;
    private static final int BIG_DATA = 0x01;
    private static final int TRIES = 20;

    private final Path file;
    private final int pageSize;
    private ByteBuffer map;

    /** A snapshot's number and the page where its main database begins; -1 where that is empty. */
    private record Snapshot(long txn, long root) {
    }

    /** A value as of a snapshot; null where the key is absent. */
    record Read(long txn, byte[] value) {
    }

    /**
     * Maps the data file.
     *
     * @throws IOException if it is absent, unreadable or not of LMDB 0.9
     */
    LmdbFile(Path dataFile) throws IOException {
        file = dataFile;
        map = mapped();
        if (map.capacity() < META_END || map.getInt(PAGE_HEAD) != MAGIC || map.getInt(META_VERSION) != DATA_VERSION) {
            throw new IOException(file + " is not an LMDB 0.9 file");
        }
        pageSize = map.getInt(META_PAGE_SIZE);
        if (Integer.bitCount(pageSize) != 1 || pageSize < 512 || map.capacity() < pageSize + META_END) {
            throw new IOException(file + " has pages of " + pageSize + " bytes");
        }
    }

    /** The number of the newest snapshot: two reads of memory. */
    long newest() {
        return Math.max(txn(0), txn(pageSize));
    }

    /** The newest value of a key, copied. */
    Read read(String key) throws IOException {
        byte[] wanted = key.getBytes(StandardCharsets.UTF_8);
        Exception torn = null;
        for (int i = 0; i < TRIES; i++) {
            Snapshot snapshot = snapshot();
            byte[] value = null;
            try {
                value = snapshot.root == -1 ? null : find(snapshot.root, wanted);
                torn = null;
            } catch (IOException | IndexOutOfBoundsException e) {
                // Bad if the snapshot was still whole, and no wonder if it was not.
                torn = e;
            }
            if (newest() <= snapshot.txn + 1) {
                if (torn != null) {
                    throw new IOException("the store is damaged: " + torn.getMessage(), torn);
                }
                return new Read(snapshot.txn, value);
            }
        }
        throw new IOException(file + " was written " + TRIES + " times while it was read", torn);
    }

    private long txn(int page) {
        return (long) LONG.getVolatile(map, page + META_TXN);
    }

    private Snapshot snapshot() {
        int page = txn(0) > txn(pageSize) ? 0 : pageSize;
        return new Snapshot(txn(page), map.getLong(page + META_MAIN_ROOT));
    }

    private byte[] find(long root, byte[] key) throws IOException {
        int page = offset(root, pageSize);
        if ((map.getShort(page + PAGE_FLAGS) & LEAF) == 0) {
            throw new IOException(file + " holds more keys than a page, or its root is damaged");
        }
        int nodes = (Short.toUnsignedInt(map.getShort(page + PAGE_LOWER)) - PAGE_HEAD) / 2;
        if (nodes < 0 || nodes > pageSize / NODE_KEY) {
            throw new IOException(file + " has a damaged page: " + nodes + " nodes");
        }
        for (int i = 0; i < nodes; i++) {
            int node = page + Short.toUnsignedInt(map.getShort(page + PAGE_HEAD + 2 * i));
            int keySize = Short.toUnsignedInt(map.getShort(node + NODE_KEY_SIZE));
            if (keySize == key.length && map.slice(node + NODE_KEY, keySize).equals(ByteBuffer.wrap(key))) {
                return value(node, keySize);
            }
        }
        return null;
    }

    private byte[] value(int node, int keySize) throws IOException {
        int size = map.getInt(node);
        int at = node + NODE_KEY + keySize;
        if ((map.getShort(node + NODE_FLAGS) & BIG_DATA) != 0) {
            int page = offset(map.getLong(at), (long) PAGE_HEAD + size);
            if ((map.getShort(page + PAGE_FLAGS) & OVERFLOW) == 0) {
                throw new IOException(file + " has a damaged overflow page");
            }
            at = page + PAGE_HEAD;
        }
        if (size < 0 || (long) at + size > map.capacity()) {
            throw new IOException(file + " has a value of " + size + " bytes at " + at + ", past its end");
        }
        byte[] value = new byte[size];
        map.get(at, value);
        return value;
    }

    /** Where a page is in the map; maps anew if the file has grown past the old one. */
    private int offset(long page, long length) throws IOException {
        long at = page * pageSize;
        if (page >= 0 && at + length > map.capacity()) {
            map = mapped();
        }
        if (page < 0 || page > Integer.MAX_VALUE || length < 0 || at + length > map.capacity()) {
            throw new IOException(file + " names page " + page + ", past its end");
        }
        return (int) at;
    }

    private ByteBuffer mapped() throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            long size = Math.min(channel.size(), Integer.MAX_VALUE);
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, size).order(ORDER);
        }
    }
}
