package nstorm.memory;

import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the configuration says of how a component's executors move: it knows better than the code does. */
public final class Declared {
    static final String MOVE = "nstorm.move";
    private static final Logger LOG = LoggerFactory.getLogger(Declared.class);
    private static final String LIVE = "live";
    private static final Set<String> WORDS = Set.of(LIVE, "never");

    private final Map<?, ?> words;
    private final String problem;

    private Declared(Map<?, ?> words, String problem) {
        this.words = words;
        this.problem = problem;
    }

    /** Reads a topology's configuration, which holds that of {@code storm.yaml} too. */
    public static Declared of(Map<String, Object> topologyConf) {
        Object given = topologyConf.getOrDefault(MOVE, Map.of());
        if (given instanceof Map<?, ?> map && WORDS.containsAll(map.values())) {
            return new Declared(map, null);
        }
        String problem = MOVE + " must name live or never for each component, is " + given;
        LOG.warn("{}: no bolt moves", problem);
        return new Declared(Map.of(), problem);
    }

    /** Why a bolt stays because of what is declared, or null. */
    public String reason(String component) {
        return problem == null && "never".equals(words.get(component)) ? MOVE + " says never" : problem;
    }

    /** Whether a bolt may be in two places for a moment, and forget what it keeps. */
    public boolean isLive(String component) {
        return LIVE.equals(words.get(component));
    }
}
