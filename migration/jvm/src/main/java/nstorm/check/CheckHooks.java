package nstorm.check;

import java.util.List;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;

/** The hook of {@code nstorm check-topology}: all ways to submit a topology lead through one method. */
public final class CheckHooks implements HookSet {
    static final String SUBMITTER = "org.apache.storm.StormSubmitter";

    @Override
    public List<Advised> advised() {
        return List.of(new Advised(SUBMITTER, "submitTopologyAs", null, CheckAdvice.Submit.class));
    }

    @Override
    public List<Symbol> reflected() {
        return List.of();
    }
}
