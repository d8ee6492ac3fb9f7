package nstorm.memory;

import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import nstorm.memory.Bytecode.Instruction;
import nstorm.memory.Origins.Kind;
import nstorm.memory.Origins.Origin;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Everything that one call of a bolt may run, followed until nothing new is found: which methods, with what from
 * where. Calls that cannot be followed are judged by {@link Known}, else as the worst case.
 */
final class Walk implements Machine.Effects {
    private static final int METHODS_MAX = 1500;
    private static final int DEPTH_MAX = 20;
    private static final int EFFECTS_BETWEEN_LOOKS = 16;
    private static final Set<String> COLLECTORS =
            Set.of("org/apache/storm/task/OutputCollector", "org/apache/storm/spout/SpoutOutputCollector");
    private static final BitSet NOTHING = new BitSet();
    /** No class names these as its own. */
    private static final Pattern ANONYMOUS = Pattern.compile("\\$\\d");

    private final Bytecode bytecode;
    private final Origins origins;
    private final String bolt;
    private final Map<String, LiveTypes> live;
    private final Findings findings;
    private final LookUps lookUps;
    private final Map<String, Machine> machines = new LinkedHashMap<>();
    private final Decisions decisions;
    /** Of the call that is followed right now; null for Storm's. */
    private String outermost;

    /** Static fields that are compared at the move. */
    private final BitSet compared = new BitSet();

    /** Static fields of the JDK's adders, whose sums are not compared. */
    private final BitSet adders = new BitSet();

    private final BitSet raised = new BitSet();
    /** What is being called right now, from the outermost on: code that is not read may call it again. */
    private final Set<Handle> calling = new HashSet<>();

    private int depth;
    private long untilCpuNanos;
    private int effects;

    /** @param live what the fields of the bolt hold, by name */
    Walk(Bytecode bytecode, Origins origins, String bolt, Map<String, LiveTypes> live, Findings findings) {
        this.bytecode = bytecode;
        this.origins = origins;
        this.bolt = bolt;
        this.live = live;
        this.findings = findings;
        lookUps = new LookUps(origins, findings, this::liveOf);
        decisions = new Decisions(origins, machines);
    }

    /** Follows a method of the bolt, until {@code untilCpuNanos} of this thread's CPU at most; false if there is none whose code is read. */
    boolean follow(String name, String type, List<BitSet> arguments, long untilCpuNanos) {
        Bytecode.Method entry = bytecode.method(bolt, name, type);
        if (entry == null) {
            return false;
        }
        List<BitSet> given = new ArrayList<>(arguments);
        given.add(0, of(Origins.BOLT));
        this.untilCpuNanos = untilCpuNanos;
        outermost = null;
        enter(entry, given);
        do {
            origins.changed = false;
            for (Machine machine : new ArrayList<>(machines.values())) {
                machine.run();
                checkLimits();
            }
        } while (origins.changed);
        decisions.judge(findings);
        return true;
    }

    /** Within a method too: one may make thousands of calls and changes, and each may lead through all that is known. */
    private void checkLimitsNowAndThen() {
        if (++effects % EFFECTS_BETWEEN_LOOKS == 0) {
            checkLimits();
        }
    }

    private void checkLimits() {
        if (cpuNanos() > untilCpuNanos || machines.size() > METHODS_MAX) {
            throw new Undecided("calls too much to look into");
        }
    }

    static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    static BitSet of(int origin) {
        BitSet one = new BitSet();
        one.set(origin);
        return one;
    }

    private BitSet enter(Bytecode.Method method, List<BitSet> arguments) {
        if (method.isNative()) {
            findings.undecided("runs native code, " + shown(method.owner(), method.name()));
            return NOTHING;
        }
        String key = method.owner() + "." + method.name() + method.type();
        Machine machine = machines.get(key);
        if (machine == null) {
            machine = new Machine(method, origins, this);
            machines.put(key, machine);
            origins.changed = true;
            if (method.names(Walk::isMemoryDatabase)) {
                findings.stays("has a database in the memory of its JVM");
            }
            if (Bytecode.comparesValuesByIdentity(method)) {
                findings.identity = true;
            }
        }
        machine.given(arguments);
        decisions.entered(key, outermost);
        BitSet returned = (BitSet) machine.returned.clone();
        returned.set(Origins.TICK, returned.get(Origins.TICK) || machine.asksForTicks);
        return returned;
    }

