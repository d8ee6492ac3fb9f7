package nstorm.check;

import java.util.Locale;
import nstorm.load.OwnWay;
import nstorm.memory.MoveWay;
import nstorm.wire.Way;
import nstorm.wire.json.JsonText;

/**
 * How one component would move.
 *
 * @param kind spout or bolt
 * @param type its class
 * @param way  the word of a way, or stays
 * @param why  the reason, with what to declare after {@link #DECLARE}
 * @param guess whether its objects were read before they were prepared
 */
record JudgedComponent(String component, String kind, String type, int executors, String way, String why, boolean guess) {
    private static final String STAYS = "stays";
    private static final String DECLARE = "; declare ";

    static JudgedComponent unread(String component, String kind, int executors, String why) {
        return new JudgedComponent(component, kind, "", executors, STAYS, why, false);
    }

    JudgedComponent by(OwnWay own) {
        return new JudgedComponent(component, kind, type, executors, own.way() == Way.LIVE ? STAYS : own.way().toString(), own.reason(), false);
    }

    JudgedComponent by(MoveWay found, boolean unprepared) {
        Way moves = found.state() != null ? Way.CARRY : found.tuples() != null ? Way.DRAIN : found.pinned() == null ? Way.LIVE : null;
        String word = moves == null ? STAYS : moves.toString().toLowerCase(Locale.ROOT);
        return new JudgedComponent(component, kind, type, executors, word, found.pinned() == null ? "keeps nothing" : found.pinned(), unprepared);
    }

    void write(JsonText text) {
        int at = why.indexOf(DECLARE);
        text.open().put("component", component).put("kind", kind).put("class", type).put("executors", executors).put("way", way)
                .put("why", at < 0 ? why : why.substring(0, at)).put("declare", at < 0 ? null : why.substring(at + DECLARE.length()))
                .put("guess", guess).close();
    }
}
