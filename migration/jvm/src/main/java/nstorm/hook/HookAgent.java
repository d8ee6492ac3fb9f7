package nstorm.hook;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.Instrumentation;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.JavaModule;

/** The agent: checks every symbol, then weaves the hooks of this JVM's role, or leaves it stock. */
public final class HookAgent {

    /** The version told to the controller. */
    public static final String VERSION = "0.1.0";

    /** System property: why this JVM runs stock Storm; absent while the hooks are active. */
    public static final String REFUSED = "nstorm.refused";

    private static volatile boolean active;

    private HookAgent() {
    }

    /** Called before main, by {@link AgentEntry}; may load no class of Storm and may never throw. */
    public static void premain(String args, Instrumentation inst) {
        try {
            Role role = Role.of(args, System.getProperty("sun.java.command"));
            if (role != null) {
                start(role, inst);
            }
        } catch (Throwable t) {
            refuse("the agent failed: " + t);
            t.printStackTrace();
        }
    }

    /** False where this JVM runs stock Storm: every hook is then passive. */
    public static boolean active() {
        return active;
    }

    /** Makes every hook passive for the rest of this JVM's life. */
    public static void refuse(String reason) {
        active = false;
        System.setProperty(REFUSED, reason);
        System.err.println("nstorm: this JVM runs stock Storm: " + reason);
    }

    private static void start(Role role, Instrumentation inst) throws Exception {
        ClassFileLocator locator = ClassFileLocator.ForClassLoader.ofSystemLoader();
        HookSet hooks = role.hooks();
        String storm = "Storm " + stormVersion();
        List<Symbol> missing = new SymbolCheck(locator).missing(hooks, OwnClasses.of(role.packages()));
        if (!missing.isEmpty()) {
            String more = missing.size() == 1 ? "" : " and " + (missing.size() - 1) + " more";
            refuse(storm + " has no " + missing.get(0) + more);
            return;
        }
        active = true;
        weave(hooks, locator, inst);
        refuseIfLoaded(hooks, inst);
        if (active) {
            System.err.println("nstorm: hooks " + VERSION + " active in this " + role + ", " + storm);
        }
    }

    /** What the client jar says of itself; asking Storm would load its classes. */
    private static String stormVersion() throws IOException {
        try (InputStream file = ClassLoader.getSystemResourceAsStream("storm-client-version-info.properties")) {
            Properties properties = new Properties();
            if (file != null) {
                properties.load(file);
            }
            return properties.getProperty("version", "of unknown version");
        }
    }

    /** A class that was loaded before it could be woven (by another agent, or a mistake of ours) has no hook. */
    private static void refuseIfLoaded(HookSet hooks, Instrumentation inst) {
        Set<String> advised = hooks.advised().stream().map(Advised::type).collect(Collectors.toSet());
        for (Class<?> loaded : inst.getAllLoadedClasses()) {
            if (advised.contains(loaded.getName())) {
                refuse(loaded.getName() + " was loaded before the hooks");
            }
        }
    }

    private static void weave(HookSet hooks, ClassFileLocator locator, Instrumentation inst) {
        // Advice classes are read as class files: loading them would load Storm's classes before they are woven.
        TypePool advices = TypePool.Default.of(locator);
        AgentBuilder builder = new AgentBuilder.Default()
            .disableClassFormatChanges()
            .with(new RefuseOnError());
        for (Advised advised : hooks.advised()) {
            TypeDescription advice = advices.describe(advised.advice().getName()).resolve();
            builder = builder.type(ElementMatchers.named(advised.type())).transform(
                (type, description, loader, module, domain) ->
                    type.visit(Advice.to(advice, locator).on(matcher(advised))));
        }
        builder.installOn(inst);
    }

    private static ElementMatcher<MethodDescription> matcher(Advised advised) {
        String descriptor = advised.descriptorOrNull();
        return method -> advised.method().equals(method.getInternalName())
            && (descriptor == null || descriptor.equals(method.getDescriptor()));
    }

    /** The JDK swallows what a transformer throws: without this a hook would be missing in silence. */
    private static final class RefuseOnError extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String type, ClassLoader loader, JavaModule module, boolean loaded, Throwable t) {
            refuse("weaving " + type + " failed: " + t);
        }
    }
}