    /** The constants of an enum in which nothing can be kept. */
    private boolean isPlainEnum(String name) {
        Bytecode.Type type = bytecode.type(name);
        return type != null
                && (type.access() & Opcodes.ACC_ENUM) != 0
                && (type.access() & Opcodes.ACC_FINAL) != 0
                && !type.keeps();
    }

    private static boolean isMemoryDatabase(String text) {
        return text.matches("jdbc:(h2|hsqldb|derby):mem.*|jdbc:sqlite:.*");
    }

    @Override
    public BitSet load(BitSet objectOrNull, Instruction field) {
        Type type = Type.getType(field.type());
        boolean reference = type.getSort() == Type.OBJECT || type.getSort() == Type.ARRAY;
        if (objectOrNull == null && !Known.isLogging(type.getInternalName())) {
            readsStatic(field, reference && !Known.isConstant(type.getInternalName()));
        }
        boolean value = !reference || Known.isConstant(type.getInternalName());
        boolean ofEnum = objectOrNull != null && isEnum(field.owner());
        if (ofEnum) {
            // A constant is the JVM's, wherever it comes from.
            readsStatic(field, !value && !Known.isCallback(type.getInternalName()));
        }
        if (objectOrNull == null && (value || isPlainEnum(field.owner()))) {
            return NOTHING;
        } else if (value) {
            return loadValue(objectOrNull, field);
        }
        if (objectOrNull == null && Bytecode.isOfTheJdk(field.owner())) {
            return NOTHING;
        } else if (objectOrNull == null) {
            int found = ofStatic(field.owner(), field.name());
            adders.set(
                    found,
                    Known.isAdder(type.getInternalName())
                            || Known.isAdder(origins.get(found).type()));
            return origins.within(of(found));
        }
        BitSet loaded = ofEnum ? origins.within(of(ofStatic(field.owner(), field.name()))) : new BitSet();
        objectOrNull.stream().forEach(origin -> {
            if (origin != Origins.BOLT) {
                loaded.or(origin == Origins.TUPLE ? NOTHING : origins.within(of(origin)));
            } else if (bytecode.isA(bolt, field.owner()) && !isGiven(field.name(), type.getInternalName())) {
                loaded.or(origins.within(of(origins.field(field.name()))));
                findings.read(field.name(), live.get(field.name()));
            }
            if (COLLECTORS.contains(type.getInternalName())) {
                loaded.set(Origins.COLLECTOR);
            }
        });
        return loaded;
    }

    private BitSet loadValue(BitSet object, Instruction field) {
        BitSet loaded = origins.valuesOf(object);
        if (object.get(Origins.BOLT)) {
            loaded.set(origins.valuesOfField(field.name()));
        }
        return loaded;
    }

    /** What others of the JVM may fill or change; the static fields of the bolt's own class are compared at the move. */
    private void readsStatic(Instruction field, boolean mayChange) {
        Bytecode.Type owner = bytecode.type(field.owner());
        boolean isConstantOfEnum = field.type().equals("L" + field.owner() + ";") && isEnum(field.owner());
        if (owner != null
                && !isConstantOfEnum
                && !owner.name().startsWith("org/apache/storm/")
                && (mayChange && !owner.immutable().contains(field.name())
                        || !owner.constants().contains(field.name()))) {
            String why = "reads " + shown(field.owner(), field.name()) + ", which others of its JVM may change";
            if (!isOwn(field.owner())) {
                findings.staysWhileExecuting(why);
            } else if (!owner.constants().contains(field.name()) || isApart(owner) && Known.isFilled(field.type())) {
                findings.stopsFirst(why);
            }
        }
    }

    private boolean isEnum(String name) {
        Bytecode.Type type = bytecode.type(name);
        return type != null && (type.access() & Opcodes.ACC_ENUM) != 0;
    }

    /** Whether its static fields, or constants, are compared at the move: the bolt's classes, its interfaces, and what is within it. */
    private boolean isOwn(String owner) {
        boolean within =
                owner.startsWith(bolt + "$") && !ANONYMOUS.matcher(owner).find();
        return bytecode.type(owner) != null && (within || bytecode.isA(bolt, owner));
    }

    /** Whether it is no class of the bolt itself: who writes there may be a bolt of another class. */
    private boolean isApart(Bytecode.Type owner) {
        return (owner.access() & Opcodes.ACC_INTERFACE) != 0 || !bytecode.isA(bolt, owner.name());
    }

