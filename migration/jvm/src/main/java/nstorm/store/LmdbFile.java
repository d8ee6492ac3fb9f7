package nstorm.store;

import java.io.EOFException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Reads one key of an LMDB 0.9 environment from its data file, without the library, without locks and without a map.
 *
 * <p>The library's own reader writes the lock file and dies with SIGBUS when the data file is truncated. A map in Java
 * is no way out. The JVM then throws an {@link InternalError} at some later point of the thread, even in the middle of
 * the JDK. A read of a file only falls short, and needs no right to write. Without a reader slot nothing keeps the
 * writer from reusing pages, so each read is checked. LMDB reuses the pages of snapshot t at the earliest while it
 * writes t+3. So a copy is whole if the newest snapshot is then at most t+1.
 *
 * <p>The layout is that of {@code MDB_page}, {@code MDB_meta}, {@code MDB_db} and {@code MDB_node} in LMDB's
 * mdb.c, data version 1, on a 64-bit machine.
 */
final class LmdbFile implements PlanFile {

    private static final int MAGIC = 0xBEEFC0DE;
    private static final int DATA_VERSION = 1;
    private static final int LARGEST_PAGE = 1 << 16;
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

    private final Path path;
    private final RandomAccessFile file;
    private final int pageSize;
    private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder());

    /** A snapshot's number and the page where its main database begins; -1 where that is empty. */
    private record Snapshot(long txn, long root) {}

    /**
     * Opens the data file.
     *
     * @throws IOException if it is absent, unreadable or not of LMDB 0.9
     */
    LmdbFile(Path dataFile) throws IOException {
        path = dataFile;
        file = new RandomAccessFile(dataFile.toFile(), "r");
        try {
            pageSize = checkedPageSize();
        } catch (IOException e) {
            file.close();
            throw e;
        }
    }

    private int checkedPageSize() throws IOException {
        ByteBuffer meta = file.length() < META_END ? ByteBuffer.allocate(META_END) : bytes(0, META_END);
        if (meta.getInt(PAGE_HEAD) != MAGIC || meta.getInt(META_VERSION) != DATA_VERSION) {
            throw new IOException(path + " is not an LMDB 0.9 file");
        }
        int size = meta.getInt(META_PAGE_SIZE);
        if (Integer.bitCount(size) != 1 || size < 512 || size > LARGEST_PAGE) {
            throw new IOException(path + " has pages of " + size + " bytes");
        }
        return size;
    }

    /**
     * The number of the newest snapshot: reads two longs.
     *
     * @throws EOFException if the file has been truncated
     */
    @Override
    public long newest() throws IOException {
        return Math.max(txn(0), txn(pageSize));
    }

    /**
     * The newest value of a key.
     *
     * @throws EOFException if the file has been truncated
     */
    @Override
    public Read read(String key) throws IOException {
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
        throw new IOException(path + " was written " + TRIES + " times while it was read", torn);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }

    private long txn(int page) throws IOException {
        return number(page + META_TXN);
    }

    /** The number first, then the root: LMDB writes them the other way round. */
    private Snapshot snapshot() throws IOException {
        long first = txn(0);
        long second = txn(pageSize);
        int page = first > second ? 0 : pageSize;
        return new Snapshot(Math.max(first, second), number(page + META_MAIN_ROOT));
    }

    private byte[] find(long root, byte[] key) throws IOException {
        long at = offset(root);
        ByteBuffer page = bytes(at, pageSize);
        if ((page.getShort(PAGE_FLAGS) & LEAF) == 0) {
            throw new IOException(path + " holds more keys than a page, or its root is damaged");
        }
        int nodes = (Short.toUnsignedInt(page.getShort(PAGE_LOWER)) - PAGE_HEAD) / 2;
        for (int i = 0; i < nodes; i++) {
            int node = Short.toUnsignedInt(page.getShort(PAGE_HEAD + 2 * i));
            int keySize = Short.toUnsignedInt(page.getShort(node + NODE_KEY_SIZE));
            if (keySize == key.length && page.slice(node + NODE_KEY, keySize).equals(ByteBuffer.wrap(key))) {
                return value(page, node, at + node + NODE_KEY + keySize);
            }
        }
        return null;
    }

    private byte[] value(ByteBuffer page, int node, long at) throws IOException {
        int size = page.getInt(node);
        if ((page.getShort(node + NODE_FLAGS) & BIG_DATA) == 0) {
            return bytes(at, size).array();
        }
        long overflow = offset(number(at));
        if ((bytes(overflow, PAGE_HEAD).getShort(PAGE_FLAGS) & OVERFLOW) == 0) {
            throw new IOException(path + " has a damaged overflow page");
        }
        return bytes(overflow + PAGE_HEAD, size).array();
    }

    private long offset(long page) throws IOException {
        if (page < 0 || page >= file.length() / pageSize) {
            throw new IOException(path + " names page " + page + ", past its end");
        }
        return page * pageSize;
    }

    private long number(long at) throws IOException {
        file.seek(at);
        file.readFully(number.array());
        return number.getLong(0);
    }

    private ByteBuffer bytes(long at, int size) throws IOException {
        if (size < 0 || at + size > file.length()) {
            throw new IOException(path + " has " + size + " bytes at " + at + ", past its end");
        }
        byte[] bytes = new byte[size];
        file.seek(at);
        file.readFully(bytes);
        return ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
    }
}
