package nstorm.store;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A sample store that cannot always be opened at once: its folder may come later, be full or not yet writable.
 *
 * <p>For one thread.
 */
public final class LateSampleStore {
    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Opens a store. */
    public interface Opening {
        SampleStore open() throws IOException;
    }

    private final Opening opening;
    private final Consumer<Exception> onFirstFailure;
    private SampleStore store;
    private boolean failed;
    private long triedNanos;

    /**
     * Opens nothing yet.
     *
     * @param onFirstFailure gets the first failure; the next ones, one a second, would only repeat it
     */
    public LateSampleStore(Opening opening, Consumer<Exception> onFirstFailure) {
        this.opening = opening;
        this.onFirstFailure = onFirstFailure;
    }

    /** The store; null while it cannot be opened, which is tried again each second. */
    public SampleStore get(long nowNanos) {
        if (store == null && (!failed || nowNanos - triedNanos > PAUSE_NANOS)) {
            triedNanos = nowNanos;
            try {
                store = opening.open();
            } catch (IOException | RuntimeException e) {
                if (!failed) {
                    onFirstFailure.accept(e);
                }
                failed = true;
            }
        }
        return store;
    }
}
