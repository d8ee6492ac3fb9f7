package nstorm.trial;

import java.util.Random;

/** Draws what a made bolt keeps, of any depth, and writes the types and methods that it needs. */
final class Sorts {
    private static final int DEPTH_MAX = 3;

    final StringBuilder types = new StringBuilder();
    private final Random random;
    private int names;
    /** Whether one of the sorts drawn since this was cleared changes by being shown. */
    boolean draws;

    Sorts(Random random) {
        this.random = random;
    }

    String name(String prefix) {
        return prefix + names++;
    }

    @SafeVarargs
    final <T> T one(T... of) {
        return of[random.nextInt(of.length)];
    }

    /** What an object stream and a walk know. */
    Sort plain() {
        return plain(1);
    }

    private Sort plain(int depth) {
        int deep = depth < DEPTH_MAX ? 23 : 13;
        return switch (random.nextInt(deep)) {
            case 0, 1 -> number();
            case 2 -> text();
            case 3 -> choice();
            case 4 ->
                Sort.object("long[]", "new long[4]", "@[(int) (number % 4)] += word.length();", "Arrays.toString(@)");
            case 5 -> Sort.object("BitSet", "new BitSet()", "@.flip((int) (number * 37 % 150));", "@");
            case 6 -> builder();
            case 7 -> atomic();
            case 8 -> set();
            case 9 -> time();
            case 10 -> chance();
            case 11 ->
                Sort.object(
                        "PriorityQueue<Long>",
                        "new PriorityQueue<Long>()",
                        "@.add(number * 7 % 11); if (@.size() > 4) { @.poll(); }",
                        "new TreeSet<>(@)");
            case 12 ->
                Sort.object(
                        "int[][]",
                        "new int[2][3]",
                        "@[(int) (number % 2)][word.length() % 3]++;",
                        "Arrays.deepToString(@)");
            case 13, 14 -> list(plain(depth + 1));
            case 15, 16, 17 -> map(plain(depth + 1));
            case 18 -> record(plain(depth + 1));
            case 19, 20 -> helper(plain(depth + 1), "");
            case 21 -> deque(plain(depth + 1));
            default -> reference(plain(depth + 1));
        };
    }

    /** One of which the object itself changes. */
    Sort plainObject() {
        Sort sort = plain();
        return sort.inPlace() ? sort : reference(sort);
    }

    private Sort chance() {
        draws = true;
        return Sort.object("Random", "new Random(" + random.nextInt(99) + ")", "@.nextInt();", "@.nextInt(100)");
    }

    private Sort number() {
        return one(
                Sort.primitive(
                        "int",
                        "Integer",
                        "" + random.nextInt(9),
                        one("@++;", "@ = @ * 3 + (int) number;", "@ += word.length();")),
                Sort.primitive(
                        "long",
                        "Long",
                        random.nextInt(9) + "L",
                        one("@ += number;", "@ = Math.max(@, number * 17 % 23);")),
                Sort.primitive("double", "Double", "0.5", "@ = @ * 0.75 + number;"),
                Sort.primitive("boolean", "Boolean", "false", one("@ = !@;", "@ |= word.equals(\"e\");")),
                Sort.value("Integer", "1", one("@ = @ + 1;", "@ = word.hashCode();")),
                Sort.value("Long", "1000L", "@ = number % 5 == 0 ? 1000L : @ + number;"),
                Sort.value("BigInteger", "BigInteger.ONE", "@ = @.add(BigInteger.valueOf(number));"),
                Sort.value("BigDecimal", "BigDecimal.TEN", "@ = @.add(new BigDecimal(\"0.10\"));"));
    }

    private Sort text() {
        return one(
                Sort.value("String", "\"\"", "@ = @.length() > 12 ? word : @ + word;"),
                Sort.value("String", "\"none\"", "@ = word + @.length();"),
                Sort.value("Object", "\"none\"", "@ = number % 2 == 0 ? (Object) word : (Object) number;"),
                Sort.value("UUID", "new UUID(1, 2)", "@ = new UUID(@.getMostSignificantBits() + 1, number);"));
    }

    private Sort choice() {
        String name = name("Choice");
        types.append("enum ").append(name).append(" { A, B, C }\n");
        return Sort.value(
                name,
                name + ".A",
                one(
                                "@ = NAME.values()[(@.ordinal() + 1) % 3];",
                                "@ = word.equals(\"a\") ? NAME.B : NAME.C;",
                                "@ = word.equals(\"ccc\") ? NAME.C : @;",
                                "switch (@) { case A -> @ = NAME.B; case B -> @ = NAME.C; default -> { } }")
                        .replace("NAME", name));
    }