    private int ofStatic(String owner, String name) {
        Bytecode.Type type = bytecode.type(owner);
        int found =
                origins.ofStatic(owner, name, type == null ? null : type.made().get(name));
        // At the move it is compared, so what is undecided is decided then.
        if (isOwn(owner)) {
            compared.set(found);
        }
        return found;
    }

    /** A user's own collector may keep what Storm's hands on. */
    private boolean isGiven(String field, String type) {
        LiveTypes value = live.get(field);
        return Known.isGiven(type)
                && (value == null
                        || value.empty()
                        || value.type().startsWith("org/apache/storm/")
                        || Known.isGiven(value.type()));
    }

    @Override
    public void store(BitSet objectOrNull, Instruction field, BitSet value) {
        if (objectOrNull == null || isEnum(field.owner())) {
            change(of(ofStatic(field.owner(), field.name())), value);
            return;
        }
        BitSet others = (BitSet) objectOrNull.clone();
        others.clear(Origins.BOLT);
        if (objectOrNull.get(Origins.BOLT) && bytecode.isA(bolt, field.owner())) {
            // The field itself is another one now, whatever it had been set to before.
            change(origins.field(field.name()), value, true);
        }
        change(others, value);
    }

    /** These objects may be others from now on, and hold what they did not. */
    private void change(BitSet objects, BitSet value) {
        checkLimitsNowAndThen();
        objects.stream().forEach(origin -> change(origin, value, false));
    }

    private void change(int origin, BitSet value, boolean itself) {
        origins.hold(origin, value);
        Origin of = origins.get(origin);
        BitSet kept = origins.closure(value);
        if (of.kind() == Kind.BOLT) {
            findings.undecided("is changed by code that cannot be looked into");
        } else if (of.kind() == Kind.STATIC && kept.get(Origins.COLLECTOR)) {
            findings.stays("puts its collector into " + of.name() + ", for the whole JVM");
        } else if (of.kind() == Kind.STATIC || of.kind() == Kind.FIELD && (itself || !isShared(origin))) {
            findings.changed(of, kept.get(Origins.TUPLE), of.kind() == Kind.STATIC && kept.get(Origins.BOLT));
            Origin host = origins.hostOf(kept);
            if (host != null) {
                findings.staysWhileExecuting(
                        "keeps " + host.name() + " in " + of.name() + ", which means nothing in another JVM");
            }
        }
    }

    /** Whether the bolt has it from a static field: then it is the JVM's, and found there if it is changed. */
    private boolean isShared(int field) {
        return origins.held(field).stream().anyMatch(one -> origins.is(one, Kind.STATIC));
    }

    @Override
    public BitSet loadElement(BitSet array) {
        return origins.within(array);
    }

    @Override
    public BitSet values(BitSet of) {
        return origins.valuesOf(of);
    }

    @Override
    public void compare(BitSet one, BitSet other) {
        lookUps.compare(one, other);
    }

    @Override
    public void storeElement(BitSet array, BitSet value) {
        change(array, value);
    }

    @Override
    public BitSet make(String place, String typeOrNull) {
        return of(origins.made(place, typeOrNull));
    }

    @Override
    public void raise(BitSet exception) {
        origins.grow(raised, exception);
    }

    @Override
    public BitSet raised() {
        return raised;
    }

    @Override
    public BitSet dynamic(String place, Instruction call, List<BitSet> captured) {
        if (call.lambda() != null) {
            int made = origins.lambda(place, call.lambda(), captured.size());
            for (int i = 0; i < captured.size(); i++) {
                origins.grow(origins.get(made).captured().get(i), captured.get(i));
            }
            origins.hold(made, union(captured));
            return of(made);
        }
        readsBack(captured);
        Origin host = origins.hostOf(union(captured));
        if (host != null) {
            return of(origins.host(host.name()));
        }
        String by = call.owner().substring(call.owner().lastIndexOf('/') + 1);
        if (!Set.of("StringConcatFactory", "ObjectMethods", "SwitchBootstraps").contains(by)) {
            findings.undecided("calls by " + by);
        }
        return valuesOf(captured);
    }

