package nstorm;

/** Threads that a test ends, since its JVM goes on. */
public final class Threads {
    private Threads() {}

    /** Interrupts a thread until it has ended. */
    public static void end(Thread thread) throws InterruptedException {
        while (thread.isAlive()) {
            // Storm's classes swallow an interrupt in the middle of a pass.
            thread.interrupt();
            thread.join(100);
        }
    }
}
