package nstorm.nimbus;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.shade.org.apache.zookeeper.ZooDefs;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.data.Id;

/** Who may use which node of nstorm: the table of access in PROTOCOL.md, for the principals of the configuration. */
final class Access {

    private static final String LETTERS = "rwcda";
    /** The columns of the table after the first two, which are the node and Nimbus. */
    private static final List<String> ROLES = List.of("controller", "agent", "operator", "reader");
    /** Empty until somebody writes them: only Nimbus may create nodes there. */
    private static final List<String> MADE_EMPTY = List.of("/nstorm/controls", "/nstorm/off", "/nstorm/roll");

    private final Map<String, List<String>> table;
    private final List<Collection<String>> principals;

    private Access(Map<String, List<String>> table, List<Collection<String>> principals) {
        this.table = table;
        this.principals = principals;
    }

    /** Reads the configuration of Nimbus; null where ZooKeeper cannot know who Nimbus is. */
    static Access of(Map<String, Object> conf) {
        boolean known = DaemonType.NIMBUS.getDefaultZkAcls(conf) != null
                || Boolean.TRUE.equals(conf.get("storm.zookeeper.ssl.enable"))
                        && conf.get("storm.zookeeper.ssl.keystore.path") != null;
        if (!known) {
            return null;
        }
        List<Collection<String>> named = new ArrayList<>();
        Object nimbus = conf.get("storm.zookeeper.superACL");
        for (String role : ROLES) {
            Object names = conf.get("nstorm.acl." + role);
            named.add(
                    names instanceof Collection<?> many
                            ? many.stream().map(Object::toString).toList()
                            : List.of());
        }
        if (named.stream().allMatch(Collection::isEmpty)) {
            return new Access(parse(page()), List.of());
        }
        if (!(nimbus instanceof String name)) {
            throw new IllegalStateException("storm.zookeeper.superACL must name Nimbus for nstorm.acl.*");
        }
        named.add(0, List.of(name));
        named.replaceAll(names -> names.isEmpty() ? named.get(0) : names);
        return new Access(parse(page()), named);
    }

    /** True where credentials are required and there are none. */
    static boolean isMissing(Map<String, Object> conf) {
        return "required".equals(conf.get("nstorm.secure")) && of(conf) == null;
    }

    private static String page() {
        try (InputStream page = Access.class.getResourceAsStream("PROTOCOL.md")) {
            return new String(Objects.requireNonNull(page).readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The rights of each role, by the pattern of a path, in the order of the page. */
    static Map<String, List<String>> parse(String page) {
        Map<String, List<String>> found = new LinkedHashMap<>();
        boolean here = false;
        for (String line : page.split("\n", -1)) {
            here = line.startsWith("## ") ? line.equals("## Access") : here;
            if (here && line.startsWith("| `")) {
                List<String> cells =
                        List.of(line.substring(2, line.length() - 2).split(" \\| ", -1));
                found.put(
                        cells.get(0).replace("`", ""),
                        cells.stream()
                                .skip(1)
                                .map(cell -> cell.replace("–", ""))
                                .toList());
            }
        }
        return found;
    }

    /** The nodes that Nimbus makes, a parent before its children. */
    List<String> made() {
        Set<String> folders = new HashSet<>(MADE_EMPTY);
        table.keySet().forEach(node -> folders.add(node.substring(0, Math.max(node.lastIndexOf('/'), 1))));
        return table.keySet().stream().filter(folders::contains).toList();
    }

    /** The rights with which a node is made. */
    List<ACL> of(String path) {
        if (principals.isEmpty()) {
            return ZooDefs.Ids.CREATOR_ALL_ACL;
        }
        List<String> may = table.get(path);
        String folder = path.substring(0, path.lastIndexOf('/')) + "/<";
        for (Map.Entry<String, List<String>> row : table.entrySet()) {
            may = may == null && row.getKey().startsWith(folder) ? row.getValue() : may;
        }
        Map<String, Integer> bits = new LinkedHashMap<>();
        for (int role = 0; role < principals.size(); role++) {
            String letters = may != null ? may.get(role) : role == 0 ? LETTERS : "";
            int granted =
                    letters.chars().map(letter -> 1 << LETTERS.indexOf(letter)).sum();
            principals.get(role).forEach(name -> bits.merge(name, granted, (a, b) -> a | b));
        }
        List<ACL> all = new ArrayList<>();
        bits.forEach((name, granted) -> {
            int colon = name.indexOf(':');
            if (granted != 0) {
                all.add(new ACL(granted, new Id(name.substring(0, colon), name.substring(colon + 1))));
            }
        });
        return all;
    }

    /** False where one identity has all roles. */
    boolean hasRoles() {
        return !principals.isEmpty();
    }

    /**
     * True if a node has to get the rights of the table.
     *
     * @param own who Nimbus is for ZooKeeper, which is asked for where there are no roles
     */
    boolean isWrong(String path, List<ACL> now, Set<Id> own) {
        return hasRoles()
                ? !Set.copyOf(now).equals(Set.copyOf(of(path)))
                : now.stream().anyMatch(one -> !own.contains(one.getId()));
    }
}
