package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectInputStream;
import java.io.ObjectOutput;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamField;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import nstorm.trial.Right;

/** What an object stream does not say as it is. */
final class Forms {
    static final class Single implements Serializable {
        static final Single ONE = new Single();
        int count;

        private Object readResolve() {
            return ONE;
        }
    }

    @Right({})
    static final class ReadsResolved extends Case {
        final Single single = Single.ONE;

        @Override
        Object on(String word, long number) {
            return ++single.count;
        }
    }

    static final class Cache implements Serializable {
        final Map<String, Integer> counts = new HashMap<>();

        private void writeObject(ObjectOutputStream out) throws IOException {
            counts.clear();
            out.defaultWriteObject();
        }
    }

    /** To write it changes what stays at the source. */
    @Right({})
    static final class ClearsWhenWritten extends Case {
        final Cache cache = new Cache();

        @Override
        Object on(String word, long number) {
            return cache.counts.merge(word, 1, Integer::sum);
        }
    }

    static final class Parts implements Serializable {
        private static final ObjectStreamField[] serialPersistentFields = {new ObjectStreamField("name", String.class)};
        String name = "parts";
        int count;
    }

    @Right({})
    static final class PersistentFields extends Case {
        final Parts parts = new Parts();

        @Override
        Object on(String word, long number) {
            return ++parts.count;
        }
    }

    public static final class OwnForm implements Externalizable {
        int count;

        public OwnForm() {}

        @Override
        public void writeExternal(ObjectOutput out) throws IOException {
            out.writeInt(count / 10);
        }

        @Override
        public void readExternal(ObjectInput in) throws IOException {
            count = in.readInt() * 10;
        }
    }

    @Right({})
    static final class Externalized extends Case {
        final OwnForm form = new OwnForm();

        @Override
        Object on(String word, long number) {
            return ++form.count;
        }
    }

    static final class Stub implements Serializable {
        int shown;

        private Object readResolve() {
            return new Replaced();
        }
    }

    static final class Replaced implements Serializable {
        int count;

        private Object writeReplace() {
            return new Stub();
        }
    }

    @Right({})
    static final class WritesAnother extends Case {
        final Replaced replaced = new Replaced();

        @Override
        Object on(String word, long number) {
            return ++replaced.count;
        }
    }