    @Override
    public BitSet call(String place, Instruction call, List<BitSet> arguments) {
        checkLimitsNowAndThen();
        if (depth > DEPTH_MAX) {
            throw new Undecided("calls itself through " + shown(call.owner(), call.name()));
        }
        outermost = depth == 0 ? place : outermost;
        depth++;
        try {
            if (Known.isCollector(call.owner())) {
                decisions.act(outermost, union(arguments.subList(1, arguments.size())));
            }
            boolean isStatic = call.opcode() == Opcodes.INVOKESTATIC;
            lookUps.call(call, arguments, isStatic, bytecode.type(call.owner()) != null);
            BitSet result = known(place, call, arguments);
            return isValue(Type.getReturnType(call.type())) ? answered(call, arguments, result) : result;
        } finally {
            depth--;
        }
    }

    private static boolean isValue(Type type) {
        return type.getSort() < Type.ARRAY && type.getSort() != Type.VOID
                || type.getSort() == Type.OBJECT && Known.isConstant(type.getInternalName());
    }

    /** A number or a text is made of what was given here. What other calls of the method have given shows less. */
    private BitSet answered(Instruction call, List<BitSet> arguments, BitSet result) {
        if (call.owner().equals("org/apache/storm/utils/TupleUtils")) {
            return NOTHING;
        }
        BitSet values = valuesOf(arguments);
        if (values.isEmpty()) {
            return result;
        }
        values.set(Origins.TICK, values.get(Origins.TICK) || result.get(Origins.TICK));
        return or(origins.withoutValues(result), values);
    }

    private BitSet valuesOf(List<BitSet> all) {
        BitSet values = new BitSet();
        all.forEach(one -> values.or(origins.valuesOf(one)));
        return values;
    }

    private BitSet known(String place, Instruction call, List<BitSet> arguments) {
        String owner = call.owner();
        notice(call, arguments);
        String host = Known.hostValue(owner, call.name());
        if (host != null && Type.getReturnType(call.type()).getSort() != Type.VOID) {
            return of(origins.host(host));
        } else if (owner.equals("java/lang/Long")
                && call.name().equals("valueOf")
                && origins.hostOf(arguments.get(0)) != null) {
            return arguments.get(0);
        }
        if (owner.equals("java/lang/Enum") && call.name().equals("valueOf")) {
            return of(ofStatic(owner, call.name()));
        }
        if (Known.startsThreads(owner, call.name())) {
            BitSet result = result(place, call, arguments, NOTHING);
            if (call.name().equals("<init>")) {
                arguments.get(0).stream().forEach(thread -> origins.hold(thread, union(arguments)));
            }
            BitSet reached = origins.closure(union(arguments));
            reached.or(result);
            findings.startsThread(shown(owner, call.name()), reached);
            return result;
        }
        if (Known.runsUnknown(owner, call.name())) {
            findings.staysWhileExecuting("calls by reflection, " + shown(owner, call.name()));
            findings.undecided("calls by reflection, " + shown(owner, call.name()));
        } else if (Known.isReflection(owner, call.name())) {
            findings.undecided("calls by reflection, " + shown(owner, call.name()));
        }
        boolean exact = call.opcode() == Opcodes.INVOKESTATIC || call.opcode() == Opcodes.INVOKESPECIAL;
        if (Known.isOutlet(owner)
                && (exact || arguments.get(0).stream().noneMatch(one -> origins.is(one, Kind.FIELD)))) {
            return Known.isTuple(owner) ? origins.valuesOf(arguments.get(0)) : NOTHING;
        }
        boolean known = !Bytecode.isOfTheJdk(owner)
                && (Known.isReader(owner, call.name())
                        || Known.reads(owner, call.name())
                        || owner.equals("org/apache/storm/utils/Utils"));
        if (known) {
            return foreign(place, call, arguments);
        }
        if (exact) {
            Bytecode.Method target = bytecode.method(owner, call.name(), call.type());
            return target != null ? enter(target, arguments) : foreign(place, call, arguments);
        }
        return dispatched(place, call, arguments);
    }

