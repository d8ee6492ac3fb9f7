package nstorm.worker.plan;

import static nstorm.worker.plan.Moves.BYSTANDER;
import static nstorm.worker.plan.Moves.EXECUTOR;
import static nstorm.worker.plan.Moves.FROM;
import static nstorm.worker.plan.Moves.NO_ENTRY;
import static nstorm.worker.plan.Moves.TO;
import static nstorm.worker.plan.Moves.assigned;
import static nstorm.worker.plan.Moves.plan;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Set;
import nstorm.wire.Phase;
import org.junit.jupiter.api.Test;

/** A bystander's flag of back-pressure is the old owner's: each change of owner must show once, and nothing else. */
class OwnersTest {
    private static final Set<Object> NONE = Set.of();
    private static final Set<?> IT = Set.of(EXECUTOR);

    private final Owners owners = new Owners();

    @Test
    void eachPhaseThatChangesTheOwnerShowsOnce() {
        assertEquals(NONE, owners.changed(null, assigned(FROM)));
        assertEquals(NONE, owners.changed(plan(Phase.PREPARE), assigned(FROM)));
        assertEquals(IT, owners.changed(plan(Phase.SWITCH), assigned(FROM)));
        assertEquals(NONE, owners.changed(plan(Phase.DRAIN), assigned(FROM)));
        assertEquals(NONE, owners.changed(plan(Phase.STOP), assigned(FROM)));
        assertEquals(NONE, owners.changed(plan(Phase.SETTLE), assigned(TO)));
        assertEquals(NONE, owners.changed(NO_ENTRY, assigned(TO)));
    }

    @Test
    void anUndoShows() {
        assertEquals(IT, owners.changed(plan(Phase.SWITCH), assigned(FROM)), "the first plan that is read");
        assertEquals(IT, owners.changed(plan(Phase.UNDO), assigned(FROM)));
        assertEquals(NONE, owners.changed(NO_ENTRY, assigned(FROM)));
    }

    @Test
    void anEntryThatLeftBeforeItsUndoWasReadShows() {
        owners.changed(plan(Phase.DRAIN), assigned(FROM));
        assertEquals(IT, owners.changed(NO_ENTRY, assigned(FROM)));
    }

    @Test
    void aPlanThatIsGoneShows() {
        owners.changed(plan(Phase.SWITCH), assigned(FROM));
        assertEquals(IT, owners.changed(null, assigned(FROM)), "the node follows another cluster");
    }

    @Test
    void aMoveOfWhichNoPhaseWasReadShowsWithStormsAssignment() {
        owners.changed(plan(Phase.PREPARE), assigned(FROM));
        assertEquals(NONE, owners.changed(NO_ENTRY, assigned(FROM)), "this worker has not read the new assignment yet");
        assertEquals(IT, owners.changed(NO_ENTRY, assigned(TO)));
        assertEquals(IT, owners.changed(null, assigned(BYSTANDER)), "Storm's own rebalance");
    }

    @Test
    void oneThatIsUnassignedForAWhileShowsWhenItHasAnotherOwner() {
        owners.changed(null, assigned(FROM));
        assertEquals(NONE, owners.changed(null, Map.of()));
        assertEquals(NONE, owners.changed(plan(Phase.SWITCH), Map.of()));
        assertEquals(IT, owners.changed(null, assigned(TO)));
    }
}
