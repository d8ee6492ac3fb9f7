package nstorm.nimbus;

import java.util.List;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;

/** Placeholder: the hooks of a Nimbus JVM. */
public final class NimbusHooks implements HookSet {

    @Override
    public List<Advised> advised() {
        return List.of();
    }

    @Override
    public List<Symbol> reflected() {
        return List.of();
    }
}