    /** What a call does apart from its arguments and its result. */
    private void notice(Instruction call, List<BitSet> arguments) {
        String owner = call.owner();
        String name = call.name();
        String shown = shown(owner, name);
        BitSet receiver = arguments.isEmpty() ? NOTHING : arguments.get(0);
        if (Known.isTaskData(owner, name)) {
            findings.undecided("reaches data of its task (" + shown + ")");
        } else if (Known.marksThread(owner, name)) {
            findings.staysWhileExecuting("marks its thread (" + shown + ")");
        } else if (Known.isOfTheHost(owner, name, call.type())) {
            findings.staysWhileExecuting("uses files or settings of its host (" + shown + ")");
        } else if (Known.actsOutside(owner, name, call.type())) {
            findings.actsOutside(shown);
        } else if (Known.readsMetric(owner, name)) {
            findings.staysWhileExecuting("reads back what a metric has counted (" + shown + ")");
        } else if (Known.isAdder(owner) && !Known.adds(owner, name)) {
            receiver.stream()
                    .filter(one -> origins.is(one, Kind.STATIC))
                    .forEach(one -> findings.readsBack(origins.get(one).name()));
        }
    }

    /** Code that is not read may ask an adder for its sum. */
    private void readsBack(List<BitSet> given) {
        BitSet found = origins.closure(union(given));
        found.and(adders);
        found.stream().forEach(one -> findings.readsBack(origins.get(one).name()));
    }

    private BitSet dispatched(String place, Instruction call, List<BitSet> arguments) {
        BitSet receiver = arguments.get(0);
        BitSet result = new BitSet();
        Set<Bytecode.Method> targets = targets(call, receiver);
        targets.forEach(target -> result.or(enter(target, arguments)));
        boolean followed = !targets.isEmpty();
        List<BitSet> others = arguments.subList(1, arguments.size());
        for (int origin : receiver.stream().toArray()) {
            if (origins.get(origin).lambda() != null) {
                result.or(invoke(
                        place, origins.get(origin).lambda(), origins.get(origin).captured(), others));
                followed = true;
            } else if (origins.is(origin, Kind.FIELD)
                    && (!Bytecode.isOfTheJdk(call.owner()) || Known.isCallback(call.owner()))) {
                for (Handle lambda : liveOf(origin).lambdas()) {
                    result.or(invoke(place, lambda, List.of(), fill(lambda, of(origin), others)));
                    followed = true;
                }
                // A field that holds nothing calls nothing.
                followed |= liveOf(origin).empty() && origins.held(origin).isEmpty();
            }
        }
        boolean only = followed && receiver.stream().noneMatch(one -> mayBeUnread(one, call.owner()));
        return only || followed && !Bytecode.isOfTheJdk(call.owner())
                ? result
                : or(result, foreign(place, call, arguments));
    }

    /** Whether what comes from here may be an object of a class that is not read. */
    private boolean mayBeUnread(int origin, String called) {
        Origin of = origins.get(origin);
        return switch (of.kind()) {
            case BOLT, TUPLE, COLLECTOR, HOST, VALUE -> false;
            case STATIC -> true;
            case FIELD ->
                !Known.isCallback(called)
                        || liveOf(origin).types().isEmpty()
                                && liveOf(origin).lambdas().isEmpty();
            case MADE -> of.lambda() == null && bytecode.type(of.type()) == null;
        };
    }

    private LiveTypes liveOf(int field) {
        LiveTypes known = live.get(origins.get(field).name());
        return known == null ? LiveTypes.unknown() : known;
    }

    private Set<Bytecode.Method> targets(Instruction call, BitSet receiver) {
        Set<String> types = new HashSet<>();
        receiver.stream().forEach(origin -> {
            Origin of = origins.get(origin);
            if (of.kind() == Kind.BOLT) {
                types.add(bolt);
            } else if (of.kind() == Kind.FIELD) {
                types.addAll(liveOf(origin).types());
            } else if (of.type() != null) {
                types.add(of.type());
            }
        });
        Set<Bytecode.Method> targets = new HashSet<>();
        for (String type : types) {
            Bytecode.Method target = bytecode.type(type) != null && bytecode.isA(type, call.owner())
                    ? bytecode.method(type, call.name(), call.type())
                    : null;
            if (target != null) {
                targets.add(target);
            }
        }
        Bytecode.Method declared = bytecode.method(call.owner(), call.name(), call.type());
        if (targets.isEmpty()
                && declared != null
                && (isFinal(declared)
                        || origins.withoutValues(receiver).stream().allMatch(one -> origins.is(one, Kind.MADE)))) {
            targets.add(declared);
        }
        return targets;
    }

    private boolean isFinal(Bytecode.Method method) {
        int any = Opcodes.ACC_FINAL | Opcodes.ACC_PRIVATE;
        return (method.access() & any) != 0 || (bytecode.type(method.owner()).access() & Opcodes.ACC_FINAL) != 0;
    }

