package nstorm.trial.bolts;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import nstorm.trial.Right;
import nstorm.trial.Way;

/** What the whole JVM shares. */
final class Statics {
    @Right({})
    static final class SharedCounter extends Case {
        static final AtomicLong COUNT = new AtomicLong();

        @Override
        Object on(String word, long number) {
            return COUNT.incrementAndGet();
        }
    }

    @Right({})
    static final class PlainStatic extends Case {
        static int count;

        @Override
        Object on(String word, long number) {
            return ++count;
        }
    }

    @Right({})
    static final class SharedByField extends Case {
        static final Map<String, Map<String, Integer>> ALL = new ConcurrentHashMap<>();
        transient Map<String, Integer> counts;

        @Override
        void begin(Map<String, Object> conf) {
            counts = ALL.computeIfAbsent("counts", key -> new ConcurrentHashMap<>());
        }

        @Override
        Object on(String word, long number) {
            return counts.merge(word, 1, Integer::sum);
        }
    }

    static class Tally {
        private final Map<String, Integer> counts = new HashMap<>();

        int count(String word) {
            return counts.merge(word, 1, Integer::sum);
        }
    }

    static class Shouter {
        String shout(String word) {
            return word + "!";
        }
    }

    static final class Shared {
        static final Shouter SHOUTER = new Shouter();
        static Tally tally = new Tally();
    }

    @Right({})
    static final class HelperOfAnotherClass extends Case {
        @Override
        Object on(String word, long number) {
            return Shared.tally.count(word);
        }
    }

    /** All of what it keeps in a field travels, and the helper's does not. */
    @Right({})
    static final class HelperAndField extends Case {
        private long seen;

        @Override
        Object on(String word, long number) {
            return Shared.tally.count(word) + " of " + ++seen;
        }
    }

    @Right(Way.LIVE)
    static final class HelperThatKeepsNothing extends Case {
        @Override
        Object on(String word, long number) {
            return Shared.SHOUTER.shout(word);
        }
    }

    static final class Registry {
        private static final Registry ONE = new Registry();
        private final List<String> words = new ArrayList<>();

        static Registry get() {
            return ONE;
        }
    }

    @Right({})
    static final class InAnotherClass extends Case {
        @Override
        Object on(String word, long number) {
            Registry.get().words.add(word);
            return Registry.get().words.size();
        }
    }

    @Right({})
    static final class Nested extends Case {
        private static final class Holder {
            static Map<String, Integer> counts;
        }

        @Override
        Object on(String word, long number) {
            Holder.counts = Holder.counts == null ? new HashMap<>() : Holder.counts;
            return Holder.counts.merge(word, 1, Integer::sum);
        }
    }

    @Right({})
    static final class AdderReadBack extends Case {
        static final LongAdder SUM = new LongAdder();

        @Override
        Object on(String word, long number) {
            SUM.add(number);
            return SUM.sum() > 100;
        }
    }

    @Right({})
    static final class Array extends Case {
        static final long[] SUMS = new long[4];

        @Override
        Object on(String word, long number) {
            return SUMS[word.length() - 1] += number;
        }
    }

    private Statics() {}
}
