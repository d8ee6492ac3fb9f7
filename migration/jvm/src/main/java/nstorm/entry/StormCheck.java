package nstorm.entry;

import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.net.URL;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import net.bytebuddy.dynamic.ClassFileLocator;
import nstorm.hook.Symbol;

/**
 * What one kind of JVM is to do with the Storm on a class path; no class of Storm is loaded to find that out.
 *
 * @param version null if it has none
 * @param refused why the JVM runs stock Storm, or null
 * @param unknown why it counts and reports but moves nothing, or null
 * @param known   the versions whose code it has
 */
record StormCheck(String version, String refused, String unknown, Set<String> known) {
    private static final String PROPERTIES = "storm-client-version-info.properties";
    /** The server's jar has no such file, but this one. */
    private static final String SERVER_PROPERTIES = "META-INF/maven/org.apache.storm/storm-server/pom.properties";

    private static final String CLIENT = "org/apache/storm/utils/Utils.class";
    private static final String RELEASE = "\\d+\\.\\d+\\.\\d+(-SNAPSHOT)?";
    private static final int NAMED = 5;

    static StormCheck of(Role role, ClassLoader classPath) throws IOException, URISyntaxException {
        Set<String> versions = versions(classPath);
        String version = versions.size() == 1 ? versions.iterator().next() : null;
        String storm = "Storm " + (version == null ? "of unknown version" : version);
        String wrong = classPath.getResource(CLIENT) == null
                ? "the class path has no org.apache.storm; a relocated Storm has no hooks"
                : role == Role.CHECK ? null : wrong(versions);
        if (wrong != null) {
            return new StormCheck(version, wrong, null, Set.of());
        }
        ClassFileLocator locator = ClassFileLocator.ForClassLoader.of(classPath);
        List<Symbol> missing = new SymbolCheck(locator).missing(role.hooks(), OwnClasses.of(role.packages()));
        if (!missing.isEmpty()) {
            String more = missing.size() == 1 ? "" : " and " + (missing.size() - 1) + " more";
            return new StormCheck(version, storm + " has no " + missing.get(0) + more, null, Set.of());
        }
        return role == Role.CHECK
                ? new StormCheck(version, null, null, versions)
                : judge(version, Fingerprints.shipped().of(role.hooks(), locator));
    }

    /** Those that the jars of the client and the server name; none if the client names none. */
    private static Set<String> versions(ClassLoader classPath) throws IOException {
        Set<String> versions = versions(classPath, PROPERTIES);
        if (!versions.isEmpty()) {
            versions.addAll(versions(classPath, SERVER_PROPERTIES));
        }
        return versions;
    }

    private static Set<String> versions(ClassLoader classPath, String file) throws IOException {
        Set<String> versions = new TreeSet<>();
        for (URL each : Collections.list(classPath.getResources(file))) {
            Properties properties = new Properties();
            try (InputStream in = each.openStream()) {
                properties.load(in);
            }
            versions.add(properties.getProperty("version", ""));
        }
        return versions;
    }

    /** What is wrong with the versions that the jars name, or null. */
    static String wrong(Set<String> versions) {
        if (versions.isEmpty() || versions.contains("")) {
            return "its Storm has no version: " + PROPERTIES + " names none";
        }
        if (versions.size() > 1) {
            return "the class path has Storm " + String.join(" and ", versions) + ", and needs to have one version";
        }
        String version = versions.iterator().next();
        return version.matches(RELEASE) ? null : "Storm " + version + " is a vendor's build, and no release of Apache";
    }

    private static StormCheck judge(String version, Fingerprints.Verdict code) {
        if (code.unknown().isEmpty() && code.versions().isEmpty()) {
            return new StormCheck(
                    version, "the class path has classes of several versions of Storm", null, code.versions());
        }
        int more = code.unknown().size() - NAMED;
        String unknown = code.unknown().isEmpty()
                ? null
                : "Storm " + version + " has code that these hooks do not know: "
                        + String.join(", ", code.unknown().stream().limit(NAMED).toList())
                        + (more > 0 ? " and " + more + " more" : "");
        return new StormCheck(version, null, unknown, code.versions());
    }

    @Override
    public String toString() {
        if (refused != null) {
            return "runs stock Storm: " + refused;
        }
        if (unknown != null) {
            return "moves nothing: " + unknown;
        }
        return known.contains(version)
                ? "verified for Storm " + version
                : "Storm " + version + " has the code of " + String.join(", ", known);
    }
}
