package nstorm.state;

import java.io.ByteArrayOutputStream;

/** As many bytes of a state as may travel at once. */
final class Bounded extends ByteArrayOutputStream {
    @Override
    public synchronized void write(int b) {
        check(1);
        super.write(b);
    }

    @Override
    public synchronized void write(byte[] b, int off, int len) {
        check(len);
        super.write(b, off, len);
    }

    private void check(int more) {
        if (count + more > BoltState.SIZE_MAX_BYTES) {
            throw new IllegalStateException("its state is larger than " + (BoltState.SIZE_MAX_BYTES >> 20) + " MB");
        }
    }
}
