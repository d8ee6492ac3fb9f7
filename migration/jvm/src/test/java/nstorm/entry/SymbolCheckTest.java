package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.MemberRemoval;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.implementation.FixedValue;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import nstorm.hook.Advised;
import nstorm.hook.Symbol;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The symbols of all hooks against the real jars of several versions of Storm. */
class SymbolCheckTest {

    private static final String SPOUTS = "org.apache.storm.executor.spout.SpoutExecutor";
    private static final String EQUIVALENCE = "org.apache.storm.utils.EquivalenceUtils";

    private static Stream<Arguments> rolesAndVersions() throws IOException {
        return StormJars.versions().keySet().stream()
                .flatMap(version -> Stream.of(Role.values()).map(role -> Arguments.of(role, version)));
    }

    private static List<Symbol> missing(Role role, ClassFileLocator locator) throws Exception {
        return new SymbolCheck(locator).missing(role.hooks(), OwnClasses.of(role.packages()));
    }

    @ParameterizedTest
    @MethodSource("rolesAndVersions")
    void everySymbolIsThere(Role role, String version) throws Exception {
        try (ClassFileLocator locator = StormJars.of(version)) {
            assertEquals(List.of(), missing(role, locator));
            assertEquals(List.of(), new SymbolCheck(locator).leftOut(role.hooks()));
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void everySymbolIsThereInTheNewest(Role role) throws Exception {
        assertEquals(List.of(), missing(role, ClassFileLocator.ForClassLoader.ofSystemLoader()));
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void withoutStormEverythingIsMissing(Role role) throws Exception {
        List<Symbol> missing = missing(role, ClassFileLocator.ForClassLoader.ofPlatformLoader());
        List<Advised> advised = role.hooks().advised();
        for (Advised each : advised) {
            assertEquals(!each.observes(), missing.contains(each.symbol()), each.toString());
        }
    }

    @Test
    void aMethodOfAnotherShapeIsMissing() throws Exception {
        ClassFileLocator system = ClassFileLocator.ForClassLoader.ofSystemLoader();
        TypeDescription type = TypePool.Default.of(system).describe(EQUIVALENCE).resolve();
        byte[] other = new ByteBuddy()
                .subclass(Object.class)
                .name(type.getName())
                .defineMethod("areLocalAssignmentsEquivalent", boolean.class, 1)
                .withParameters(Object.class, Object.class)
                .intercept(FixedValue.value(true))
                .make()
                .getBytes();
        ClassFileLocator changed =
                new ClassFileLocator.Compound(ClassFileLocator.Simple.of(EQUIVALENCE, other), system);
        List<Symbol> missing = missing(Role.SUPERVISOR, changed);
        assertEquals(1, missing.size(), missing.toString());
        assertEquals(EQUIVALENCE, missing.get(0).owner());
    }

    /** Without what only counts a worker has all other hooks. */
    @Test
    void whatOnlyCountsIsLeftOut() throws Exception {
        ClassFileLocator system = ClassFileLocator.ForClassLoader.ofSystemLoader();
        byte[] other = new ByteBuddy()
                .redefine(TypePool.Default.of(system).describe(SPOUTS).resolve(), system)
                .visit(new MemberRemoval().stripMethods(ElementMatchers.named("ackSpoutMsg")))
                .make()
                .getBytes();
        ClassFileLocator changed = new ClassFileLocator.Compound(ClassFileLocator.Simple.of(SPOUTS, other), system);
        assertEquals(List.of(), missing(Role.WORKER, changed));
        SymbolCheck check = new SymbolCheck(changed);
        assertEquals(
                List.of("ackSpoutMsg"),
                check.leftOut(Role.WORKER.hooks()).stream().map(Advised::method).toList());
        assertEquals(List.of(), new SymbolCheck(system).leftOut(Role.WORKER.hooks()));
    }

    /** Links to Storm in each of the ways that a class file has. */
    @SuppressWarnings("unused")
    private abstract static class Linking implements org.apache.storm.scheduler.IScheduler {
        private org.apache.storm.scheduler.Cluster field;

        Object calls(org.apache.storm.generated.Assignment assignment) throws Exception {
            java.util.function.Function<org.apache.storm.generated.NodeInfo, String> handle =
                    org.apache.storm.generated.NodeInfo::get_node;
            return field == null
                    ? org.apache.storm.Constants.SYSTEM_COMPONENT_ID.length() + handle.hashCode()
                    : assignment.get_executor_node_port();
        }
    }

    @Test
    void everyKindOfLinkIsFound() throws Exception {
        byte[] bytes = ClassFileLocator.ForClassLoader.ofSystemLoader()
                .locate(Linking.class.getName())
                .resolve();
        Set<Symbol> found = References.of(List.of(bytes));
        assertTrue(found.contains(new Symbol("org.apache.storm.scheduler.IScheduler", null, null)), "supertype");
        assertTrue(found.contains(new Symbol("org.apache.storm.scheduler.Cluster", null, null)), "type of a field");
        assertTrue(
                found.contains(new Symbol(
                        "org.apache.storm.generated.Assignment", "get_executor_node_port", "()Ljava/util/Map;")),
                "call");
        assertTrue(
                found.contains(new Symbol("org.apache.storm.generated.NodeInfo", "get_node", "()Ljava/lang/String;")),
                "method handle");
    }
}
