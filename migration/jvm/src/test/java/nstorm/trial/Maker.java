package nstorm.trial;

import java.util.List;
import java.util.Random;

/** Makes bolts from a seed, as Java text: random fields of random sorts, changed and shown in random ways. */
final class Maker {
    private static final String PACKAGE = "made.bolts";
    private static final String IMPORTS =
            "import java.io.*;\nimport java.lang.ref.*;\nimport java.math.*;\nimport java.time.*;\n"
                    + "import java.util.*;\n"
                    + "import java.util.concurrent.*;\nimport java.util.concurrent.atomic.*;\nimport java.util.function.*;\n"
                    + "import java.util.regex.*;\n"
                    + "import java.util.stream.*;\nimport org.apache.storm.metric.api.CountMetric;\nimport org.apache.storm.task.*;\n"
                    + "import org.apache.storm.topology.*;\nimport org.apache.storm.topology.base.*;\nimport org.apache.storm.tuple.*;\n"
                    + "import org.apache.storm.tuple.Fields;\nimport org.apache.storm.utils.TupleUtils;\nimport org.slf4j.*;\n";

    /** How much of what it has it keeps from one tuple to the next. */
    enum Keeps {
        NOTHING,
        PLAIN,
        HARD
    }

    /** A bolt, and its text. */
    record Made(String type, Keeps keeps, String text) {}

    private final Random random;
    private final Sorts sorts;
    private final StringBuilder fields = new StringBuilder();
    private final StringBuilder inherited = new StringBuilder();
    private final StringBuilder prepare = new StringBuilder();
    private final StringBuilder methods = new StringBuilder();
    private final StringBuilder body = new StringBuilder();

    private Maker(long seed) {
        random = new Random(seed);
        sorts = new Sorts(random);
    }

    static Made of(long seed, Keeps keeps) {
        return new Maker(seed).make((keeps + "").charAt(0) + Long.toHexString(seed), keeps);
    }

    private Made make(String name, Keeps keeps) {
        for (int i = random.nextInt(3); i >= 0; i--) {
            nothing();
        }
        if (keeps != Keeps.NOTHING) {
            for (int i = random.nextInt(keeps == Keeps.PLAIN ? 3 : 2); i >= 0; i--) {
                state();
            }
        }
        if (keeps == Keeps.HARD) {
            hard();
        }
        return new Made(PACKAGE + "." + name, keeps, text(name));
    }

    private String text(String name) {
        boolean basic = random.nextBoolean();
        String base = basic ? "BaseBasicBolt" : "BaseRichBolt";
        String above = inherited.isEmpty() ? base : "Above" + name;
        String own = PACKAGE + "." + name + ".*;\n";
        return "package " + PACKAGE + ";\n\n" + IMPORTS
                + (inherited.isEmpty() ? "" : "import " + own + "import static " + own)
                + "\npublic class " + name + " extends " + above + " {\n" + sorts.types
                + fields
                + (basic ? "" : "private transient OutputCollector collector;\n")
                + "@Override public void prepare(Map<String, Object> conf, TopologyContext context"
                + (basic ? "" : ", OutputCollector collector") + ") {\n"
                + (basic ? "" : "this.collector = collector;\n") + prepare + "}\n"
                + "@Override public void execute(Tuple tuple" + (basic ? ", BasicOutputCollector collector" : "")
                + ") {\n"
                + "if (TupleUtils.isTick(tuple)) { return; }\nString word = tuple.getString(0);\nlong number = tuple.getLong(1);\n"
                + "StringBuilder out = new StringBuilder();\n" + body + "collector.emit("
                + (basic ? "" : "tuple, ") + "new Values(out + \"\"));\n"
                + (basic ? "" : "collector.ack(tuple);\n") + "}\n" + methods
                + "@Override public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields(\"out\")); }\n}\n"
                + (inherited.isEmpty()
                        ? ""
                        : "\nabstract class " + above + " extends " + base + " {\n" + inherited + "}\n");
    }

    private String say(String expression) {
        return "out.append(" + expression + ").append(' ');\n";
    }

