package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;
import static nstorm.trial.Way.LIVE;
import static nstorm.trial.Way.STOPPED;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import nstorm.trial.Right;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Bolts that keep nothing. */
final class Nothing {
    @Right({LIVE, STOPPED})
    static final class Split extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            for (String part : (tuple.getValue(0) + " x").split(" ")) {
                collector.emit(new Values(part));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("part"));
        }
    }

    @Right({LIVE, STOPPED})
    static final class Stop extends Case {
        private String stop;

        @Override
        void begin(Map<String, Object> conf) {
            stop = (String) conf.get("stop");
        }

        @Override
        Object on(String word, long number) {
            return word.equals(stop) ? null : word;
        }
    }

    @Right({LIVE, STOPPED})
    static final class Table extends Case {
        private final Map<String, Integer> prices = new HashMap<>();

        @Override
        void begin(Map<String, Object> conf) {
            prices.put("a", 3);
            prices.put("bb", 4);
        }

        @Override
        Object on(String word, long number) {
            return prices.getOrDefault(word, 1) * number;
        }
    }

    @Right({LIVE, STOPPED})
    static final class StaticTable extends Case {
        private static final Map<String, String> NAMES = Map.of("a", "Anna", "bb", "Bob");
        private static final Pattern WORD = Pattern.compile("(.)(.*)");
        private static final Logger LOG = LoggerFactory.getLogger(StaticTable.class);

        @Override
        Object on(String word, long number) {
            Matcher matcher = WORD.matcher(word);
            LOG.debug("{} {}", word, number);
            return matcher.matches() ? NAMES.getOrDefault(word, matcher.group(2)) : null;
        }
    }

    @Right({LIVE, STOPPED})
    static final class Locals extends Case {
        @Override
        Object on(String word, long number) {
            List<String> parts = new ArrayList<>(List.of("z", word, "y" + number));
            Collections.sort(parts);
            Map<Integer, List<String>> byLength =
                    parts.stream().collect(Collectors.groupingBy(String::length, TreeMap::new, Collectors.toList()));
            StringBuilder text = new StringBuilder();
            byLength.forEach((length, all) -> text.append(length).append(all));
            return text.toString();
        }
    }

    @Right({LIVE, STOPPED})
    static final class Json extends Case {
        private transient Gson gson;

        @Override
        void begin(Map<String, Object> conf) {
            gson = new Gson();
        }

        @Override
        Object on(String word, long number) {
            JsonObject event = gson.fromJson("{\"word\": \"" + word + "\"}", JsonObject.class);
            return event.get("word").getAsString() + number;
        }
    }

    @Right({LIVE, STOPPED})
    static final class Times extends Case {
        private static final DateTimeFormatter SHOWN =
                DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm", Locale.ROOT).withZone(ZoneOffset.UTC);

        @Override
        Object on(String word, long number) {
            return SHOWN.format(Instant.ofEpochSecond(number * 86_461));
        }
    }

    @Right({LIVE, STOPPED})
    static final class Digest extends Case {
        @Override
        Object on(String word, long number) {
            try {
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(word.getBytes(StandardCharsets.UTF_8));
                return HexFormat.of().formatHex(digest, 0, 4);
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    @Right({LIVE, STOPPED})
    static final class Choice extends Case {
        private final Scale scale = new Scale(3);

        static final class Scale implements java.io.Serializable {
            private final int by;

            Scale(int by) {
                this.by = by;
            }

            long of(long number) {
                return number * by;
            }
        }

        @Override
        Object on(String word, long number) {
            return switch (word) {
                case "a", "e" -> scale.of(number);
                case "bb" -> Optional.of(word).map(String::toUpperCase).orElse("none");
                default -> String.format(Locale.ROOT, "%s-%05d", word, number);
            };
        }
    }

    @Right({LIVE, STOPPED})
    static final class Task extends Case {
        private int task;

        @Override
        void begin(Map<String, Object> conf) {
            task = context.getThisTaskId();
        }

        @Override
        Object on(String word, long number) {
            return word + task + context.getThisComponentId();
        }
    }

    /** Whatever is left in it is never read. */
    @Right({LIVE, STOPPED, CARRY})
    static final class Buffer extends Case {
        private final char[] buffer = new char[8];

        @Override
        Object on(String word, long number) {
            Arrays.fill(buffer, '.');
            word.getChars(0, word.length(), buffer, 0);
            return new String(buffer);
        }
    }

    /** Made when it is first asked for, and always the same. */
    @Right({LIVE, STOPPED, CARRY})
    static final class Lazy extends Case {
        private Map<String, Integer> lengths;

        @Override
        Object on(String word, long number) {
            if (lengths == null) {
                lengths = new HashMap<>(Map.of("a", 1, "bb", 2));
            }
            return lengths.get(word);
        }
    }

    private Nothing() {}
}
