package nstorm.nimbus;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.cluster.VersionedData;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.storm.shade.org.apache.zookeeper.KeeperException;
import org.apache.storm.shade.org.apache.zookeeper.Watcher;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.data.Stat;
import org.apache.storm.zookeeper.ClientZookeeper;

/** The few operations on ZooKeeper, by Storm's own client; every path is below Storm's root there. */
final class Znodes implements AutoCloseable {

    private static final String ROOT = "/nstorm";

    private final CuratorFramework zookeeper;
    /** Null where ZooKeeper is open. */
    private final Access access;

    @SuppressWarnings("unchecked")
    Znodes(Map<String, Object> conf) {
        zookeeper = ClientZookeeper.mkClient(
                conf,
                (List<String>) conf.get(Config.STORM_ZOOKEEPER_SERVERS),
                conf.get(Config.STORM_ZOOKEEPER_PORT),
                root(conf),
                (state, type, path) -> {},
                conf,
                DaemonType.NIMBUS);
        access = Access.of(conf);
    }

    /** False where ZooKeeper cannot know who its clients are. */
    boolean isSecured() {
        return access != null;
    }

    /**
     * Makes the folders of nstorm, and gives each of its nodes the rights that it should have.
     *
     * @return those that had others
     */
    List<String> secure() throws Exception {
        for (String path : access.made()) {
            create(path, new byte[0]);
        }
        List<String> mended = new ArrayList<>();
        secure(ROOT, mended);
        return mended;
    }

    private void secure(String path, List<String> mended) throws Exception {
        try {
            if (access.isWrong(path, rights(path))) {
                zookeeper.setACL().withACL(access.of(path)).forPath(path);
                mended.add(path);
            }
            for (String child : zookeeper.getChildren().forPath(path)) {
                secure(path + "/" + child, mended);
            }
        } catch (KeeperException.NoNodeException e) {
            // It has gone in the meantime.
        } catch (KeeperException.NoAuthException e) {
            throw new IllegalStateException("Nimbus may not mend the rights to " + path + ": delete it", e);
        }
    }

    /** A Storm cluster is its root: another one on the same ensemble has another root. */
    private static String root(Map<String, Object> conf) {
        Object root = conf.get(Config.STORM_ZOOKEEPER_ROOT);
        return root == null ? "" : root.toString().replaceAll("/+$", "");
    }

    /** The children's names; the node is made if absent. */
    List<String> children(String path, Watcher watcher) throws Exception {
        try {
            return zookeeper.getChildren().usingWatcher(watcher).forPath(path);
        } catch (KeeperException.NoNodeException e) {
            create(path, new byte[0]);
            return zookeeper.getChildren().usingWatcher(watcher).forPath(path);
        }
    }

    /** The node's content, null if it is absent. */
    byte[] read(String path, Watcher watcher) throws Exception {
        try {
            return zookeeper.getData().usingWatcher(watcher).forPath(path);
        } catch (KeeperException.NoNodeException e) {
            return null;
        }
    }

    /** The number of the last write to the node; -1 if it is absent. */
    long mzxid(String path, Watcher watcher) throws Exception {
        Stat stat = zookeeper.checkExists().usingWatcher(watcher).forPath(path);
        return stat == null ? -1 : stat.getMzxid();
    }

    /** Content and version that belong together; null if the node is absent. */
    VersionedData<byte[]> readVersioned(String path) throws Exception {
        Stat stat = new Stat();
        try {
            byte[] content = zookeeper.getData().storingStatIn(stat).forPath(path);
            return new VersionedData<>(stat.getVersion(), content);
        } catch (KeeperException.NoNodeException e) {
            return null;
        }
    }

    /** Writes the node, made if absent; returns the version of its content. */
    int write(String path, byte[] content) throws Exception {
        try {
            return zookeeper.setData().forPath(path, content).getVersion();
        } catch (KeeperException.NoNodeException e) {
            return create(path, content)
                    ? 0
                    : zookeeper.setData().forPath(path, content).getVersion();
        }
    }

    /** The version of the node's content; -1 if it is absent. */
    int version(String path) throws Exception {
        Stat stat = zookeeper.checkExists().forPath(path);
        return stat == null ? -1 : stat.getVersion();
    }

    /**
     * Writes a node at once with the proof that nothing else has changed.
     *
     * @param version   that the node has now, -1 if it is absent
     * @param unchanged other nodes, with the versions that they must have
     * @return false if a version is another one: nothing was written
     */
    boolean writeIf(String path, byte[] content, int version, Map<String, Integer> unchanged) throws Exception {
        List<CuratorOp> all = new ArrayList<>();
        for (Map.Entry<String, Integer> other : unchanged.entrySet()) {
            all.add(zookeeper
                    .transactionOp()
                    .check()
                    .withVersion(other.getValue())
                    .forPath(other.getKey()));
        }
        all.add(
                version < 0
                        ? made(path, content)
                        : zookeeper
                                .transactionOp()
                                .setData()
                                .withVersion(version)
                                .forPath(path, content));
        try {
            zookeeper.transaction().forOperations(all);
            return true;
        } catch (KeeperException.BadVersionException
                | KeeperException.NoNodeException
                | KeeperException.NodeExistsException e) {
            return false;
        }
    }

    void delete(String path) throws Exception {
        try {
            zookeeper.delete().forPath(path);
        } catch (KeeperException.NoNodeException e) {
            // Another client was faster.
        }
    }

    @Override
    public void close() {
        zookeeper.close();
    }

    List<ACL> rights(String path) throws Exception {
        return zookeeper.getACL().forPath(path);
    }

    private CuratorOp made(String path, byte[] content) throws Exception {
        var op = zookeeper.transactionOp().create();
        return access == null
                ? op.forPath(path, content)
                : op.withACL(access.of(path)).forPath(path, content);
    }

    /** False if another client was faster. */
    private boolean create(String path, byte[] content) throws Exception {
        try {
            if (access == null) {
                zookeeper.create().creatingParentsIfNeeded().forPath(path, content);
            } else {
                zookeeper.create().withACL(access.of(path)).forPath(path, content);
            }
            return true;
        } catch (KeeperException.NodeExistsException e) {
            return false;
        }
    }
}
