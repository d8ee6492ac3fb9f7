package nstorm.load;

import nstorm.memory.Declared;
import nstorm.memory.Reviewed;
import nstorm.wire.Way;

/**
 * How a component moves by what it is and by what is declared, before anyone looks at what it keeps.
 *
 * @param way    live also for those that stay
 * @param reason why it stays whatever it keeps, or moves by a way of its own; null if what it keeps decides
 */
public record OwnWay(Way way, String reason) {
    /**
     * Never throws.
     *
     * @param spout whether it is a spout
     * @param taskObject the user's spout or bolt as Storm has built it
     */
    public static OwnWay of(String component, boolean spout, Object taskObject, Declared declared) {
        String declaredReason = declared.reason(component);
        String stays = declaredReason == null && spout ? reviewed(component, taskObject, declared) : declaredReason;
        return stays != null
                ? new OwnWay(Way.LIVE, stays)
                : new OwnWay(Pinning.way(component, spout, taskObject), Pinning.reason(component, spout, taskObject));
    }

    /** Why a spout stays that was reviewed, or null. */
    private static String reviewed(String component, Object spout, Declared declared) {
        Reviewed.Verdict verdict = declared.isSilent(component) ? Reviewed.of(spout) : null;
        return verdict != null && verdict.how() == Reviewed.How.STAYS ? verdict.reason(component) : null;
    }
}
