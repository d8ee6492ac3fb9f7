package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The packaged jar keeps the licences of its parts. */
class LicencesIT {
    private static final Pattern UNPACKED = Pattern.compile(
            "<artifactItem>.*<artifactId>(.+)</artifactId><version>(.+)</version>(<classifier>.*)?</artifactItem>");
    private static final Pattern SHADED = Pattern.compile("<include>[\\w.-]+:([\\w.-]+)</include>");
    private static final Pattern LICENCE_FILE = Pattern.compile("META-INF/licenses/[\\w.-]*\\w");

    /** The versions of the parts that pom.xml puts into the jar. */
    private static Map<String, String> parts() throws Exception {
        String pom = Files.readString(Path.of("pom.xml"));
        Map<String, String> parts = new TreeMap<>();
        // The other executions bring jars for tests.
        int unpacking = pom.indexOf("<id>lmdb</id>");
        UNPACKED.matcher(pom.substring(unpacking, pom.indexOf("</execution>", unpacking)))
                .results()
                .forEach(item -> parts.put(item.group(1), item.group(2)));
        SHADED.matcher(pom).results().map(item -> item.group(1)).forEach(part -> {
            Matcher version = Pattern.compile("<artifactId>" + part + "</artifactId>\\s*<version>(.+)</version>")
                    .matcher(pom);
            assertTrue(version.find(), part);
            parts.put(part, version.group(1));
        });
        assertTrue(parts.size() > 10, parts.toString());
        return parts;
    }

    private static String text(JarFile jar, String entry) throws Exception {
        assertTrue(jar.getEntry(entry) != null, "no " + entry);
        try (InputStream in = jar.getInputStream(jar.getEntry(entry))) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void theNoticeNamesEveryPartAndItsLicenceIsThere() throws Exception {
        try (JarFile jar = new JarFile(System.getProperty("hooks.jar"))) {
            String notice = text(jar, "META-INF/NOTICE");
            parts().forEach((part, version) -> assertTrue(
                    Pattern.compile("^" + Pattern.quote(part + " " + version) + " +\\S", Pattern.MULTILINE)
                            .matcher(notice)
                            .find(),
                    "the notice does not name " + part + " " + version));
            assertTrue(notice.contains("Rafael Winterhalter"), "Byte Buddy's own notice");
            assertTrue(text(jar, "META-INF/LICENSE").contains("Version 2.0, January 2004"));
            Map<String, String> said = Map.of(
                    "META-INF/licenses/ASM",
                    "INRIA",
                    "META-INF/licenses/MIT",
                    "Wayne Meissner",
                    "META-INF/licenses/OpenLDAP-2.8",
                    "Version 2.8, 17 August 2003");
            for (String file : LICENCE_FILE
                    .matcher(notice)
                    .results()
                    .map(found -> found.group())
                    .toList()) {
                assertTrue(text(jar, file).contains(said.get(file)), file);
            }
        }
    }

    /** ASM's jars have no pom.xml, Byte Buddy's licence of ASM stands for them. */
    @Test
    void whatAPartSaysOfItselfIsKept() throws Exception {
        try (JarFile jar = new JarFile(System.getProperty("hooks.jar"))) {
            for (String part : parts().keySet()) {
                long kept = jar.stream()
                        .filter(entry -> entry.getName().endsWith("/" + part + "/pom.xml"))
                        .count();
                assertEquals(part.startsWith("asm") ? 0 : 1, kept, part);
            }
        }
    }
}
