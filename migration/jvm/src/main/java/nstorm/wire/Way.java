package nstorm.wire;

import java.util.Locale;

/** How a move hands its executor over; PROTOCOL.md has the table. */
public enum Way {
    LIVE,
    ACKER,
    SPOUT,
    CARRY,
    DRAIN,
    RENEW,
    /** Of a later version of the protocol: this JVM changes nothing for such an entry, and reports it. */
    UNKNOWN;

    private final String word = name().toLowerCase(Locale.ROOT);

    /** The way of this word. */
    static Way of(String word) {
        for (Way way : values()) {
            if (way.word.equals(word)) {
                return way;
            }
        }
        return UNKNOWN;
    }

    @Override
    public String toString() {
        return word;
    }
}