    /** A call of what is not read. */
    private BitSet foreign(String place, Instruction call, List<BitSet> arguments) {
        boolean isStatic = call.opcode() == Opcodes.INVOKESTATIC;
        String owner = foreignOwner(call.owner(), call.name());
        String shown = shown(owner, call.name());
        BitSet receiver = isStatic ? NOTHING : arguments.get(0);
        readsBack(Known.adds(owner, call.name()) ? arguments.subList(1, arguments.size()) : arguments);
        BitSet called = callBack(place, call, arguments, shown);
        // What is only joined as a text does not go on as an object.
        boolean joins = !isStatic && Known.joinsTexts(owner);
        List<BitSet> going = joins ? List.of(or(receiver, valuesOf(arguments))) : arguments;
        if (joins) {
            receiver.stream()
                    .filter(one -> origins.is(one, Kind.MADE))
                    .forEach(one -> origins.hold(one, valuesOf(arguments)));
        }
        List<BitSet> others = isStatic ? going : going.subList(1, going.size());
        BitSet given = or(union(isStatic ? others : kept(owner, call, others)), called);
        boolean reads = Known.isReader(owner, call.name())
                || (isStatic ? Known.readsStatic(owner, call.name()) : Known.reads(owner, call.name()));
        boolean unread = !Bytecode.isOfTheJdk(owner) && !reads && !owner.startsWith("org/apache/storm/");
        BitSet reached = unread ? origins.closure(or(receiver, given)) : NOTHING;
        if (reached.get(Origins.BOLT)) {
            findings.stays("hands itself to " + shown + ", whose code is not read");
        }
        reached.stream()
                .filter(one -> origins.is(one, Kind.STATIC) && !compared.get(one))
                .forEach(one -> change(one, given, false));
        if (unread && isEnum(call.owner()) && bytecode.type(call.owner()).keeps()) {
            change(of(ofStatic(call.owner(), call.name())), given);
        }
        if (unread && findings.mindsCallOf(reached, origins)) {
            findings.undecided("calls " + shown + ", which cannot be looked into");
        } else if (unread && !findings.isPreparing()) {
            findings.undecided("calls " + shown + " of a library, whose code is not read");
        } else if (owner.startsWith("java/util/stream/") && call.name().equals("collect")) {
            change(supplied(place, arguments), given);
        } else if (Known.adds(owner, call.name()) || Known.draws(owner)) {
            BitSet own = (BitSet) receiver.clone();
            receiver.stream().filter(one -> origins.is(one, Kind.STATIC)).forEach(own::clear);
            change(own, given);
        } else if (!reads) {
            // What a function does to itself its objects show.
            change(Known.isCallback(owner) ? withoutFields(receiver) : receiver, given);
            if (isStatic || !Known.onlyKeeps(owner)) {
                handOn(others, given, shown, Bytecode.isOfTheJdk(owner));
            }
        }
        return result(place, call, going, called);
    }

    private BitSet withoutFields(BitSet receiver) {
        BitSet others = (BitSet) receiver.clone();
        receiver.stream().filter(one -> origins.is(one, Kind.FIELD)).forEach(one -> {
            others.clear(one);
            findings.undecided("calls what " + origins.get(one).name() + " holds");
        });
        return others;
    }

    /** A collection calls the functions that it is given, but keeps none: they have their own types, what it keeps has none. */
    private static List<BitSet> kept(String owner, Instruction call, List<BitSet> others) {
        Type[] types = Type.getArgumentTypes(call.type());
        List<BitSet> kept = new ArrayList<>();
        for (int i = 0; i < others.size(); i++) {
            boolean function = types[i].getSort() == Type.OBJECT
                    && types[i].getInternalName().startsWith("java/util/function/");
            if (!function || !owner.startsWith("java/util/") || call.name().equals("<init>")) {
                kept.add(others.get(i));
            }
        }
        return kept;
    }

    private void handOn(List<BitSet> others, BitSet given, String to, boolean ofTheJdk) {
        for (BitSet argument : others) {
            BitSet reached = origins.closure(argument);
            if (reached.get(Origins.BOLT)) {
                findings.undecided("hands itself to " + to);
            }
            if (reached.get(Origins.TUPLE)) {
                findings.handsTupleTo(to, ofTheJdk);
            }
            BitSet more = (BitSet) argument.clone();
            more.clear(Origins.BOLT);
            more.clear(Origins.TUPLE);
            change(more, given);
        }
    }

