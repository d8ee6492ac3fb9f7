package nstorm.proof;

/** 64-bit hashes that are the same in each JVM. */
final class Hash {
    private static final long MULTIPLIER = 0x9E3779B97F4A7C15L;

    private static final long ENTRY = 0x656E747279L;

    private Hash() {}

    /** Of a sequence so far and what comes next. */
    static long mix(long before, long next) {
        long mixed = (before ^ next) * MULTIPLIER;
        mixed ^= mixed >>> 32;
        mixed *= 0xD6E8FEB86659FD93L;
        return mixed ^ mixed >>> 29;
    }

    /** Of a key and its value. It counts which of the two is which, also where they are equal. */
    static long entry(long key, long value) {
        return mix(mix(ENTRY, key), value);
    }

    static long text(CharSequence text) {
        long hash = text.length();
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * 0x100000001B3L;
        }
        return mix(hash, text.length());
    }

    static long text(String text) {
        long hash = text.length();
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * 0x100000001B3L;
        }
        return mix(hash, text.length());
    }
}
