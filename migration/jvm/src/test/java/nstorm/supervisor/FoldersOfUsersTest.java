package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.storm.generated.LocalAssignment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FoldersOfUsersTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final String ME = System.getProperty("user.name");

    @TempDir
    Path store;

    private final List<String> given = new ArrayList<>();
    private long nowNanos = System.nanoTime();

    private void look(FoldersOfUsers folders, String... owners) {
        List<LocalAssignment> slots = new ArrayList<>();
        for (String owner : owners) {
            slots.add(Assignments.of("t-" + owner, owner, 1));
        }
        nowNanos += SECOND;
        folders.look(slots, nowNanos);
    }

    private String mode(String name) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(store.resolve(name)));
    }

    @Test
    void closesTheStoreAndMakesWhatIsMissing() throws Exception {
        Files.createDirectory(store.resolve("plan"));
        Files.setPosixFilePermissions(store.resolve("plan"), PosixFilePermissions.fromString("rwxr-xr-x"));
        Files.setPosixFilePermissions(store, PosixFilePermissions.fromString("rwxrwx---"));
        FoldersOfUsers folders = new FoldersOfUsers(store, (user, dir) -> given.add(user));
        look(folders, ME);
        look(folders, ME, ME);
        assertEquals("rwxrwx--x", mode(""));
        assertEquals("rwxr-x---", mode("plan"));
        assertEquals("--x", mode("u").substring(6));
        assertTrue(Files.isDirectory(store.resolve("u").resolve(ME)));
        assertEquals(List.of(), given, "it belongs to the user already");
        Files.createDirectory(store.resolve("s"));
        Files.setPosixFilePermissions(store.resolve("s"), PosixFilePermissions.fromString("rwxrwxrwx"));
        look(folders, ME);
        assertEquals("rwxrwx---", mode("s"), "what is made later too");
    }

    @Test
    void triesAgainWhereTheLauncherHasNotGivenAFolder() throws Exception {
        FoldersOfUsers folders = new FoldersOfUsers(store, (user, dir) -> {
            given.add(user + " " + PosixFilePermissions.toString(Files.getPosixFilePermissions(dir)));
            throw new IOException("no launcher");
        });
        look(folders, "somebody-else");
        folders.look(List.of(Assignments.of("t", "somebody-else", 1)), nowNanos + 1);
        look(folders, "somebody-else", ME);
        String closed = "somebody-else rwxrwx---";
        assertEquals(List.of(closed, closed), given);
        assertTrue(Files.isDirectory(store.resolve("u").resolve(ME)), "one user's trouble is not another's");
    }

    @Test
    void aNameIsNoPath() {
        FoldersOfUsers folders = new FoldersOfUsers(store, (user, dir) -> given.add(user));
        look(folders, "..", "a/b", "-rf", "", "../../etc");
        assertEquals(List.of(), given);
        assertFalse(Files.exists(store.resolve("u").resolve("a")));
    }
}