    /** Where a method that is not read comes from: of a user's own map, the JDK's. */
    private String foreignOwner(String owner, String name) {
        if (bytecode.type(owner) == null) {
            return owner;
        }
        for (String parent : bytecode.foreignParents(owner)) {
            if (Bytecode.isOfTheJdk(parent)) {
                for (Method method : Bytecode.jdk(parent).getMethods()) {
                    if (method.getName().equals(name)) {
                        return parent;
                    }
                }
            }
        }
        return owner;
    }

    private BitSet result(String place, Instruction call, List<BitSet> arguments, BitSet called) {
        Type type = Type.getReturnType(call.type());
        boolean reference = type.getSort() == Type.OBJECT || type.getSort() == Type.ARRAY;
        if (!reference || Known.isConstant(type.getInternalName())) {
            return NOTHING;
        }
        BitSet all = or(union(arguments), called);
        int made = origins.made(place, null);
        origins.hold(made, all);
        BitSet result = Known.copies(call.name()) ? of(made) : or(of(made), all);
        return origins.within(result);
    }

    /** Code that is not read may call what it is given: lambdas, and objects of the user's classes. */
    private BitSet callBack(String place, Instruction call, List<BitSet> arguments, String shown) {
        BitSet all = origins.closure(union(arguments));
        BitSet plain = new BitSet();
        union(arguments).stream()
                .filter(one -> origins.get(one).lambda() == null)
                .forEach(plain::set);
        BitSet given = origins.closure(plain);
        BitSet returned = new BitSet();
        for (int origin : all.stream().toArray()) {
            Origin of = origins.get(origin);
            if (of.lambda() != null) {
                returned.or(invoke(place, of.lambda(), of.captured(), fill(of.lambda(), given)));
            } else if (of.kind() == Kind.MADE && bytecode.type(of.type()) != null) {
                overriding(of.type()).forEach(method -> returned.or(enter(method, fill(method, of(origin), given))));
            }
        }
        Type[] types = Type.getArgumentTypes(call.type());
        int first = arguments.size() - types.length;
        for (int i = 0; i < types.length; i++) {
            boolean callback = types[i].getSort() == Type.OBJECT && Known.isCallback(types[i].getInternalName());
            for (int origin : callback ? arguments.get(first + i).stream().toArray() : new int[0]) {
                returned.or(callField(place, origin, given, shown));
            }
        }
        if (first == 1 && Known.isCallback(call.owner())) {
            for (int origin : arguments.get(0).stream().toArray()) {
                returned.or(callField(place, origin, given, shown));
            }
        }
        return returned;
    }

    /** What a stream is collected into: what the functions return that take nothing. */
    private BitSet supplied(String place, List<BitSet> arguments) {
        BitSet supplied = new BitSet();
        origins.closure(union(arguments)).stream()
                .mapToObj(origins::get)
                .filter(one -> one.lambda() != null
                        && takes(one.lambda()) == one.captured().size())
                .forEach(one -> supplied.or(invoke(place, one.lambda(), one.captured(), List.of())));
        return supplied;
    }

    private static int takes(Handle method) {
        boolean isStatic = method.getTag() == Opcodes.H_INVOKESTATIC || method.getTag() == Opcodes.H_NEWINVOKESPECIAL;
        return Type.getArgumentTypes(method.getDesc()).length + (isStatic ? 0 : 1);
    }

    /** Calls what a field holds, which is a lambda or an object of a user's class; else it is not known what runs. */
    private BitSet callField(String place, int origin, BitSet given, String shown) {
        Origin of = origins.get(origin);
        if (of.kind() != Kind.FIELD && of.kind() != Kind.STATIC) {
            return NOTHING;
        }
        LiveTypes value = of.kind() == Kind.FIELD ? liveOf(origin) : LiveTypes.unknown();
        boolean heldHere =
                origins.held(origin).stream().anyMatch(one -> origins.get(one).lambda() != null);
        if (value.lambdas().isEmpty() && value.types().isEmpty() && !value.empty() && !heldHere) {
            findings.undecided("calls what " + of.name() + " holds (" + shown + ")");
        }
        BitSet returned = new BitSet();
        for (Handle lambda : value.lambdas()) {
            returned.or(invoke(place, lambda, List.of(), fill(lambda, or(of(origin), given))));
        }
        for (String type : value.types()) {
            overriding(type).forEach(method -> returned.or(enter(method, fill(method, of(origin), given))));
        }
        return returned;
    }

