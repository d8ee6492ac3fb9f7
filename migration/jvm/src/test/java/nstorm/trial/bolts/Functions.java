package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;
import static nstorm.trial.Way.LIVE;
import static nstorm.trial.Way.STOPPED;

import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.IntSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import nstorm.trial.Right;

/** Lambdas, method references, anonymous and local classes, and what they have caught. */
final class Functions {
    interface Handler {
        Object on(String word, long number);
    }

    @Right({})
    static final class CaughtMap extends Case {
        transient Map<String, Handler> handlers;

        @Override
        void begin(Map<String, Object> conf) {
            Map<String, Integer> counts = new HashMap<>();
            handlers = new HashMap<>();
            handlers.put("even", (word, number) -> counts.merge(word, 1, Integer::sum));
            handlers.put("odd", (word, number) -> counts.merge(word, 10, Integer::sum));
        }

        @Override
        Object on(String word, long number) {
            return handlers.get(number % 2 == 0 ? "even" : "odd").on(word, number);
        }
    }

    @Right({})
    static final class CaughtWindow extends Case {
        transient Handler handler;

        @Override
        void begin(Map<String, Object> conf) {
            Deque<Long> window = new ArrayDeque<>();
            handler = (word, number) -> {
                window.addLast(number);
                if (window.size() > 5) {
                    window.removeFirst();
                }
                return window.stream().mapToLong(one -> one).sum();
            };
        }

        @Override
        Object on(String word, long number) {
            return handler.on(word, number);
        }
    }

    interface First {
        boolean isFirst(String word);
    }

    @Right({})
    static final class CaughtReceiver extends Case {
        transient First first;

        @Override
        void begin(Map<String, Object> conf) {
            Set<String> seen = new HashSet<>();
            first = seen::add;
        }

        @Override
        Object on(String word, long number) {
            return first.isFirst(word) ? word : null;
        }
    }

    @Right({})
    static final class CaughtArray extends Case {
        transient IntSupplier next;

        @Override
        void begin(Map<String, Object> conf) {
            int[] count = {0};
            next = () -> ++count[0];
        }

        @Override
        Object on(String word, long number) {
            return next.getAsInt();
        }
    }

    @Right({})
    static final class Composed extends Case {
        transient Function<String, String> whole;

        @Override
        void begin(Map<String, Object> conf) {
            StringBuilder all = new StringBuilder();
            Function<String, String> keep = word -> all.append(word.charAt(0)).toString();
            whole = keep.andThen(String::toUpperCase).compose(String::trim);
        }

        @Override
        Object on(String word, long number) {
            return whole.apply(word);
        }
    }

    interface SerialSupplier extends Supplier<Integer>, Serializable {}

    @Right({})
    static final class SerialLambda extends Case {
        private final SerialSupplier next;

        SerialLambda() {
            int[] count = {0};
            next = () -> ++count[0];
        }

        @Override
        Object on(String word, long number) {
            return next.get();
        }
    }

    @Right({})
    static final class OwnMethod extends Case {
        int count;
        transient Handler handler;

        @Override
        void begin(Map<String, Object> conf) {
            handler = this::add;
        }

        private Object add(String word, long number) {
            return count += word.length();
        }

        @Override
        Object on(String word, long number) {
            return handler.on(word, number);
        }
    }

    /** The new copy's function has caught the new copy: this may travel. */
    @Right(CARRY)
    static final class CatchesTheBolt extends Case {
        int count;
        transient UnaryOperator<String> shown;

        @Override
        void begin(Map<String, Object> conf) {
            shown = word -> word + count;
        }

        @Override
        Object on(String word, long number) {
            count++;
            return shown.apply(word);
        }
    }

    @Right({})
    static final class Anonymous extends Case {
        transient Handler handler;

        @Override
        void begin(Map<String, Object> conf) {
            handler = new Handler() {
                private long sum;

                @Override
                public Object on(String word, long number) {
                    return sum += number;
                }
            };
        }

        @Override
        Object on(String word, long number) {
            return handler.on(word, number);
        }
    }

    @Right({})
    static final class Proxied extends Case {
        transient Handler handler;

        @Override
        void begin(Map<String, Object> conf) {
            long[] sum = {0};
            InvocationHandler add = (proxy, method, arguments) -> sum[0] += (Long) arguments[1];
            handler = (Handler)
                    Proxy.newProxyInstance(Handler.class.getClassLoader(), new Class<?>[] {Handler.class}, add);
        }

        @Override
        Object on(String word, long number) {
            return handler.on(word, number);
        }
    }

    @Right({})
    static final class CountingComparator extends Case {
        transient Map<String, Integer> sorted;

        @Override
        void begin(Map<String, Object> conf) {
            int[] compared = {0};
            sorted = new TreeMap<>((left, right) -> {
                compared[0]++;
                return compared[0] > 30 ? right.compareTo(left) : left.compareTo(right);
            });
        }

        @Override
        Object on(String word, long number) {
            sorted.merge(word, 1, Integer::sum);
            return sorted.toString();
        }
    }

    static final class ByLength implements Comparator<String>, Serializable {
        @Override
        public int compare(String left, String right) {
            return left.length() == right.length() ? left.compareTo(right) : right.length() - left.length();
        }
    }

    @Right(CARRY)
    static final class PlainComparator extends Case {
        final Map<String, Integer> sorted = new TreeMap<>(new ByLength());

        @Override
        Object on(String word, long number) {
            sorted.merge(word, 1, Integer::sum);
            return sorted.toString();
        }
    }

    @Right({LIVE, STOPPED})
    static final class PureTable extends Case {
        transient Map<String, UnaryOperator<String>> table;

        @Override
        void begin(Map<String, Object> conf) {
            table = new HashMap<>();
            table.put("a", String::toUpperCase);
            table.put("bb", word -> word + word);
        }

        @Override
        Object on(String word, long number) {
            return table.getOrDefault(word, one -> one).apply(word);
        }
    }

    @Right({LIVE, STOPPED})
    static final class PurePredicates extends Case {
        transient List<Predicate<String>> filters;

        @Override
        void begin(Map<String, Object> conf) {
            String stop = (String) conf.get("stop");
            filters = List.of(word -> !word.equals(stop), word -> word.length() < 3);
        }

        @Override
        Object on(String word, long number) {
            return filters.stream().allMatch(one -> one.test(word)) ? word : null;
        }
    }

    /** Code that came in a tuple, kept and called. */
    @Right({})
    static final class ReplacedLambda extends Case {
        transient UnaryOperator<String> rule = null;

        @Override
        Object on(String word, long number) {
            if (rule == null || number % 5 == 0) {
                rule = one -> one + word;
            }
            return rule.apply(word);
        }
    }

    private Functions() {}
}
