package nstorm.bench;

/** Runs JMH and then ends the JVM, which the threads of the worker in it would keep alive for ever. */
public final class Measure {
    private Measure() {}

    public static void main(String[] args) {
        try {
            org.openjdk.jmh.Main.main(args);
            System.exit(0);
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            System.exit(1);
        }
    }
}