    /** The methods of a user's class that the JDK or Storm can call, because they know of them. */
    private List<Bytecode.Method> overriding(String type) {
        Set<String> names = new HashSet<>();
        for (String parent : bytecode.foreignParents(type)) {
            if (Bytecode.isOfTheJdk(parent)) {
                for (Class<?> at = Bytecode.jdk(parent); at != null; at = at.getSuperclass()) {
                    for (Method method : at.getDeclaredMethods()) {
                        names.add(method.getName());
                    }
                }
                for (Method method : Bytecode.jdk(parent).getMethods()) {
                    names.add(method.getName());
                }
            }
        }
        List<Bytecode.Method> found = new ArrayList<>();
        for (Bytecode.Type at = bytecode.type(type); at != null; at = bytecode.type(at.superName())) {
            at.methods().values().stream()
                    .filter(one -> one.hasCode() && !one.isStatic() && names.contains(one.name()))
                    .forEach(found::add);
        }
        return found;
    }

    /** Calls the method behind a lambda or a method reference. */
    private BitSet invoke(String place, Handle to, List<BitSet> captured, List<BitSet> free) {
        if (!calling.add(to)) {
            return NOTHING;
        }
        try {
            return invokeOnce(place, to, captured, free);
        } finally {
            calling.remove(to);
        }
    }

    private BitSet invokeOnce(String place, Handle to, List<BitSet> captured, List<BitSet> free) {
        List<BitSet> arguments = new ArrayList<>(captured);
        arguments.addAll(free);
        boolean isStatic = to.getTag() == Opcodes.H_INVOKESTATIC;
        int takes = Type.getArgumentTypes(to.getDesc()).length + (isStatic ? 0 : 1);
        String at = place + "->" + to.getName();
        if (to.getTag() == Opcodes.H_NEWINVOKESPECIAL) {
            BitSet made = make(at, to.getOwner());
            arguments.add(0, made);
            call(at, instruction(Opcodes.INVOKESPECIAL, to), sized(arguments, takes));
            return made;
        }
        int opcode = switch (to.getTag()) {
            case Opcodes.H_INVOKESTATIC -> Opcodes.INVOKESTATIC;
            case Opcodes.H_INVOKESPECIAL -> Opcodes.INVOKESPECIAL;
            default -> Opcodes.INVOKEVIRTUAL;
        };
        return call(at, instruction(opcode, to), sized(arguments, takes));
    }

    private static Instruction instruction(int opcode, Handle to) {
        return new Instruction(opcode, to.getOwner(), to.getName(), to.getDesc(), null);
    }

    private static List<BitSet> sized(List<BitSet> arguments, int takes) {
        List<BitSet> sized = new ArrayList<>(arguments.subList(0, Math.min(takes, arguments.size())));
        while (sized.size() < takes) {
            sized.add(NOTHING);
        }
        return sized;
    }

    /** As many of the same argument as any lambda may take. */
    private static List<BitSet> fill(Handle lambda, BitSet given) {
        List<BitSet> all = new ArrayList<>();
        for (int i = 0; i <= Type.getArgumentTypes(lambda.getDesc()).length; i++) {
            all.add(given);
        }
        return all;
    }

    /** What a lambda in a field has captured comes first, and how much that is, is not known: each may be any. */
    private static List<BitSet> fill(Handle lambda, BitSet captured, List<BitSet> others) {
        return fill(lambda, or(captured, union(others)));
    }

    private static List<BitSet> fill(Bytecode.Method method, BitSet object, BitSet given) {
        List<BitSet> all = new ArrayList<>(List.of(object));
        for (int i = 0; i < Type.getArgumentTypes(method.type()).length; i++) {
            all.add(given);
        }
        return all;
    }

    private static BitSet union(List<BitSet> values) {
        BitSet all = new BitSet();
        values.forEach(all::or);
        return all;
    }

    private static BitSet or(BitSet one, BitSet other) {
        BitSet both = (BitSet) one.clone();
        both.or(other);
        return both;
    }

    private static String shown(String owner, String name) {
        return owner.substring(owner.lastIndexOf('/') + 1) + "." + name;
    }
}
