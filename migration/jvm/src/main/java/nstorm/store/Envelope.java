package nstorm.store;

import java.nio.ByteBuffer;
import java.util.zip.CRC32;
import nstorm.wire.json.WireException;

/** The frame around every stored value: who wrote it, how often it changed, and whether it is whole. */
record Envelope(long version, byte[] payload) {

    private static final int MAGIC = 0x4E53544D;
    private static final short SCHEMA = 1;
    private static final int HEAD_BYTES = 18;
    private static final int CRC_BYTES = 4;

    byte[] toBytes() {
        ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + payload.length + CRC_BYTES);
        out.putInt(MAGIC)
                .putShort(SCHEMA)
                .putLong(version)
                .putInt(payload.length)
                .put(payload);
        return out.putInt(crc(out.array())).array();
    }

    static Envelope parse(byte[] bytes) throws WireException {
        if (bytes.length < HEAD_BYTES + CRC_BYTES) {
            throw new WireException("envelope of " + bytes.length + " bytes is shorter than its own frame");
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        int magic = in.getInt();
        int schema = in.getShort();
        long version = in.getLong();
        int length = in.getInt();
        if (magic != MAGIC || schema != SCHEMA || length != bytes.length - HEAD_BYTES - CRC_BYTES) {
            throw new WireException("envelope begins with magic " + Integer.toHexString(magic) + ", schema " + schema
                    + ", length " + length + " of " + bytes.length);
        }
        byte[] payload = new byte[length];
        in.get(payload);
        if (in.getInt() != crc(bytes)) {
            throw new WireException("envelope is damaged: its CRC-32 does not fit");
        }
        return new Envelope(version, payload);
    }

    private static int crc(byte[] bytes) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, bytes.length - CRC_BYTES);
        return (int) crc.getValue();
    }
}
