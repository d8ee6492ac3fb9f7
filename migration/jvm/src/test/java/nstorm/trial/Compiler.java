package nstorm.trial;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import nstorm.trial.Maker.Made;

/** Compiles made bolts, all in one call and in memory. */
final class Compiler {
    private Compiler() {}

    /** The classes' code, by name. */
    static Map<String, byte[]> compile(List<Made> bolts) {
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> found = new DiagnosticCollector<>();
        Map<String, ByteArrayOutputStream> written = new TreeMap<>();
        try (Output output = new Output(javac.getStandardFileManager(found, null, null), written)) {
            List<JavaFileObject> sources =
                    bolts.stream().<JavaFileObject>map(Source::new).toList();
            if (!javac.getTask(
                            null,
                            output,
                            found,
                            List.of("-proc:none", "-nowarn", "-classpath", System.getProperty("java.class.path")),
                            null,
                            sources)
                    .call()) {
                throw new IllegalStateException(found.getDiagnostics().stream()
                        .map(Object::toString)
                        .limit(5)
                        .collect(Collectors.joining("\n")));
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        Map<String, byte[]> code = new TreeMap<>();
        written.forEach((name, bytes) -> code.put(name, bytes.toByteArray()));
        return code;
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(Made bolt) {
            super(URI.create("string:///" + bolt.type().replace('.', '/') + ".java"), Kind.SOURCE);
            text = bolt.text();
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    private static final class Output extends ForwardingJavaFileManager<JavaFileManager> {
        private final Map<String, ByteArrayOutputStream> written;

        Output(JavaFileManager manager, Map<String, ByteArrayOutputStream> written) {
            super(manager);
            this.written = written;
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/') + ".class"), kind) {
                @Override
                public OutputStream openOutputStream() {
                    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                    written.put(name, bytes);
                    return bytes;
                }
            };
        }
    }
}
