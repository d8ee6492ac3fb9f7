package nstorm.memory;

import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the configuration declares of how a component's executors move: it knows better than the code does. */
public final class Declared {
    static final String MOVE = "nstorm.move";
    static final String STATE = "nstorm.state";
    public static final String STATE_CLASSES = "nstorm.state.classes";
    private static final Logger LOG = LoggerFactory.getLogger(Declared.class);
    private static final Set<String> WORDS = Set.of("live", "carry", "drain", "renew", "never");

    private final Map<?, ?> words;
    private final Map<?, ?> fields;
    private final Collection<?> classes;
    private final String problem;

    private Declared(Map<?, ?> words, Map<?, ?> fields, Collection<?> classes, String problem) {
        this.words = words;
        this.fields = fields;
        this.classes = classes;
        this.problem = problem;
    }

    /** Reads a topology's configuration, which holds that of {@code storm.yaml} too. */
    public static Declared of(Map<String, Object> topologyConf) {
        Object move = topologyConf.getOrDefault(MOVE, Map.of());
        Object state = topologyConf.getOrDefault(STATE, Map.of());
        Object classes = topologyConf.getOrDefault(STATE_CLASSES, List.of());
        String problem = null;
        if (!(move instanceof Map<?, ?> words && WORDS.containsAll(words.values()))) {
            problem = MOVE + " must name live, carry, drain, renew or never for each component, is " + move;
        } else if (!(state instanceof Map<?, ?> fields
                && fields.values().stream().allMatch(Declared::isNames))) {
            problem = STATE + " must name a list of fields for each component, is " + state;
        } else if (!(classes instanceof Collection<?> names && names.stream().allMatch(String.class::isInstance))) {
            problem = STATE_CLASSES + " must be a list of names of classes, or of packages with .* behind them, is "
                    + classes;
        } else {
            return new Declared(words, fields, names, null);
        }
        LOG.warn("{}: no bolt moves", problem);
        return new Declared(Map.of(), Map.of(), List.of(), problem);
    }

    private static boolean isNames(Object value) {
        return value instanceof Collection<?> names
                && !names.isEmpty()
                && names.stream().allMatch(String.class::isInstance);
    }

    /** Why a bolt stays because of what is declared, or null. */
    public String reason(String component) {
        return problem == null && "never".equals(words.get(component)) ? MOVE + " is never" : problem;
    }

    /** Whether nothing is declared of how a component moves. */
    public boolean isSilent(String component) {
        return words.get(component) == null && state(component) == null;
    }

    /** Whether a bolt may be in two places for a moment, and forget what it keeps. */
    public boolean isLive(String component) {
        return "live".equals(words.get(component));
    }

    /** Whether a spout is closed, or a bolt cleaned up, before its new copy opens what it needs, whatever else it keeps. */
    public boolean isRenewed(String component) {
        return "renew".equals(words.get(component));
    }

    /** Whether it is declared what a bolt may forget, so that nothing is left to prove. */
    public boolean trusts(String component) {
        return isLive(component) || isDrain(component) || isRenewed(component) || state(component) != null;
    }

    /** Whether a bolt's state may travel whatever else its code does. */
    boolean isCarry(String component) {
        return "carry".equals(words.get(component));
    }

    /** Whether a bolt may move once it keeps no tuple, and forget what else it keeps. */
    boolean isDrain(String component) {
        return "drain".equals(words.get(component));
    }

    /** Whether a state may hold objects of this class whatever types the bolt's fields have. */
    public boolean isOfState(String className) {
        return classes.stream()
                .map(String.class::cast)
                .anyMatch(one -> one.endsWith(".*")
                        ? className.startsWith(one.substring(0, one.length() - 1))
                        : one.equals(className));
    }

    /** The fields that hold a bolt's state, or its tuples if it drains, or null if its code decides. */
    Set<String> state(String component) {
        if (!(fields.get(component) instanceof Collection<?> names)) {
            return null;
        }
        Set<String> given = new LinkedHashSet<>();
        names.forEach(name -> given.add((String) name));
        return given;
    }
}
