package nstorm.workload;

/**
 * One for the whole JVM, as users' clients of a database are. The first bolt opens it, any bolt's cleanup closes it,
 * and then no bolt of the JVM gets an answer.
 */
final class SharedClient {
    private static volatile SharedClient ofThisJvm;

    private volatile boolean closed;

    private SharedClient() {}

    static synchronized SharedClient get() {
        if (ofThisJvm == null) {
            ofThisJvm = new SharedClient();
        }
        return ofThisJvm;
    }

    String ask(String word) {
        if (closed) {
            throw new IllegalStateException("the client of this JVM is closed");
        }
        return word;
    }

    void close() {
        closed = true;
    }
}
