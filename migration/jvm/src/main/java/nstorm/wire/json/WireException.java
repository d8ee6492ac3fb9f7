package nstorm.wire.json;

/** Bytes that are not as in PROTOCOL.md; the message names the field. */
public final class WireException extends Exception {

    private static final long serialVersionUID = 1;

    public WireException(String message) {
        super(message);
    }

    public WireException(String message, Throwable cause) {
        super(message, cause);
    }
}
