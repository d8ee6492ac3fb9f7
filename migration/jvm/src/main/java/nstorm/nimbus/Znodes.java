package nstorm.nimbus;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.storm.Config;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.cluster.VersionedData;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.storm.shade.org.apache.zookeeper.KeeperException;
import org.apache.storm.shade.org.apache.zookeeper.Watcher;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.data.Id;
import org.apache.storm.shade.org.apache.zookeeper.data.Stat;
import org.apache.storm.zookeeper.ClientZookeeper;

/** The few operations on ZooKeeper, by Storm's own client; every path is below Storm's root there. */
final class Znodes implements AutoCloseable {

    private static final String ROOT = "/nstorm";
    /** Agents and operators create nodes here, and may give the rights to them to themselves alone. */
    private static final Set<String> OF_OTHERS = Set.of("/nstorm/acks", "/nstorm/load", "/nstorm/commands");

    /**
     * What has become of the nodes that had not the rights that they should have.
     *
     * @param mended  have these now
     * @param deleted were closed to Nimbus
     * @param closed  still are: everybody passes over them
     */
    record Secured(List<String> mended, List<String> deleted, List<String> closed) {}

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

    /** Makes the folders of nstorm, and gives each of its nodes the rights that it should have. */
    Secured secure() throws Exception {
        Secured found = new Secured(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        for (String path : access.made()) {
            try {
                create(path, new byte[0]);
            } catch (KeeperException.NoAuthException e) {
                // The folder above is closed to Nimbus; the walk finds it.
            }
        }
        secure(ROOT, access.hasRoles() ? Set.of() : own(found.mended), found);
        return found;
    }

    /** Who this session is for ZooKeeper: to these it gives the rights of a creator. Nobody if that is not to be had. */
    private Set<Id> own(List<String> mended) throws Exception {
        try {
            Set<ACL> before = Set.copyOf(rights(ROOT));
            zookeeper.setACL().withACL(access.of(ROOT)).forPath(ROOT);
            Set<ACL> after = Set.copyOf(rights(ROOT));
            if (!after.equals(before)) {
                mended.add(ROOT);
            }
            return after.stream().map(ACL::getId).collect(Collectors.toSet());
        } catch (KeeperException.NoAuthException e) {
            return Set.of();
        }
    }

    private void secure(String path, Set<Id> own, Secured found) throws Exception {
        try {
            if (access.isWrong(path, rights(path), own)) {
                zookeeper.setACL().withACL(access.of(path)).forPath(path);
                found.mended.add(path);
            }
            for (String child : zookeeper.getChildren().forPath(path)) {
                secure(path + "/" + child, own, found);
            }
        } catch (KeeperException.NoNodeException e) {
            // It has gone in the meantime.
        } catch (KeeperException.NoAuthException e) {
            (deletes(path) ? found.deleted : found.closed).add(path);
        }
    }

    /** Deletes a node that others than Nimbus create, and that its creator has closed; false if it stays. */
    private boolean deletes(String path) throws Exception {
        if (!OF_OTHERS.contains(path.substring(0, path.lastIndexOf('/')))) {
            return false;
        }
        try {
            delete(path);
            return true;
        } catch (KeeperException.NoAuthException | KeeperException.NotEmptyException e) {
            return false;
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
