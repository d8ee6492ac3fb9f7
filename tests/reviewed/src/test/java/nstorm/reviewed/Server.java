package nstorm.reviewed;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A process of this test's that serves a port of this machine. */
final class Server implements AutoCloseable {
    private static final long START_MS = 60_000;

    private final Process process;

    private Server(Process process) {
        this.process = process;
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** Starts it, and waits until it answers. */
    static Server start(List<String> command, int port, Path log) throws Exception {
        Server server = new Server(new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start());
        long untilMs = System.currentTimeMillis() + START_MS;
        while (true) {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1000);
                return server;
            } catch (IOException e) {
                if (!server.process.isAlive() || System.currentTimeMillis() > untilMs) {
                    server.close();
                    throw new IllegalStateException("it does not serve its port: see " + log, e);
                }
                Thread.sleep(100);
            }
        }
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(20, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }
}