    private Sort builder() {
        String type = one("StringBuilder", "StringBuffer");
        return Sort.object(
                type,
                "new " + type + "(\"t\")",
                "@.append(word.charAt(0)); if (@.length() > 9) { @.setLength(2); }",
                "@.toString()");
    }

    private Sort atomic() {
        return one(
                Sort.object("AtomicLong", "new AtomicLong()", "@.addAndGet(number);", "@.get()"),
                Sort.object("AtomicInteger", "new AtomicInteger(3)", "@.incrementAndGet();", "@.get()"),
                Sort.object("AtomicBoolean", "new AtomicBoolean()", "@.set(!@.get());", "@.get()"),
                Sort.object("LongAdder", "new LongAdder()", "@.add(number);", "@.sum()"),
                Sort.object(
                        "AtomicLongArray",
                        "new AtomicLongArray(3)",
                        "@.addAndGet((int) (number % 3), number);",
                        "@.toString()"));
    }

    private Sort set() {
        String fresh = one(
                "new HashSet<String>()",
                "new LinkedHashSet<String>()",
                "new TreeSet<String>()",
                "ConcurrentHashMap.<String>newKeySet()",
                "new CopyOnWriteArraySet<String>()",
                "Collections.synchronizedSet(new HashSet<String>())");
        return Sort.object(
                "Set<String>",
                fresh,
                one(
                        "@.add(word + number % 5);",
                        "if (!@.remove(word)) { @.add(word); }",
                        "Stream.of(word, \"n\" + number % 3).forEach(@::add);"),
                "new TreeSet<>(@)");
    }

    private Sort time() {
        return one(
                Sort.value("Instant", "Instant.EPOCH", "@ = @.plusSeconds(number);"),
                Sort.value("Duration", "Duration.ZERO", "@ = @.plusMillis(number);"),
                Sort.value("LocalDate", "LocalDate.of(2020, 1, 1)", "@ = @.plusDays(number);"),
                Sort.object("Date", "new Date(0)", "@.setTime(@.getTime() + number);", "@.getTime()"));
    }

    /** A method that shows all of many. */
    private String shows(String type, String loop, Sort part) {
        String name = name("show");
        types.append("static String " + name + "(" + type
                + " all) { StringBuilder text = new StringBuilder(\"[\"); for (" + loop + ") { text.append("
                + part.show("one") + ").append(','); } return text.append(']').toString(); }\n");
        return name;
    }

    private Sort list(Sort part) {
        String type = "List<" + part.boxed() + ">";
        String show = shows(type, part.boxed() + " one : all", part) + "(@)";
        String made = name("list");
        String with = one(
                "new ArrayList<>()",
                "new LinkedList<>()",
                "new Vector<>()",
                "Collections.synchronizedList(new ArrayList<>())",
                "new CopyOnWriteArrayList<>()");
        types.append("static " + type + " " + made + "() { " + type + " made = " + with + "; made.add(" + part.fresh()
                + "); return made; }\n");
        String x = name("x");
        String inside = "{ " + part.boxed() + " " + x + " = @.get(0); " + part.step(x) + " @.set(0, " + x + "); }";
        return Sort.object(
                type,
                made + "()",
                one(inside, "if (@.size() > 5) { @.remove(0); } @.add(" + part.fresh() + "); " + inside),
                show);
    }

    private Sort deque(Sort part) {
        String type = "Deque<" + part.boxed() + ">";
        String made = name("deque");
        types.append("static " + type + " " + made + "() { " + type + " made = new "
                + one("ArrayDeque", "LinkedList", "ConcurrentLinkedDeque")
                + "<>(); made.add(" + part.fresh() + "); made.add(" + part.fresh() + "); return made; }\n");
        String x = name("x");
        return Sort.object(
                type,
                made + "()",
                "{ " + part.boxed() + " " + x + " = @.removeFirst(); " + part.step(x) + " @.addLast(" + x + "); }",
                shows(type, part.boxed() + " one : all", part) + "(@)");
    }

    private Sort map(Sort part) {
        String type = "Map<String, " + part.boxed() + ">";
        String entries = part.boxed() + " one : new TreeMap<>(all).values()";
        String kind = "<String, " + part.boxed() + ">";
        String fresh = one(
                "new HashMap" + kind + "()",
                "new HashMap" + kind + "()",
                "new TreeMap" + kind + "(Comparator.reverseOrder())",
                "new LinkedHashMap" + kind + "()",
                "new ConcurrentHashMap" + kind + "()",
                "new Hashtable" + kind + "()",
                "new ConcurrentSkipListMap" + kind + "()",
                "Collections.synchronizedMap(new HashMap" + kind + "())",
                "new TreeMap" + kind + "()");
        String x = name("x");
        String step = "{ " + part.boxed() + " " + x + " = @.computeIfAbsent(word, key -> " + part.fresh() + "); "
                + part.step(x) + " @.put(word, " + x + "); }";
        return Sort.object(
                type,
                fresh,
                one(step, step + " if (@.size() > 3) { @.remove(\"a\"); }"),
                shows(type, entries, part) + "(@)");
    }

