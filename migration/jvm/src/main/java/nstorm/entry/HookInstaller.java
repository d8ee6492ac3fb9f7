package nstorm.entry;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.IllegalClassFormatException;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.asm.ModifierAdjustment;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.modifier.FieldManifestation;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.implementation.bytecode.member.MethodInvocation;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.JavaModule;
import nstorm.hook.Advised;
import nstorm.hook.Faults;
import nstorm.hook.HookSet;
import nstorm.hook.HookStatus;
import nstorm.hook.Symbol;
import nstorm.proof.Opened;

/** Checks every symbol, then weaves the hooks of this JVM's role, or leaves it stock. */
public final class HookInstaller {

    private HookInstaller() {}

    /** Called before main, by {@link HooksEntry}; may load no class of Storm and may never throw. */
    public static void premain(String args, Instrumentation inst) {
        try {
            Role role = Role.of(args, System.getProperty("sun.java.command"));
            if (role != null) {
                start(role, inst);
            }
        } catch (Throwable t) {
            HookStatus.refuse("the hooks failed: " + t);
            t.printStackTrace();
        }
    }

    private static void start(Role role, Instrumentation inst) throws Exception {
        HookSet hooks = role.hooks();
        ClassLoader classPath = ClassLoader.getSystemClassLoader();
        StormCheck storm = StormCheck.of(role, classPath);
        if (storm.refused() != null) {
            HookStatus.refuse(storm.refused());
            return;
        }
        HookStatus.met(storm.version(), storm.unknown());
        Opened.by(inst);
        HookStatus.activate();
        // Byte Buddy finds no method for an advice that is left out, and weaves the others of its class.
        ClassFileLocator locator = ClassFileLocator.ForClassLoader.of(classPath);
        for (Advised advised : new SymbolCheck(locator).leftOut(hooks)) {
            System.err.println("nstorm: Storm " + storm.version() + " has no " + advised.symbol()
                    + ", what it would count is not known");
        }
        weave(hooks, locator, inst);
        refuseIfLoaded(hooks, inst);
        if (HookStatus.active()) {
            HookStatus.announce("nstorm: hooks " + HookStatus.VERSION + " active in this " + role + ", " + storm);
        }
    }

    /** A class that was loaded before it could be woven (by another agent, or a mistake of ours) has no hook. */
    private static void refuseIfLoaded(HookSet hooks, Instrumentation inst) {
        Set<String> woven = woven(hooks);
        for (Class<?> loaded : inst.getAllLoadedClasses()) {
            if (woven.contains(loaded.getName())) {
                HookStatus.refuse(loaded.getName() + " was loaded before the hooks");
            }
        }
    }

    private static void weave(HookSet hooks, ClassFileLocator locator, Instrumentation inst) {
        // Advice classes are read as class files: loading them would load Storm's classes before they are woven.
        TypePool advices = TypePool.Default.of(locator);
        AgentBuilder builder =
                new AgentBuilder.Default().disableClassFormatChanges().with(new RefuseOnError());
        for (Advised advised : hooks.advised()) {
            TypeDescription advice =
                    advices.describe(advised.advice().getName()).resolve();
            builder = builder.type(ElementMatchers.named(advised.type()))
                    .transform((type, description, loader, module, domain) ->
                            type.visit(counted(advice, locator).on(matcher(advised))));
        }
        for (Symbol field : hooks.written()) {
            builder = builder.type(ElementMatchers.named(field.owner()))
                    .transform((type, description, loader, module, domain) -> type.visit(new ModifierAdjustment()
                            .withFieldModifiers(ElementMatchers.named(field.member()), FieldManifestation.PLAIN)));
        }
        inst.addTransformer(only(hooks, builder.makeRaw()));
    }

    /** An advice whose suppressed faults are reported. Its methods have no other way to show that they fail. */
    static Advice counted(TypeDescription advice, ClassFileLocator locator) {
        MethodDescription suppressed = TypePool.Default.of(locator)
                .describe(Faults.class.getName())
                .resolve()
                .getDeclaredMethods()
                .filter(ElementMatchers.named("suppressed"))
                .getOnly();
        return Advice.to(advice, locator)
                .withExceptionHandler(
                        new Advice.ExceptionHandler.Simple(MethodInvocation.invoke(suppressed.asDefined())));
    }

    /**
     * Shows a transformer the classes alone that are woven. To open the first Kafka spout of a JVM loads two
     * thousand classes while the spout stands still. Byte Buddy would take a seventh of that time to find that these
     * classes have no advice.
     */
    static ClassFileTransformer only(HookSet hooks, ClassFileTransformer weaving) {
        Set<String> woven =
                woven(hooks).stream().map(type -> type.replace('.', '/')).collect(Collectors.toSet());
        return new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    Module module,
                    ClassLoader loader,
                    String nameOrNull,
                    Class<?> redefined,
                    ProtectionDomain domain,
                    byte[] classFile)
                    throws IllegalClassFormatException {
                return nameOrNull == null || !woven.contains(nameOrNull)
                        ? null
                        : weaving.transform(module, loader, nameOrNull, redefined, domain, classFile);
            }
        };
    }

    /** The classes that have an advice, or a field that the hooks write. */
    private static Set<String> woven(HookSet hooks) {
        return Stream.concat(
                        hooks.advised().stream().map(Advised::type),
                        hooks.written().stream().map(Symbol::owner))
                .collect(Collectors.toSet());
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
            HookStatus.refuse("weaving " + type + " failed: " + t);
        }
    }
}
