package nstorm.proof;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import nstorm.memory.BoltMemory;
import nstorm.memory.Declared;
import nstorm.memory.MoveWay;
import nstorm.memory.Reviewed;
import nstorm.memory.Reviewed.How;
import nstorm.proof.Fingerprint.Kind;
import nstorm.proof.Fingerprint.Root;
import nstorm.state.BoltState;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateClasses;
import nstorm.state.Travelling;
import org.apache.storm.task.TopologyContext;

/**
 * What one executor's bolts remember since they were prepared: how they may leave this JVM, and whether what came is what left. The code
 * shows what to expect; the objects at the moment of the move decide.
 *
 * <p>All but {@link #read} and {@link #way} is to be called where nothing else touches the bolts.
 */
public final class Memory {
    /** The fields that were seen changed, by class: the next executor of the class takes them along at once. */
    private static final Map<Class<?>, Set<String>> CHANGED = new ConcurrentHashMap<>();

    private final String component;
    private final List<Object> taskObjects;
    private final List<TopologyContext> contexts;
    private final Object[] given;
    private final Declared declared;
    /** What a reviewed class makes again. */
    private final Set<String> madeAgain;
    /** Null if nothing was reviewed, or something else is declared. */
    private final Reviewed.Verdict verdict;
    /**
     * Whether it is known what may be forgotten, so that nothing is left to prove. It is declared, or, for a spout, known from a review.
     */
    private final boolean trusted;

    private Subject subject;
    private String lastChange;
    private volatile Fingerprint first;
    private volatile String unseen = "it was not looked at after it was prepared";
    private volatile boolean unsure = true;
    private volatile MoveWay way = new MoveWay("it is not known yet what it keeps");

    /**
     * @param taskObjects the executor's bolts as Storm has built them
     * @param contexts of its tasks
     * @param given what else every copy gets, such as its configuration
     */
    public Memory(
            String component,
            List<Object> taskObjects,
            List<TopologyContext> contexts,
            Declared declared,
            Object... given) {
        this.component = component;
        this.taskObjects = taskObjects;
        this.contexts = contexts;
        this.declared = declared;
        this.given = given;
        madeAgain = Reviewed.madeAgain(taskObjects.get(0));
        verdict = declared.isSilent(component) ? Reviewed.of(taskObjects.get(0)) : null;
        trusted = declared.trusts(component) || verdict != null && verdict.how() == How.SPOUT;
    }

    /** Looks at the bolts, which have been prepared and have taken no tuple. Never throws: what cannot be looked at stays. */
    public void prepared() {
        try {
            subject = Subject.of(taskObjects, contexts, given);
            first = Fingerprint.of(subject, madeAgain, null).forgettingObjects();
            unseen = null;
        } catch (RuntimeException | LinkageError | StackOverflowError | OutOfMemoryError e) {
            unseen = "it cannot be looked into (" + e + ")";
        }
    }

    /** Reads the bolts' code, which takes up to seconds of CPU; on any thread. Never throws. */
    public void read() {
        if (declared.isLive(component)) {
            way = new MoveWay(null);
        } else if (unseen != null && !trusted) {
            way = new MoveWay(unseen);
        } else {
            Object bolt = taskObjects.get(0);
            if (verdict == null) {
                BoltMemory code = BoltMemory.of(bolt);
                unsure = code.unsure() != null || code.stays() != null;
            }
            String holds = trusted ? null : first.obstacle();
            MoveWay guess = MoveWay.of(component, bolt, declared, seenChanged(), holds);
            boolean overlaps = guess.pinned() == null && !trusted;
            way = overlaps && first.mayChange()
                    ? MoveWay.stopping("has objects that could keep something")
                    : classes().naming(guess, bolt);
        }
    }

    /** The same of a spout: null is what it stays for if it may be closed here and opened elsewhere. */
    public void readSpout() {
        if (trusted) {
            way = new MoveWay(null);
            return;
        }
        Set<String> changed = seenChanged();
        String seen = unseen != null
                ? unseen
                : first.obstacle() != null
                        ? first.obstacle()
                        : changed.isEmpty() ? null : "keeps something in " + MoveWay.in(changed);
        way = MoveWay.ofSpout(component, taskObjects.get(0), seen);
    }

    private Set<String> seenChanged() {
        return subject == null ? Set.of() : CHANGED.getOrDefault(subject.types().get(0), Set.of());
    }

    /** How they move, as far as is known by now. */
    public MoveWay way() {
        return way;
    }

    /**
     * Whether two copies may work at once: null, or what the bolts remember, with its path. They then move by another way from now on, or stay.
     */
    public String changedSincePrepared() {
        if (trusted) {
            return null;
        }
        try {
            Set<String> changed = changed(look(Set.of()));
            return changed.isEmpty() ? null : lastChange;
        } catch (IOException e) {
            return e.getMessage();
        }
    }

    /**
     * Writes what the bolts remember: the fields that their code names, and every other that has changed.
     *
     * @param firstOrNull what of it has gone ahead
     * @throws IOException if it cannot travel, or something has changed that cannot; the message names what and where
     */
    public Departure depart(FirstPass firstOrNull) throws IOException {
        try {
            return departing(firstOrNull);
        } catch (StackOverflowError e) {
            throw new IOException("leads to objects in too long a chain to be written");
        }
    }