    /** Where something is kept: in the bolt or in the class above, made at once, in prepare, or when it is first asked for. */
    private String field(Sort sort, boolean mayBeLazy) {
        String name = sorts.name("f");
        boolean own = random.nextInt(5) != 0;
        StringBuilder to = own ? fields : inherited;
        boolean primitive = sort.type().matches("[a-z]+");
        String declared = sort.type() + " " + name;
        switch (random.nextInt(mayBeLazy && !primitive ? 4 : 3)) {
            case 0 -> {
                to.append((random.nextBoolean() ? "transient " : "") + declared + ";\n");
                prepare.append(name + " = " + sort.fresh() + ";\n");
            }
            case 1 ->
                to.append((own && sort.inPlace() ? "private final " : own ? "private " : "") + declared + " = "
                        + sort.fresh() + ";\n");
            case 2 -> to.append(declared + " = " + sort.fresh() + ";\n");
            default -> {
                to.append(declared + ";\n");
                body.append("if (" + name + " == null) { " + name + " = " + sort.fresh() + "; }\n");
            }
        }
        return name;
    }

    private void state() {
        Sort sort = sorts.plain();
        String name = field(sort, true);
        body.append(around(sort.step(name)));
        body.append(say(sort.show(name)));
        if (random.nextInt(6) == 0 && !sort.inPlace()) {
            body.append("if (number % 9 == 7) { " + name + " = " + sort.fresh() + "; }\n");
        }
    }

    /** Code that does something, reached in one way or another. */
    private String around(String step) {
        if (step.isEmpty()) {
            return "";
        }
        switch (random.nextInt(11)) {
            case 0:
                return "if (number % 3 != 1) { " + step + " }\n";
            case 1:
                return "if (word.length() > 1) { " + step + " } else if (number < 0) { out.append('-'); }\n";
            case 2:
                return "if (number >= 13) { " + step + " }\n";
            case 3:
                return "for (int i = 0; i < 2; i++) { " + step + " }\n";
            case 4:
                return "try { " + step + " } finally { out.append('.'); }\n";
            case 5:
                return "List.of(1).forEach(each -> { " + step + " });\n";
            case 6:
                return "{ Runnable run = () -> { " + step + " }; run.run(); }\n";
            case 7: {
                String method = sorts.name("step");
                methods.append("private void " + method + "(String word, long number) { " + step + " }\n");
                return method + "(word, number);\n";
            }
            case 8:
                return "switch (word) { case \"a\", \"ccc\" -> { " + step + " } default -> { " + step + " } }\n";
            case 9:
                return "IntStream.range(0, 1).forEach(each -> { " + step + " });\n";
            default:
                return step + "\n";
        }
    }

    private void nothing() {
        switch (random.nextInt(14)) {
            case 0 -> body.append(say("word.toUpperCase()"));
            case 1, 2 -> { // a table that is only read
                Sort sort = readable();
                body.append(say(sort.show(field(sort, false))));
            }
            case 3, 4 -> { // a variable of one call
                Sort sort = sorts.plain();
                String name = sorts.name("local");
                body.append(sort.type() + " " + name + " = " + sort.fresh() + ";\n" + sort.step(name) + "\n"
                        + say(sort.show(name)));
            }
            case 5 ->
                body.append(
                        say("word.chars().mapToObj(c -> \"\" + (char) c).sorted().collect(Collectors.joining(\"-\"))"));
            case 6 -> {
                String name = sorts.name("PATTERN");
                fields.append("private static final Pattern " + name + " = Pattern.compile(\"(.)\\\\1*\");\n");
                body.append(say(name + ".matcher(word).replaceAll(\"$1\")"));
            }
            case 7 -> {
                String name = sorts.name("stop");
                fields.append("private String " + name + ";\n");
                prepare.append(name + " = (String) conf.get(\"stop\");\n");
                body.append("if (word.equals(" + name + ")) { out.append(\"stop \"); }\n");
            }
            case 8 -> {
                String name = sorts.name("task");
                fields.append("private int " + name + ";\n");
                prepare.append(name + " = context.getThisTaskId();\n");
                body.append(say(name + " + number"));
            }
            case 9 -> {
                String name = sorts.name("pure");
                String type = sorts.one("Function<String, String>", "UnaryOperator<String>");
                fields.append("private transient " + type + " " + name + ";\n");
                prepare.append(name + " = "
                        + sorts.one(
                                "one -> one + \"!\"", "String::trim", "one -> one.isEmpty() ? one : one.substring(1)")
                        + ";\n");
                body.append(say(name + ".apply(word)"));
            }
            case 10 -> {
                String name = sorts.name("LOG");
                fields.append(
                        "private static final Logger " + name + " = LoggerFactory.getLogger(\"" + name + "\");\n");
                body.append(name + ".debug(\"{} {}\", word, number);\n");
            }
            case 11 -> {
                String name = sorts.name("TABLE");
                fields.append(
                        "private static final Map<String, Integer> " + name + " = Map.of(\"a\", 1, \"bb\", 2);\n");
                body.append(say(name + ".getOrDefault(word, (int) number)"));
            }
            case 12 -> body.append(say("String.format(\"%05d-%s\", number, word)"));
            default -> {
                String name = sorts.name("pure");
                methods.append("private static String " + name
                        + "(String word, long number) { List<String> all = new ArrayList<>(List.of(word, \"n\" + number)); "
                        + "Collections.sort(all); return String.join(\"/\", all); }\n");
                body.append(say(name + "(word, number)"));
            }
        }
    }