    private Sort record(Sort part) {
        String name = name("Both");
        types.append("record " + name + "(" + part.type() + " part, int count) implements Serializable { }\n");
        String x = name("x");
        return new Sort(
                name,
                name,
                "new " + name + "(" + part.fresh() + ", 0)",
                "{ " + part.type() + " " + x + " = @.part(); " + part.step(x) + " @ = new " + name + "(" + x
                        + ", @.count() + 1); }",
                "(" + part.show("@.part()") + " + \"/\" + @.count())",
                false);
    }

    Sort helper(Sort part, String modifier) {
        String name = name("Helper");
        String above = name("Above");
        boolean inherits = random.nextBoolean();
        if (inherits) {
            types.append("static abstract class " + above
                    + " implements Serializable { private int calls; int called() { return ++calls; } }\n");
        }
        types.append("static class " + name + (inherits ? " extends " + above : " implements Serializable")
                + " { private " + modifier
                + part.type()
                + " part = " + part.fresh() + "; String on(String word, long number) { "
                + (modifier.isEmpty() || part.type().matches("[a-z]+")
                        ? ""
                        : "if (part == null) { part = " + part.fresh() + "; } ")
                + part.step("part") + " return \"\" + "
                + part.show("part") + (inherits ? " + called()" : "") + "; } String shown() { return \"\" + "
                + (modifier.isEmpty() ? part.show("part") : "\"\"") + "; } }\n");
        return Sort.object(name, "new " + name + "()", "@.on(word, number);", "@.shown()");
    }

    private Sort reference(Sort part) {
        String x = name("x");
        String box = "AtomicReference<" + part.boxed() + ">";
        return Sort.object(
                box,
                "new " + box + "(" + part.fresh() + ")",
                "{ " + part.boxed() + " " + x + " = @.get(); " + part.step(x) + " @.set(" + x + "); }",
                part.show("@.get()"));
    }

    /** What is hard: it cannot travel, or not so, or is not where it seems to be. */
    Sort hard() {
        Sort part = plainObject();
        return switch (random.nextInt(15)) {
            case 0, 1 -> function(part);
            case 2 -> optional(plain());
            case 3 -> iterator();
            case 4 -> helper(part, "transient ");
            case 5 -> ownForm(part);
            case 6 ->
                Sort.object(
                        "ThreadLocal<" + part.boxed() + ">",
                        "ThreadLocal.withInitial(() -> " + part.fresh() + ")",
                        part.step("@.get()"),
                        part.show("@.get()"));
            case 7 ->
                Sort.object(
                        "SoftReference<" + part.boxed() + ">",
                        "new SoftReference<" + part.boxed() + ">(" + part.fresh() + ")",
                        part.step("@.get()"),
                        part.show("@.get()"));
            case 8 -> enumWith(part);
            case 9 -> ownKeys();
            case 10 -> ownCollection();
            case 11 -> notSerial(part);
            case 12 -> counting();
            case 13 -> anonymous(part);
            default -> sentinel();
        };
    }

    private String functionType() {
        String name = name("On");
        types.append("interface " + name + " { String on(String word, long number); }\n");
        return name;
    }

    /** What it remembers is a variable that it has caught. */
    private Sort function(Sort part) {
        String type = functionType();
        String made = name("function");
        types.append("static " + type + " " + made + "() { final " + part.type() + " cell = " + part.fresh()
                + "; return (word, number) -> { "
                + part.step("cell") + " return \"\" + " + part.show("cell") + "; }; }\n");
        return Sort.object(type, made + "()", "", "@.on(word, number)");
    }

    private Sort anonymous(Sort part) {
        String type = functionType();
        String made = name("anonymous");
        types.append("static " + type + " " + made + "() { return new " + type + "() { private " + part.type()
                + " cell = " + part.fresh()
                + "; public String on(String word, long number) { " + part.step("cell") + " return \"\" + "
                + part.show("cell")
                + "; } }; }\n");
        return Sort.object(type, made + "()", "", "@.on(word, number)");
    }