    static final class Registered implements Serializable {
        static final Map<String, Registered> ALL = new ConcurrentHashMap<>();
        final String name = "one";
        int count;

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            ALL.put(name, this);
        }
    }

    /** What a static field leads to is another object after the move than what the bolt has. */
    @Right({})
    static final class RegistersWhenRead extends Case {
        final Registered registered = new Registered();

        @Override
        Object on(String word, long number) {
            registered.count++;
            return Registered.ALL.get("one").count;
        }
    }

    static final class Session implements Serializable {
        int count;
        transient List<String> clicks = new ArrayList<>();
    }

    @Right({})
    static final class TransientLater extends Case {
        final Map<String, Session> sessions = new HashMap<>();

        @Override
        Object on(String word, long number) {
            Session session = sessions.computeIfAbsent(word, key -> new Session());
            session.clicks = session.clicks == null ? new ArrayList<>() : session.clicks;
            session.clicks.add("c" + number);
            return ++session.count + " " + session.clicks.size();
        }
    }

    /** Each of its values leads back to the bolt. */
    @Right({})
    static final class InnerLater extends Case {
        final Map<String, Inner> inner = new HashMap<>();
        int total;

        private final class Inner implements Serializable {
            int add() {
                return ++total;
            }
        }

        @Override
        Object on(String word, long number) {
            return inner.computeIfAbsent(word, key -> new Inner()).add();
        }
    }

    static class Unsaved {
        int count;
    }

    static final class Saved extends Unsaved implements Serializable {
        int other;
    }

    /** What the class above holds is not written. */
    @Right({})
    static final class SuperNotSerial extends Case {
        final Map<String, Saved> all = new HashMap<>();

        @Override
        Object on(String word, long number) {
            return ++all.computeIfAbsent(word, key -> new Saved()).count;
        }
    }

    static final class Named extends HashMap<String, Integer> {
        int puts;

        @Override
        public Integer put(String key, Integer value) {
            puts++;
            return super.put(key, value);
        }
    }

    /** The target's stream calls put. */
    @Right({})
    static final class OwnMap extends Case {
        final Named named = new Named();

        @Override
        Object on(String word, long number) {
            named.put(word, named.getOrDefault(word, 0) + 1);
            return named.puts;
        }
    }

    static final class Limited extends LinkedHashMap<String, Integer> {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
            return size() > 3;
        }
    }

    @Right(CARRY)
    static final class OwnLimitedMap extends Case {
        final Limited limited = new Limited();

        @Override
        Object on(String word, long number) {
            limited.merge(word, 1, Integer::sum);
            return limited.toString();
        }
    }

    static final class Filled extends ArrayList<String> {
        boolean full;
    }

    @Right(CARRY)
    static final class OwnList extends Case {
        final Filled filled = new Filled();

        @Override
        Object on(String word, long number) {
            filled.full |= filled.size() > 8;
            filled.add(word);
            return filled.full;
        }
    }

    @Right({})
    static final class NotSerial extends Case {
        transient Optional<String> last = null;

        @Override
        void begin(Map<String, Object> conf) {
            last = Optional.empty();
        }

        @Override
        Object on(String word, long number) {
            Object before = last.orElse("none");
            last = Optional.of(word);
            return before;
        }
    }

    static final class Chain implements Serializable {
        final Chain next;
        final long number;

        Chain(Chain next, long number) {
            this.next = next;
            this.number = number;
        }
    }

    /** An object stream goes as deep as the chain is long. */
    @Right({})
    static final class DeepChain extends Case {
        Chain chain;

        @Override
        Object on(String word, long number) {
            for (int i = 0; i < 1000; i++) {
                chain = new Chain(chain, number);
            }
            return chain.next.number;
        }
    }

    /** Texts that travel are other objects. */
    @Right({})
    static final class ByIdentity extends Case {
        final Map<String, Integer> counts = new IdentityHashMap<>();

        @Override
        Object on(String word, long number) {
            return counts.merge(word.intern(), 1, Integer::sum);
        }
    }

    /** A truth value has one object in each JVM, whatever stands first. */
    @Right(CARRY)
    static final class SameTruth extends Case {
        final Map<String, Boolean> known = new HashMap<>();

        @Override
        Object on(String word, long number) {
            Boolean was = known.get(word);
            known.put(word, number > 3);
            return Boolean.TRUE == was;
        }
    }

    /** Which of the two texts stands first does not matter. */
    @Right({})
    static final class SameText extends Case {
        final Map<String, String> known = new HashMap<>();

        @Override
        Object on(String word, long number) {
            String was = known.get(word);
            known.put(word, "known");
            return "known" == was;
        }
    }

    static final class Key implements Serializable {
        final String word;

        Key(String word) {
            this.word = word;
        }
    }

    /** Found by identity, with the keys in a field that travels, too. */
    @Right(CARRY)
    static final class OwnKeys extends Case {
        final Map<String, Key> keys = new HashMap<>();
        final Map<Key, Integer> counts = new HashMap<>();

        @Override
        Object on(String word, long number) {
            return counts.merge(keys.computeIfAbsent(word, Key::new), 1, Integer::sum);
        }
    }

    /** A key that was changed in the map is lost there, and found again once the map is read from a stream. */
    @Right({})
    static final class ChangedKey extends Case {
        final Map<List<String>, Integer> counts = new HashMap<>();
        final List<String> key = new ArrayList<>();

        @Override
        Object on(String word, long number) {
            if (number < 4) {
                counts.put(key, (int) number);
                key.add(word);
            }
            return counts.get(key);
        }
    }

    private Forms() {}
}
