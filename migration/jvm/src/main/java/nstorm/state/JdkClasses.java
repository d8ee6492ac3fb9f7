package nstorm.state;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** The JDK's values and collections that any state may hold, and what those write in their place: each by its name. */
final class JdkClasses {
    private static final Set<String> NAMES = new HashSet<>();

    static {
        add(
                "java.lang.",
                "Object String Number Boolean Byte Character Short Integer Long Float Double Enum StringBuilder StringBuffer "
                        + "String$CaseInsensitiveComparator");
        add("java.math.", "BigInteger BigDecimal MathContext RoundingMode");
        add(
                "java.time.",
                "Ser DayOfWeek Month temporal.ChronoUnit temporal.ChronoField Duration Instant LocalDate LocalDateTime LocalTime MonthDay "
                        + "OffsetDateTime OffsetTime Period Year YearMonth ZoneOffset ZoneRegion ZonedDateTime");
        add("java.sql.", "Date Time Timestamp");
        add("java.net.", "URI");
        add(
                "java.util.",
                "ArrayList LinkedList Vector Stack ArrayDeque PriorityQueue HashMap LinkedHashMap TreeMap Hashtable Properties "
                        + "IdentityHashMap HashSet LinkedHashSet TreeSet EnumMap EnumSet EnumSet$SerializationProxy RegularEnumSet JumboEnumSet "
                        + "BitSet UUID Date Locale Currency Random regex.Pattern Arrays$ArrayList "
                        + "AbstractMap$SimpleEntry AbstractMap$SimpleImmutableEntry "
                        + "Comparators$NaturalOrderComparator");
        add(
                "java.util.",
                "CollSer ImmutableCollections$List12 ImmutableCollections$ListN ImmutableCollections$Set12 ImmutableCollections$SetN "
                        + "ImmutableCollections$Map1 ImmutableCollections$MapN");
        add(
                "java.util.Collections$",
                "EmptyList EmptyMap EmptySet SingletonList SingletonMap SingletonSet CopiesList SetFromMap "
                        + "AsLIFOQueue ReverseComparator ReverseComparator2 "
                        + "SynchronizedCollection SynchronizedList SynchronizedRandomAccessList SynchronizedMap SynchronizedNavigableMap "
                        + "SynchronizedNavigableSet SynchronizedSet SynchronizedSortedMap SynchronizedSortedSet "
                        + "UnmodifiableCollection UnmodifiableList UnmodifiableRandomAccessList UnmodifiableMap UnmodifiableNavigableMap "
                        + "UnmodifiableNavigableSet UnmodifiableSet UnmodifiableSortedMap UnmodifiableSortedSet "
                        + "UnmodifiableSequencedCollection UnmodifiableSequencedMap UnmodifiableSequencedSet "
                        + "UnmodifiableMap$UnmodifiableEntrySet CheckedCollection CheckedList CheckedRandomAccessList CheckedMap CheckedSet CheckedQueue "
                        + "CheckedSortedMap CheckedSortedSet CheckedNavigableMap CheckedNavigableSet");
        add(
                "java.util.concurrent.",
                "ConcurrentHashMap ConcurrentHashMap$Segment ConcurrentHashMap$CollectionView ConcurrentHashMap$KeySetView "
                        + "ConcurrentLinkedQueue ConcurrentLinkedDeque ConcurrentSkipListMap ConcurrentSkipListSet CopyOnWriteArrayList CopyOnWriteArraySet "
                        + "LinkedBlockingQueue LinkedBlockingDeque ArrayBlockingQueue PriorityBlockingQueue DelayQueue TimeUnit");
        add(
                "java.util.concurrent.atomic.",
                "AtomicBoolean AtomicInteger AtomicLong AtomicReference AtomicIntegerArray AtomicLongArray "
                        + "AtomicReferenceArray Striped64 LongAdder LongAdder$SerializationProxy DoubleAdder DoubleAdder$SerializationProxy "
                        + "LongAccumulator LongAccumulator$SerializationProxy DoubleAccumulator DoubleAccumulator$SerializationProxy");
        // Some collections have one.
        add(
                "java.util.concurrent.locks.",
                "ReentrantLock ReentrantLock$Sync ReentrantLock$FairSync ReentrantLock$NonfairSync "
                        + "AbstractOwnableSynchronizer AbstractQueuedSynchronizer AbstractQueuedSynchronizer$ConditionObject "
                        + "ReentrantReadWriteLock ReentrantReadWriteLock$Sync ReentrantReadWriteLock$FairSync ReentrantReadWriteLock$NonfairSync "
                        + "ReentrantReadWriteLock$ReadLock ReentrantReadWriteLock$WriteLock");
    }

    private JdkClasses() {}

    private static void add(String before, String names) {
        Arrays.stream(names.split(" ")).forEach(name -> NAMES.add(before + name));
    }

    static boolean has(String name) {
        return NAMES.contains(name);
    }
}