    private Sort optional(Sort part) {
        String x = name("x");
        String type = "Optional<" + part.boxed() + ">";
        return new Sort(
                type,
                type,
                "Optional.of(" + part.fresh() + ")",
                "{ " + part.boxed() + " " + x + " = @.get(); " + part.step(x) + " @ = Optional.of(" + x + "); }",
                part.show("@.get()"),
                false);
    }

    private Sort iterator() {
        String fresh = one(
                "List.of(1, 2, 3, 4, 5).iterator()",
                "Stream.iterate(1, one -> one * 3 % 101).iterator()",
                "new ArrayList<>(List.of(4, 5, 6)).listIterator()");
        return new Sort(
                "Iterator<Integer>",
                "Iterator<Integer>",
                fresh,
                "if (!@.hasNext()) { @ = " + fresh + "; }",
                "(@.hasNext() ? @.next() : 0)",
                false);
    }

    private Sort ownForm(Sort part) {
        String name = name("Form");
        String form = one(
                        "private Object readResolve() { return ONE; } static final NAME ONE = new NAME();",
                        "private void writeObject(ObjectOutputStream out) throws IOException { calls = 0; out.defaultWriteObject(); }",
                        "private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException { "
                                + "in.defaultReadObject(); calls /= 2; }",
                        "private static final ObjectStreamField[] serialPersistentFields = {new ObjectStreamField(\"calls\", int.class)};",
                        "private Object writeReplace() { return new NAME(); }")
                .replace("NAME", name);
        types.append("static class " + name + " implements Serializable { " + form + " int calls; " + part.type()
                + " part = "
                + part.fresh()
                + "; String on(String word, long number) { if (part == null) { part = " + part.fresh() + "; } "
                + part.step("part")
                + " return ++calls + \" \" + " + part.show("part") + "; } }\n");
        return Sort.object(name, "new " + name + "()", "", "@.on(word, number)");
    }

    private Sort enumWith(Sort part) {
        String name = name("Single");
        types.append("enum " + name + " { ONE, TWO; " + part.type() + " part = " + part.fresh() + "; }\n");
        return new Sort(
                name,
                name,
                name + ".ONE",
                part.step("@.part") + one("", " @ = number % 3 == 0 ? " + name + ".TWO : " + name + ".ONE;"),
                part.show("@.part"),
                false);
    }

    /** Keys that are found by identity. */
    private Sort ownKeys() {
        String name = name("Key");
        types.append("static final class " + name + " implements Serializable { final String word; " + name
                + "(String word) { this.word = word; } "
                + "static final Map<String, " + name + "> ALL = new HashMap<>(); static " + name
                + " of(String word) { return ALL.computeIfAbsent(word, " + name + "::new); } }\n");
        String type = "Map<" + name + ", Integer>";
        return Sort.object(
                type,
                "new HashMap<" + name + ", Integer>()",
                "@.merge(" + name + ".of(word), 1, Integer::sum);",
                "@.get(" + name + ".of(word))");
    }

    private Sort ownCollection() {
        String name = name("Own");
        types.append("static final class " + name + " extends "
                + one("ArrayList<String>", "LinkedHashSet<String>", "ArrayDeque<String>")
                + " { int adds; @Override public boolean add(String word) { adds++; return super.add(word); } }\n");
        return Sort.object(name, "new " + name + "()", "@.add(word);", "(@.adds + \" \" + @.size())");
    }

    private Sort notSerial(Sort part) {
        String name = name("Plain");
        String below = name("Below");
        types.append("static class " + name + " { " + part.type() + " part = " + part.fresh() + "; }\n");
        types.append("static class " + below + " extends " + name + " implements Serializable { int calls; }\n");
        String type = one(name, below);
        return Sort.object(type, "new " + type + "()", part.step("@.part"), part.show("@.part"));
    }

    /** To ask it or to show it changes it. */
    private Sort counting() {
        String name = name("Asked");
        types.append("static final class " + name
                + " implements Serializable { int asked; @Override public boolean equals(Object other) { asked++; "
                + "return other == this; } @Override public int hashCode() { return asked++; } "
                + "@Override public String toString() { return \"no\" + asked++; } }\n");
        return Sort.object(name, "new " + name + "()", one("", "@.hashCode();", "@.equals(word);"), "@.toString()");
    }

    private Sort sentinel() {
        String name = name("END");
        types.append("static final Object " + name + " = "
                + one("\"end\"", "new int[0]", "List.of()", "Integer.valueOf(5000)", "new Object()") + ";\n");
        return new Sort(
                "Object",
                "Object",
                name,
                "@ = number % 4 == 0 ? " + name + " : number % 4 == 1 ? word : @;",
                "(@ == " + name + ")",
                false);
    }
}
