package nstorm.entry;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDefinition;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.pool.TypePool;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;

/** Looks symbols up in class files, their hierarchy included, without loading a class. */
final class SymbolCheck {

    private final TypePool types;

    SymbolCheck(ClassFileLocator locator) {
        types = TypePool.Default.of(locator);
    }

    /** The symbols that a role needs and that are not there: advised, reflected, linked to. */
    List<Symbol> missing(HookSet hooks, Collection<byte[]> ownClassFiles) {
        Set<Symbol> inherited = References.of(ownClassFiles);
        List<Symbol> missing = new ArrayList<>();
        for (Symbol symbol : declared(hooks)) {
            if (!isDeclared(symbol)) {
                missing.add(symbol);
            }
        }
        for (Symbol symbol : inherited) {
            if (!isReachable(symbol)) {
                missing.add(symbol);
            }
        }
        return missing;
    }

    /** Advices and reflection on declared members find nothing in a supertype. */
    private static Set<Symbol> declared(HookSet hooks) {
        Set<Symbol> symbols = new LinkedHashSet<>(hooks.reflected());
        hooks.advised().stream()
                .filter(advised -> !advised.observes())
                .map(Advised::symbol)
                .forEach(symbols::add);
        return symbols;
    }

    /** The methods that a JVM can do without, and that this Storm does not have. */
    List<Advised> leftOut(HookSet hooks) {
        return hooks.advised().stream()
                .filter(advised -> advised.observes() && !isDeclared(advised.symbol()))
                .toList();
    }

    private boolean isDeclared(Symbol symbol) {
        TypePool.Resolution owner = types.describe(symbol.owner());
        return owner.isResolved() && (symbol.member() == null || declares(owner.resolve(), symbol));
    }

    private boolean isReachable(Symbol symbol) {
        TypePool.Resolution owner = types.describe(symbol.owner());
        return owner.isResolved() && (symbol.member() == null || reaches(owner.resolve(), symbol));
    }

    private boolean reaches(TypeDescription type, Symbol symbol) {
        if (declares(type, symbol)) {
            return true;
        }
        List<TypeDefinition> parents = new ArrayList<>(type.getInterfaces());
        if (type.getSuperClass() != null) {
            parents.add(type.getSuperClass());
        }
        for (TypeDefinition parent : parents) {
            TypePool.Resolution resolved = types.describe(parent.asErasure().getName());
            if (resolved.isResolved() && reaches(resolved.resolve(), symbol)) {
                return true;
            }
        }
        return type.isInterface() && reaches(TypeDescription.ForLoadedType.of(Object.class), symbol);
    }

    private static boolean declares(TypeDescription type, Symbol symbol) {
        boolean anyDescriptor = symbol.descriptor() == null;
        for (MethodDescription method : type.getDeclaredMethods()) {
            if (method.getInternalName().equals(symbol.member())
                    && (anyDescriptor || method.getDescriptor().equals(symbol.descriptor()))) {
                return true;
            }
        }
        return type.getDeclaredFields().stream()
                .anyMatch(field -> field.getName().equals(symbol.member())
                        && (anyDescriptor || field.getDescriptor().equals(symbol.descriptor())));
    }
}