    private Departure departing(FirstPass firstOrNull) throws IOException {
        Set<String> fields = new TreeSet<>(way.state() == null ? Set.of() : way.state());
        if (trusted) {
            return new Departure(fields, BoltState.save(taskObjects, fields, firstOrNull, null, classes()), () -> null);
        }
        Fingerprint now = look(fields);
        fields.addAll(changed(now));
        for (String name : fields) {
            if (subject.isAmbiguous(name)) {
                throw new IOException("has two fields of the name " + name);
            }
        }
        Travelling rules = new Travelling(subject.types().get(0));
        if (firstOrNull == null) {
            TravelProof proof = TravelProof.of(subject, fields, now.seen());
            while (takesAlong(proof, now, fields)) {
                proof = TravelProof.of(subject, fields, now.seen());
            }
            TravelProof whole = checked(proof, fields, now, rules);
            return new Departure(fields, BoltState.save(taskObjects, fields, null, rules, classes()), () -> whole);
        }
        // Large maps have gone ahead: what takes long is done while the rest is on its way.
        return new Departure(
                fields,
                BoltState.save(taskObjects, fields, firstOrNull, rules, classes()),
                () -> checked(TravelProof.of(subject, fields, now.seen()), fields, now, rules));
    }

    /** What shares objects with what travels also travels. */
    private boolean takesAlong(TravelProof proof, Fingerprint others, Set<String> fields) {
        Set<String> more = new TreeSet<>();
        for (int index : proof.shared()) {
            if (others.root(index).kind() == Kind.FIELD) {
                more.add(others.root(index).name());
            }
        }
        return fields.addAll(more);
    }

    /** Why what travels may not. What goes ahead is looked at too late to take more along: that is for the next time. */
    private TravelProof checked(TravelProof proof, Set<String> fields, Fingerprint others, Travelling rules)
            throws IOException {
        String obstacle = proof.obstacle();
        for (Class<?> type : proof.classes()) {
            obstacle = obstacle == null ? rules.obstacle(type) : obstacle;
        }
        if (obstacle != null) {
            throw new IOException("it holds what cannot travel: " + obstacle);
        }
        Set<Root> more = new HashSet<>();
        for (int index : proof.shared()) {
            Root other = others.root(index);
            if (other.kind() != Kind.FIELD) {
                throw new IOException("shares what travels with " + other.name() + ", which stays");
            } else if (!fields.contains(other.name())) {
                more.add(other);
            }
        }
        if (!more.isEmpty()) {
            Set<String> names = Fingerprint.names(withSharing(others, more));
            learn(names);
            throw new Learnt("shares what travels with " + MoveWay.in(names) + ", which is known from now on");
        }
        return proof;
    }

    private void learn(Set<String> names) {
        CHANGED.computeIfAbsent(subject.types().get(0), type -> ConcurrentHashMap.newKeySet())
                .addAll(names);
        Set<String> fields = new TreeSet<>(names);
        fields.addAll(way.state() == null ? Set.of() : way.state());
        way = MoveWay.carried(fields);
    }

    private Fingerprint look(Set<String> without) throws IOException {
        if (unseen != null) {
            throw new IOException(unseen);
        }
        Set<String> besides = new HashSet<>(without);
        besides.addAll(madeAgain);
        return Fingerprint.of(subject, besides, first);
    }

    /** The fields that have changed since, with those that share objects with one of them. */
    private Set<String> changed(Fingerprint now) throws IOException {
        Map<Root, String> changed = now.changedSince(first, unsure);
        for (Map.Entry<Root, String> one : changed.entrySet()) {
            lastChange = component + "." + one.getValue();
            if (one.getKey().kind() != Kind.FIELD) {
                throw new IOException("remembers something that is not in its fields: " + lastChange);
            }
        }
        String large = first.tooLarge() != null && now.has(first.tooLarge()) ? first.tooLarge() : now.tooLarge();
        if (now.obstacle() != null) {
            throw new IOException(component + "." + now.obstacle());
        } else if (large != null) {
            throw new IOException(component + "." + large + " leads to more than can be looked at in time");
        }
        if (!changed.isEmpty() && verdict != null && verdict.how() == How.RENEW) {
            throw new IOException(lastChange); // nothing travels with one that is renewed
        }
        Set<String> names = Fingerprint.names(withSharing(now, changed.keySet()));
        if (!names.isEmpty()) {
            String obstacle = MoveWay.obstacle(taskObjects.get(0), names);
            if (obstacle != null) {
                throw new IOException(lastChange + ", and " + obstacle);
            }
            learn(names);
        }
        return names;
    }

    private static Set<Root> withSharing(Fingerprint now, Set<Root> changed) throws IOException {
        Set<Root> all = new HashSet<>(changed);
        Deque<Root> open = new ArrayDeque<>(changed);
        while (!open.isEmpty()) {
            for (Root other : now.sharing(open.poll())) {
                if (other.kind() != Kind.FIELD) {
                    throw new IOException("shares what it remembers with " + other.name());
                }
                if (all.add(other)) {
                    open.add(other);
                }
            }
        }
        return all;
    }

    /** As a target: gives the bolts the state that has come, and compares it with what left. */
    public void arrive(byte[] state, FirstMaps firstOrNull, byte[] proof) throws IOException {
        String difference = load(state, firstOrNull).differs(proof);
        if (difference != null) {
            throw new IOException(difference);
        }
    }

    /**
     * As a target: gives the bolts the state that has come, and looks at what they have then. The source looks at the same time: the
     * executor works nowhere until both have.
     */
    public Arrival load(byte[] state, FirstMaps firstOrNull) throws IOException {
        Arrival arrival =
                new Arrival(component, BoltState.load(state, taskObjects, classes(), firstOrNull), subject, unseen);
        if (!trusted && subject != null) {
            arrival.look();
        }
        return arrival;
    }

    /** What a state of theirs may hold. */
    private StateClasses classes() {
        return new StateClasses(first == null ? Set.of() : first.held(), declared);
    }
}
