package nstorm.check;

import nstorm.load.OwnWay;
import nstorm.memory.MoveWay;
import nstorm.memory.Reviewed;
import nstorm.wire.Way;
import nstorm.wire.json.JsonText;

/**
 * How one component would move.
 *
 * @param kind spout or bolt
 * @param type its class
 * @param way  a way, or stays
 * @param why  the reason, with what to declare after {@link #DECLARE}
 * @param guess whether that is not known before it was prepared, or works
 */
record JudgedComponent(
        String component, String kind, String type, int executors, String way, String why, boolean guess) {
    private static final String STAYS = "stays";
    private static final String DECLARE = "; declare ";

    static JudgedComponent unread(String component, String kind, int executors, String why) {
        return new JudgedComponent(component, kind, "", executors, STAYS, why, false);
    }

    JudgedComponent staying(OwnWay own) {
        return new JudgedComponent(component, kind, type, executors, STAYS, own.reason(), false);
    }

    /** A spout that is handed over; what it remembers then is not looked at if it was reviewed. */
    JudgedComponent handedOver(Reviewed.Verdict verdictOrNull) {
        String why = verdictOrNull == null
                ? "unless it still remembers something once nothing is pending"
                : verdictOrNull.why();
        return new JudgedComponent(component, kind, type, executors, Way.SPOUT.toString(), why, verdictOrNull == null);
    }

    JudgedComponent by(MoveWay found, boolean unprepared) {
        Way moves = found.renews()
                ? Way.RENEW
                : found.state() != null
                        ? Way.CARRY
                        : found.tuples() != null ? Way.DRAIN : found.pinned() == null ? Way.LIVE : null;
        String how = moves == null ? STAYS : moves.toString();
        String reason = found.pinned() == null ? "keeps nothing" : found.pinned();
        return new JudgedComponent(component, kind, type, executors, how, reason, unprepared);
    }

    void write(JsonText text) {
        int at = why.indexOf(DECLARE);
        text.open()
                .put("component", component)
                .put("kind", kind)
                .put("class", type)
                .put("executors", executors)
                .put("way", way)
                .put("why", at < 0 ? why : why.substring(0, at))
                .put("declare", at < 0 ? null : why.substring(at + DECLARE.length()))
                .put("guess", guess)
                .close();
    }
}