    /** One that does not change by being shown. */
    private Sort readable() {
        Sort sort;
        do {
            sorts.draws = false;
            sort = sorts.plain();
        } while (sorts.draws);
        return sort;
    }

    private void hard() {
        switch (random.nextInt(6)) {
            case 0 -> { // a static field; what a static Random draws is chance, which nobody has to remember
                Sort sort;
                do {
                    sort = sorts.plain();
                } while (sort.type().equals("Random"));
                String holder = sorts.name("Holder");
                boolean own = random.nextBoolean();
                String name = sorts.name("SHARED");
                String declared = "static " + sort.type() + " " + name + " = " + sort.fresh() + ";\n";
                sorts.types.append(own ? declared : "static final class " + holder + " { " + declared + "}\n");
                String place = own ? name : holder + "." + name;
                body.append(around(sort.step(place)) + say(sort.show(place)));
            }
            case 1 -> { // two fields lead to one object
                Sort sort = sorts.plainObject();
                String name = sorts.name("f");
                String alias = sorts.name("alias");
                String with = sorts.one("", "transient ");
                fields.append(with + sort.type() + " " + name + ";\n" + with + sorts.one(sort.type(), "Object") + " "
                        + alias + ";\n");
                prepare.append(name + " = " + sort.fresh() + ";\n" + alias + " = " + name + ";\n");
                body.append(around(sort.step(name)) + say(sort.show("((" + sort.type() + ") " + alias + ")")));
            }
            case 2 -> { // a view
                String name = sorts.name("f");
                fields.append("final Map<String, Integer> " + name + " = new "
                        + sorts.one("HashMap", "TreeMap", "LinkedHashMap") + "<>();\n");
                String view = sorts.name("view");
                fields.append("transient Collection<?> " + view + ";\n");
                prepare.append(view + " = " + name + sorts.one(".keySet()", ".values()", ".entrySet()") + ";\n");
                body.append(around(name + ".merge(word, 1, Integer::sum);") + say(view + ".size()"));
            }
            case 3 -> { // what it reads changes
                String name = sorts.name("f");
                fields.append("final Map<String, String> " + name + " = new LinkedHashMap<>(16, 0.75f, true);\n");
                prepare.append("for (String one : List.of(\"a\", \"bb\", \"ccc\", \"dd\", \"e\")) { " + name
                        + ".put(one, one); }\n");
                body.append(around(name + ".get(word);") + say(name + ".keySet().iterator().next()"));
            }
            default -> {
                Sort sort = sorts.hard();
                String name = sorts.name("f");
                // Not all of them can be submitted with the bolt.
                fields.append("transient " + sort.type() + " " + name + ";\n");
                prepare.append(name + " = " + sort.fresh() + ";\n");
                body.append(around(sort.step(name)) + say(sort.show(name)));
            }
        }
    }

    static List<Made> many(long seed, Keeps keeps, int count) {
        return new Random(seed)
                .longs(count, 0, 1L << 40)
                .mapToObj(one -> of(one, keeps))
                .toList();
    }
}
