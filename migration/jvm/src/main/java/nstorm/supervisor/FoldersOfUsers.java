package nstorm.supervisor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import nstorm.store.UserFolders;
import org.apache.storm.generated.LocalAssignment;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the folder of each user whose workers run here, and keeps all else in the store from these users.
 *
 * <p>Storm's worker-launcher gives a folder away, as Storm does with what its workers write. It then belongs to the
 * user and to the group of Storm. All is looked at once a second, for the agent may make its folder later.
 */
final class FoldersOfUsers {

    private static final Logger LOG = LoggerFactory.getLogger(FoldersOfUsers.class);
    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final Pattern USER = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9._-]*[$]?");
    private static final String MODE = "unix:mode";
    private static final int OTHERS = 07;
    private static final int ENTER = 01;

    /** Gives a folder to a user. */
    interface Launcher {
        void give(String user, Path dir) throws IOException;
    }

    private final Path storeDir;
    private final Launcher launcher;
    private final Set<String> made = new HashSet<>();
    private final Set<String> logged = new HashSet<>();
    private long lookedNanos = System.nanoTime() - PAUSE_NANOS;

    FoldersOfUsers(Path storeDir, Launcher launcher) {
        this.storeDir = storeDir;
        this.launcher = launcher;
    }

    /** Makes what these workers still lack; what cannot be made is logged once, and tried again. */
    void look(Collection<LocalAssignment> slots, long nowNanos) {
        if (nowNanos - lookedNanos < PAUSE_NANOS) {
            return;
        }
        lookedNanos = nowNanos;
        Set<String> users = slots.stream()
                .filter(LocalAssignment::is_set_owner)
                .map(LocalAssignment::get_owner)
                .collect(Collectors.toCollection(TreeSet::new));
        made.retainAll(users);
        tryTo("close " + storeDir + " to other users", this::close);
        for (String user : users) {
            if (!made.contains(user)) {
                tryTo("make the folder of user " + user, () -> make(user));
            }
        }
    }

    private interface Step {
        void run() throws IOException;
    }

    private void tryTo(String what, Step step) {
        try {
            step.run();
            logged.remove(what);
        } catch (IOException | RuntimeException | LinkageError e) {
            if (logged.add(what)) {
                LOG.error("nstorm: cannot {}: its workers take part in no move until this is possible", what, e);
            }
        }
    }

    private void close() throws IOException {
        Path all = UserFolders.all(storeDir);
        Files.createDirectories(all);
        allowOthers(storeDir, ENTER);
        allowOthers(all, ENTER);
        for (String own : new String[] {"plan", "s", "w"}) {
            if (Files.isDirectory(storeDir.resolve(own))) {
                allowOthers(storeDir.resolve(own), 0);
            }
        }
    }

    private static void allowOthers(Path dir, int bits) throws IOException {
        int mode = (int) Files.getAttribute(dir, MODE) & 07777;
        if ((mode & OTHERS) != bits) {
            Files.setAttribute(dir, MODE, mode & ~OTHERS | bits);
        }
    }

    private void make(String user) throws IOException {
        if (!USER.matcher(user).matches()) {
            throw new IOException("this is no name of a folder");
        }
        Path dir = UserFolders.all(storeDir).resolve(user);
        if (!Files.isDirectory(dir, LinkOption.NOFOLLOW_LINKS)) {
            Files.createDirectory(dir);
        }
        if (!belongs(dir, user)) {
            // The launcher adds the rights of the group, and takes nobody's.
            Files.setPosixFilePermissions(dir, PosixFilePermissions.fromString("rwxrwx---"));
            launcher.give(user, dir);
        }
        if (!belongs(dir, user)) {
            throw new IOException(dir + " still belongs to " + Files.getOwner(dir) + ": see what worker-launcher logs");
        }
        made.add(user);
        LOG.info("nstorm: the workers of {} exchange plans and reports with the agent in {}", user, dir);
    }

    private static boolean belongs(Path dir, String user) throws IOException {
        return Files.getOwner(dir, LinkOption.NOFOLLOW_LINKS).getName().equals(user);
    }
}
