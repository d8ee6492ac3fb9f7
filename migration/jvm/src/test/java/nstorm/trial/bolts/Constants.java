package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import nstorm.trial.Right;

/** Fields that are set to constants, and what is compared by identity. */
final class Constants {
    enum State {
        CLOSED,
        HALF_OPEN,
        OPEN
    }

    @Right(CARRY)
    static final class EnumState extends Case {
        State state = State.CLOSED;

        @Override
        Object on(String word, long number) {
            state = word.equals("ccc") ? State.OPEN : number % 7 == 6 ? State.CLOSED : state;
            return state == State.OPEN ? null : word;
        }
    }

    /** Worked out from the enum alone. */
    @Right(CARRY)
    static final class NextEnum extends Case {
        State state = State.CLOSED;

        @Override
        Object on(String word, long number) {
            state = State.values()[(state.ordinal() + 1) % 3];
            return state.name();
        }
    }

    /** A text that travels is another object. */
    @Right({})
    static final class SentinelText extends Case {
        static final String NONE = "none";
        String last = NONE;

        @Override
        Object on(String word, long number) {
            String before = last;
            last = number % 12 == 11 ? NONE : word;
            return before == NONE ? "first" : before;
        }
    }

    /** A number that travels is another object, too. */
    @Right({})
    static final class SentinelNumber extends Case {
        static final Object NONE = Integer.valueOf(5000);
        Object last = NONE;

        @Override
        Object on(String word, long number) {
            Object before = last;
            last = number % 12 == 11 ? NONE : word;
            return before == NONE ? "first" : before;
        }
    }

    /** Small numbers are one object in a JVM; one that has come is another. */
    @Right({})
    static final class SameNumbers extends Case {
        Integer first = 0;
        Integer last = 0;

        @Override
        Object on(String word, long number) {
            last = (int) number % 3;
            first = number == 1 ? last : first;
            return first == last;
        }
    }

    @Right({})
    static final class SentinelObject extends Case {
        static final class Mark implements Serializable {}

        static final Mark END = new Mark();
        final Map<String, Object> seen = new HashMap<>();

        @Override
        Object on(String word, long number) {
            Object before = seen.put(word, word.length() > 1 ? END : new Mark());
            return before == END;
        }
    }

    @Right(CARRY)
    static final class ConstantMode extends Case {
        static final Integer FAST = 1;
        static final Integer SLOW = 2;
        Integer mode;

        @Override
        void begin(Map<String, Object> conf) {
            mode = FAST;
        }

        @Override
        Object on(String word, long number) {
            mode = word.equals("dd") ? SLOW : mode;
            return mode;
        }
    }

    @Right({})
    static final class ModeObject extends Case {
        static final class Mode implements Serializable {
            final String name;

            Mode(String name) {
                this.name = name;
            }
        }

        static final Mode FAST = new Mode("fast");
        static final Mode SLOW = new Mode("slow");
        Mode mode = FAST;

        @Override
        void begin(Map<String, Object> conf) {
            mode = FAST;
        }

        @Override
        Object on(String word, long number) {
            mode = word.equals("dd") ? SLOW : mode;
            return mode == SLOW ? "slow" : "other";
        }
    }

    @Right(CARRY)
    static final class ResetToConstant extends Case {
        static final List<String> EMPTY = List.of();
        List<String> batch = EMPTY;

        @Override
        Object on(String word, long number) {
            List<String> more = new ArrayList<>(batch);
            more.add(word);
            batch = more.size() == 5 ? EMPTY : List.copyOf(more);
            return batch.isEmpty() ? more : null;
        }
    }

    @Right(CARRY)
    static final class ConstantDefault extends Case {
        static final String DEFAULT = "idle";
        private String status;

        @Override
        void begin(Map<String, Object> conf) {
            status = DEFAULT;
        }

        @Override
        Object on(String word, long number) {
            String was = status;
            status = number % 5 == 0 ? DEFAULT : "saw " + word;
            return was;
        }
    }

    @Right(CARRY)
    static final class Flag extends Case {
        boolean seen;

        @Override
        Object on(String word, long number) {
            seen |= word.equals("ccc");
            return seen;
        }
    }

    /** Numbers up to 127 are one object each, others are not. */
    @Right(CARRY)
    static final class SameNumber extends Case {
        Integer first;
        Integer last;

        @Override
        Object on(String word, long number) {
            if (first == null) {
                first = Integer.valueOf(1000);
                last = first;
            }
            boolean same = first == last;
            last = number % 20 == 19 ? Integer.valueOf(1000) : last;
            return same;
        }
    }

    enum Counts {
        ALL;

        final Map<String, Integer> counts = new HashMap<>();
    }

    @Right({})
    static final class EnumSingleton extends Case {
        Counts counts = Counts.ALL;

        @Override
        Object on(String word, long number) {
            return counts.counts.merge(word, 1, Integer::sum);
        }
    }

    /** Nothing of the bolt leads to it. */
    @Right({})
    static final class EnumByName extends Case {
        @Override
        Object on(String word, long number) {
            return Counts.valueOf("ALL").counts.merge(word, 1, Integer::sum);
        }
    }

    enum Slot {
        SHORT,
        LONG;

        int count;
    }

    @Right({})
    static final class EnumInMapLater extends Case {
        final Map<String, Slot> slots = new HashMap<>();

        @Override
        Object on(String word, long number) {
            Slot slot = slots.computeIfAbsent(word, key -> key.length() > 2 ? Slot.LONG : Slot.SHORT);
            return ++slot.count;
        }
    }

    @Right(CARRY)
    static final class ByEnum extends Case {
        final Map<State, Integer> counts = new EnumMap<>(State.class);

        @Override
        Object on(String word, long number) {
            return counts.merge(State.values()[(int) (number % 3)], 1, Integer::sum);
        }
    }

    enum Rule {
        UP {
            @Override
            int next(int value) {
                return value + 3;
            }
        },
        DOWN {
            @Override
            int next(int value) {
                return value - 1;
            }
        };

        abstract int next(int value);
    }

    /** Constants with code of their own are of classes of their own. */
    @Right(CARRY)
    static final class EnumWithBodies extends Case {
        Rule rule = Rule.UP;
        int value;

        @Override
        Object on(String word, long number) {
            value = rule.next(value);
            rule = value > 9 ? Rule.DOWN : value < 3 ? Rule.UP : rule;
            return value;
        }
    }

    private Constants() {}
}
