package nstorm.memory;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** What is known of classes and methods whose code is not read: those of the JDK, of Storm, and a few libraries. */
final class Known {
    /** Objects that no code can change, and that are other objects once they have travelled. */
    private static final Set<String> VALUE_TYPES = Names.of("""
            java/lang/String java/lang/Boolean java/lang/Byte java/lang/Character java/lang/Short java/lang/Integer
            java/lang/Long java/lang/Float java/lang/Double java/math/BigDecimal java/math/BigInteger java/util/UUID
            """);
    /** Others that no code can change: nothing is kept in one. */
    private static final Set<String> CONSTANT_TYPES = Names.of("""
            java/lang/Class java/util/regex/Pattern java/util/Locale java/util/Currency
            java/net/URI java/nio/file/Path java/io/File java/nio/charset/Charset java/util/concurrent/TimeUnit
            java/util/Base64$Encoder java/util/Base64$Decoder java/lang/Void java/util/HexFormat
            java/lang/StackTraceElement org/apache/storm/tuple/Fields
            """);
    /** What a bolt hands on here it does not keep, and what it gets is not what it keeps. */
    private static final Set<String> OUTLETS = Names.of("""
            org/apache/storm/task/OutputCollector org/apache/storm/task/IOutputCollector
            org/apache/storm/topology/BasicOutputCollector org/apache/storm/topology/IBasicOutputCollector
            org/apache/storm/spout/SpoutOutputCollector org/apache/storm/spout/ISpoutOutputCollector
            org/apache/storm/task/IErrorReporter org/apache/storm/tuple/Tuple org/apache/storm/tuple/ITuple
            org/apache/storm/utils/TupleUtils org/apache/storm/utils/Time org/apache/storm/Constants
            java/io/PrintStream java/lang/Throwable java/lang/Exception java/lang/RuntimeException java/lang/Error
            """);

    private static final Set<String> LOGGING = Set.of(
            "org/slf4j/",
            "org/apache/logging/",
            "org/apache/log4j/",
            "org/apache/commons/logging/",
            "java/util/logging/");
    private static final Set<String> METRICS_THAT_COUNT =
            Set.of("com/codahale/metrics/", "org/apache/storm/metric/api/");
    /** Of libraries: by their contract these methods keep nothing from one call to the next. */
    private static final Map<String, Pattern> READERS = Map.of(
            "com/fasterxml/jackson/databind/ObjectMapper",
                    Pattern.compile("read.*|write.*|convertValue|valueToTree|treeToValue|create.*Node"),
            "com/fasterxml/jackson/databind/json/JsonMapper",
                    Pattern.compile("read.*|write.*|convertValue|valueToTree|treeToValue"),
            "com/fasterxml/jackson/databind/ObjectReader", Pattern.compile("read.*"),
            "com/fasterxml/jackson/databind/ObjectWriter", Pattern.compile("write.*"),
            "com/fasterxml/jackson/databind/JsonNode",
                    Pattern.compile(
                            "get|path|at|as.*|is.*|has.*|size|.*Value|elements|fields|fieldNames|iterator|find.*"),
            "com/google/gson/Gson", Pattern.compile("toJson|fromJson|toJsonTree"),
            "org/json/simple/parser/JSONParser", Pattern.compile("parse"),
            "org/json/simple/JSONValue", Pattern.compile(".*"),
            "org/apache/storm/shade/net/minidev/json/JSONValue", Pattern.compile(".*"),
            "org/apache/storm/shade/net/minidev/json/parser/JSONParser", Pattern.compile("parse"));

    private static final List<String> METRICS =
            List.of("com/codahale/metrics/", "org/apache/storm/metric/api/", "org/apache/storm/metrics2/");
    private static final Set<String> CHANCE = Set.of(
            "java/util/Random",
            "java/security/SecureRandom",
            "java/util/SplittableRandom",
            "java/util/concurrent/ThreadLocalRandom");
    /** Calls that act outside the heap: two copies may do so at once never, and one after the other may. */
    private static final Pattern OUTSIDE = Pattern.compile(
            "(javax?/sql/|javax/(naming|jms|mail)/|java/rmi/|java/net/http/|java/nio/channels/).*|java/net/(Socket|ServerSocket|URLConnection|HttpURLConnection"
                    + "|DatagramSocket|MulticastSocket)\\..*|java/net/URL\\.(open.*|getContent)|java/io/File(OutputStream|Writer)\\.<init>"
                    + "|java/nio/file/Files\\.(write.*|newBufferedWriter|newOutputStream)");
    /** Of these only the constructors that take a file or its name. */
    private static final Pattern WRITES_FILE =
            Pattern.compile("java/(io/Print(Stream|Writer)|util/Formatter)\\.<init>\\(Ljava/(io/File|lang/String);.*");

    private static final Pattern READS_FILE =
            Pattern.compile("java/util/Scanner\\.<init>\\(Ljava/(io/File|nio/file/Path);.*");
    /** Files and settings of a host that are read: another one has not got them. */
    private static final Pattern OF_THE_HOST = Pattern.compile(
            "java/util/prefs/.*|java/lang/System\\.(set(Property|Properties)|clearProperty|getProperties)|java/io/(FileInputStream|FileReader"
                    + "|RandomAccessFile)\\.<init>|java/io/File\\.(createNewFile|createTempFile|delete.*|mkdirs?|renameTo|setLastModified|list.*|exists|length"
                    + "|is(File|Directory|Hidden)|can.*|lastModified|get.*Space)"
                    + "|java/nio/channels/(Asynchronous)?FileChannel\\.open|java/util/(zip/Zip|jar/Jar)File\\.<init>"
                    + "|java/util/(TimeZone|Locale)\\.setDefault|java/security/Security\\.(set|insert|add|remove).*"
                    + "|java/nio/file/Files\\.(?!write|newBufferedWriter|newOutputStream).*");

    private static final Pattern THREADS = Pattern.compile(
            ".*Reporter\\.start|com/sun/net/httpserver/.*Server\\.(create|start)|java/lang/ProcessBuilder\\.start.*|java/lang/Runtime\\.exec"
                    + "|java/util/concurrent/CompletableFuture\\.(orTimeout|completeOnTimeout|delayedExecutor)|java/net/http/HttpClient(\\.newHttpClient|\\.sendAsync"
                    + "|\\$Builder\\.build)|java/lang/ref/Cleaner\\.create|java/util/concurrent/SubmissionPublisher\\..*");
    /** Of the JDK's, what writes into what it was given, or reads on in it. */
    private static final Set<String> THROUGH = Set.of("java/util/Formatter", "java/util/Scanner");

    private static final Pattern LATER = Pattern.compile(
            "java/util/concurrent/(Completable|.*Future|.*Executor|Flow|Exchanger|.*Transfer).*|java/net/http/.*");
    private static final Set<String> THREAD_OWNERS = Names.of("""
            java/lang/Thread$Builder java/util/Timer java/util/concurrent/Executors
            java/util/concurrent/ExecutorService java/util/concurrent/ScheduledExecutorService
            java/util/concurrent/Executor java/util/concurrent/ForkJoinPool java/util/concurrent/ThreadPoolExecutor
            java/util/concurrent/ScheduledThreadPoolExecutor java/util/concurrent/CompletionService
            java/util/concurrent/ExecutorCompletionService java/util/concurrent/ThreadFactory
            java/util/concurrent/ForkJoinTask
            """);
    private static final Set<String> THREAD_METHODS =
            Set.of("<init>", "start", "ofVirtual", "ofPlatform", "startVirtualThread");
    /** Methods that leave the object they are called on, and what they are given, as it is. */
    private static final Set<String> READING = Names.of("""
            get getOrDefault containsKey containsValue contains containsAll size isEmpty keySet values entrySet
            iterator listIterator hasNext next hasPrevious previous nextIndex stream forEach equals hashCode
            toString indexOf lastIndexOf subList toArray peek peekFirst peekLast element first last firstKey lastKey
            firstEntry lastEntry floorKey floorEntry ceilingKey ceilingEntry higherKey higherEntry lowerKey
            lowerEntry headMap tailMap subMap headSet tailSet subSet descendingMap descendingSet descendingIterator
            floor ceiling higher lower comparator getKey getValue getFirst getLast length charAt substring intValue
            longValue doubleValue booleanValue name ordinal compareTo compare getClass isPresent orElse orElseThrow
            ifPresent filter map mapToObj mapToInt mapToLong mapToDouble flatMap collect reduce sorted distinct
            limit anyMatch allMatch noneMatch findFirst findAny count sum max min average boxed clone matcher
            matches isInstance cast cardinality nextSetBit nextClearBit chars isArray isAnnotationPresent getName
            getSimpleName reversed
            """);
    /** What these return is a copy: to change it changes nothing that is kept. */
    private static final Set<String> COPYING = Names.of("""
            toArray collect toList copyOf copyOfRange clone toString split of asList ofEntries entry format valueOf
            join concat wait stripTrailing mapToInt mapToLong mapToDouble sum count boxed
            """);
    /** Static methods that leave what they are given as it is. */
    private static final Set<String> READING_STATIC_OWNERS = Names.of("""
            java/lang/Math java/lang/StrictMath java/util/Objects java/util/Optional java/util/List java/util/Map
            java/util/Set java/lang/String java/lang/Integer java/lang/Long java/lang/Double java/lang/Float
            java/lang/Boolean java/lang/Character java/lang/Byte java/lang/Short java/util/stream/Collectors
            java/util/stream/Stream java/util/stream/IntStream java/util/stream/StreamSupport java/util/Comparator
            java/util/function/Function java/util/Map$Entry java/util/stream/LongStream
            java/util/stream/DoubleStream java/lang/Enum
            """);

    private static final Set<String> READING_STATICS = Names.of("""
            java/util/Arrays.asList java/util/Arrays.stream java/util/Arrays.toString java/util/Arrays.copyOf
            java/util/Arrays.copyOfRange java/util/Arrays.equals java/util/Arrays.hashCode
            java/util/Arrays.binarySearch java/util/Collections.unmodifiableList
            java/util/Collections.unmodifiableMap java/util/Collections.unmodifiableSet
            java/util/Collections.unmodifiableCollection java/util/Collections.singletonList
            java/util/Collections.singleton java/util/Collections.singletonMap java/util/Collections.max
            java/util/Collections.min java/util/Collections.binarySearch java/util/Collections.frequency
            """);
    /** To add up is all that one can do: how often something happened in this JVM, not what the next tuple needs. */
    private static final Set<String> ADDERS = Set.of(
            "java/util/concurrent/atomic/LongAdder.increment", "java/util/concurrent/atomic/LongAdder.decrement",
            "java/util/concurrent/atomic/LongAdder.add", "java/util/concurrent/atomic/DoubleAdder.add");

    private static final Set<String> HARMLESS_FIELDS = Set.of(
            "org/apache/storm/task/OutputCollector", "org/apache/storm/topology/BasicOutputCollector",
            "org/apache/storm/spout/SpoutOutputCollector", "org/apache/storm/task/TopologyContext");

    private Known() {}

    /** Whether an object of this type (a name, not a descriptor) is a text, a number or the like. */
    static boolean isValue(String type) {
        return VALUE_TYPES.contains(type);
    }

    /** Whether no code can change an object of this type, which is the JDK's or Storm's. */
    private static boolean isImmutable(String type) {
        return isValue(type) || CONSTANT_TYPES.contains(type) || type.startsWith("java/time/");
    }

    /** Whether of an object of this type (a name, not a descriptor) nothing can be kept. */
    static boolean isConstant(String type) {
        return isImmutable(type) || isOfLoggingOrMetrics(type);
    }

    private static boolean isOfLoggingOrMetrics(String type) {
        return isLogging(type) || METRICS_THAT_COUNT.stream().anyMatch(type::startsWith);
    }

    /** Whether it is a logger, or something of its library. */
    static boolean isLogging(String type) {
        return LOGGING.stream().anyMatch(type::startsWith);
    }

    /** Whether a field of this type holds only what every copy of a bolt is given again. */
    static boolean isGiven(String type) {
        return isConstant(type) || HARMLESS_FIELDS.contains(type);
    }

    /** Whether an object of this type leads to nothing of the bolt's own: Storm's executor behind a collector leads to all. */
    static boolean leadsNowhere(String type) {
        return isGiven(type)
                || type.startsWith("org/apache/storm/task/")
                || type.startsWith("org/apache/storm/executor/");
    }

    /** Whether what is handed on here is not kept. */
    static boolean isOutlet(String owner) {
        return OUTLETS.contains(owner) || isOfLoggingOrMetrics(owner);
    }

    /** Whether it is one of the names by which Storm's ticks are known. */
    static boolean isOfTicks(Object constant) {
        return constant.equals("__tick") || constant.equals("__system");
    }

    /** Whether it is called on a collector. */
    static boolean isCollector(String owner) {
        return owner.startsWith("org/apache/storm/") && owner.endsWith("OutputCollector");
    }

    /** Whether what it is called on is a tuple. */
    static boolean isTuple(String owner) {
        return owner.equals("org/apache/storm/tuple/Tuple") || owner.equals("org/apache/storm/tuple/ITuple");
    }

    static boolean isReader(String owner, String name) {
        Pattern methods = READERS.get(owner);
        return methods != null && methods.matcher(name).matches();
    }

    /** Whether what a metric has counted is asked for. */
    static boolean readsMetric(String owner, String name) {
        return METRICS.stream().anyMatch(owner::startsWith) && (name.startsWith("get") || name.equals("snapshot"))
                || owner.startsWith("org/apache/storm/task/") && name.equals("getRegisteredMetricByName");
    }

    static boolean draws(String owner) {
        return CHANCE.contains(owner);
    }

    /** Whether it changes something of the thread that every tuple finds there. */
    static boolean marksThread(String owner, String name) {
        return owner.equals("org/slf4j/MDC") && !name.equals("get")
                || owner.equals("org/apache/logging/log4j/ThreadContext") && !name.startsWith("get")
                || owner.equals("java/lang/Thread")
                        && (name.equals("setName")
                                || name.equals("setContextClassLoader")
                                || name.endsWith("UncaughtExceptionHandler") && name.startsWith("set"));
    }

    /** Whether it reaches what a task's context keeps for the user. */
    static boolean isTaskData(String owner, String name) {
        return owner.startsWith("org/apache/storm/task/")
                && owner.endsWith("TopologyContext")
                && (name.endsWith("TaskData") || name.endsWith("ExecutorData") || name.equals("addTaskHook"));
    }

    static boolean actsOutside(String owner, String name, String type) {
        return OUTSIDE.matcher(owner + "." + name).matches()
                || WRITES_FILE.matcher(owner + "." + name + type).matches();
    }

    static boolean isOfTheHost(String owner, String name, String type) {
        return OF_THE_HOST.matcher(owner + "." + name).matches()
                || READS_FILE.matcher(owner + "." + name + type).matches();
    }

    /** What this returns means something in this JVM or on this host alone: what it is, or null. */
    static String hostValue(String owner, String name) {
        if (owner.equals("java/lang/System")) {
            return name.equals("nanoTime")
                    ? "a time of System.nanoTime()"
                    : name.equals("getenv") ? "a value of its host's environment" : null;
        } else if (owner.startsWith("java/net/Inet") || owner.equals("java/net/NetworkInterface")) {
            return "an address of its host";
        } else if (owner.equals("java/lang/ProcessHandle") || owner.startsWith("java/lang/management/")) {
            return "something of its process";
        }
        if (owner.equals("java/io/File")
                        && (name.startsWith("get") || name.equals("toString") || name.equals("createTempFile"))
                || owner.equals("java/nio/file/Path") && name.equals("toString")) {
            return "a path of its host";
        }
        return owner.equals("java/lang/Thread")
                        && (name.equals("getId") || name.equals("threadId") || name.equals("getName"))
                ? "something of its thread"
                : null;
    }

    static boolean startsThreads(String owner, String name) {
        return THREADS.matcher(owner + "." + name).matches()
                || THREAD_OWNERS.contains(owner)
                || owner.equals("java/lang/Thread") && THREAD_METHODS.contains(name)
                || owner.startsWith("java/util/concurrent/CompletableFuture") && name.endsWith("Async");
    }

    /** Whether what it does cannot be seen in the code, but in the objects that it does it to. */
    static boolean isReflection(String owner, String name) {
        return owner.startsWith("java/lang/invoke/")
                || owner.endsWith("/Unsafe")
                || owner.endsWith("FieldUpdater")
                || owner.equals("java/util/ServiceLoader")
                || owner.equals("java/lang/Class") && name.equals("forName")
                || owner.startsWith("java/lang/reflect/") && name.startsWith("set")
                || owner.startsWith("java/lang/ClassLoader")
                        && !name.startsWith("getResource")
                        && !name.startsWith("getSystemResource");
    }

    /** Whether it runs code of which nothing is known. */
    static boolean runsUnknown(String owner, String name) {
        return owner.startsWith("java/lang/reflect/")
                        && (name.equals("invoke") || name.equals("newInstance") || name.equals("newProxyInstance"))
                || owner.equals("java/lang/Class") && name.equals("newInstance")
                || owner.startsWith("java/lang/invoke/MethodHandle") && name.startsWith("invoke");
    }

    static boolean reads(String owner, String name) {
        if (owner.startsWith("[") && name.equals("clone")) {
            return true;
        }
        if (owner.equals("java/lang/Object") || owner.startsWith("java/lang/ThreadLocal") && name.equals("get")) {
            return true;
        }
        if (owner.equals("org/apache/storm/task/TopologyContext")
                || owner.equals("org/apache/storm/task/GeneralTopologyContext")
                || owner.equals("org/apache/storm/task/WorkerTopologyContext")) {
            return !name.equals("getTaskData")
                    && !name.equals("getExecutorData")
                    && !name.startsWith("setTask")
                    && !name.startsWith("setExecutor")
                    && !name.equals("addTaskHook")
                    && !name.equals("getResource")
                    && !name.equals("getSharedExecutor");
        }
        boolean ofThread = owner.equals("java/lang/Thread")
                && (name.equals("currentThread")
                        || name.equals("sleep")
                        || name.equals("interrupted")
                        || name.equals("isInterrupted")
                        || name.equals("interrupt")
                        || name.equals("yield")
                        || name.equals("onSpinWait")
                        || name.equals("getName")
                        || name.equals("getId")
                        || name.equals("threadId"));
        return ofThread
                || isImmutable(owner)
                || owner.startsWith("java/lang/Enum")
                || owner.equals("java/lang/System") && !name.equals("arraycopy") && !name.startsWith("set")
                || owner.equals("java/util/concurrent/locks/LockSupport")
                || READING.contains(name)
                        && !isCallback(owner)
                        && (owner.startsWith("java/util/") || owner.startsWith("java/lang/"));
    }

    static boolean readsStatic(String owner, String name) {
        return READING_STATIC_OWNERS.contains(owner)
                || READING_STATICS.contains(owner + "." + name)
                || reads(owner, name) && !owner.startsWith("java/util/Coll");
    }

    /** Whether the method returns something else than what it was called on. */
    static boolean copies(String name) {
        return COPYING.contains(name);
    }

    /** Whether it keeps of what it is given the text alone: so Java 8 compiles a {@code +} of texts. */
    static boolean joinsTexts(String owner) {
        return owner.equals("java/lang/StringBuilder") || owner.equals("java/lang/StringBuffer");
    }

    /** Whether others put something into an object of this type (a descriptor): an array, a collection, an atomic number. */
    static boolean isFilled(String type) {
        String name = type.substring(1);
        return type.startsWith("[")
                || name.startsWith("java/util/") && !isAdder(name.replace(";", "")) && !draws(name.replace(";", ""));
    }

    /** Whether it is one of the JDK's classes that only add up (a name, not a descriptor). */
    static boolean isAdder(String typeOrNull) {
        return "java/util/concurrent/atomic/LongAdder".equals(typeOrNull)
                || "java/util/concurrent/atomic/DoubleAdder".equals(typeOrNull);
    }

    static boolean adds(String owner, String name) {
        return ADDERS.contains(owner + "." + name);
    }

    /** Whether a method of this owner may keep what it is given, but does not change it. */
    static boolean onlyKeeps(String owner) {
        return owner.startsWith("java/util/") && !LATER.matcher(owner).matches() && !THROUGH.contains(owner)
                || owner.startsWith("java/lang/S")
                || owner.startsWith("java/lang/Iter")
                || owner.equals("org/apache/storm/tuple/Values");
    }

    /** Whether a call of this type's one method runs whatever code it was made of. */
    static boolean isCallback(String owner) {
        return owner.startsWith("java/util/function/")
                || owner.equals("java/lang/Runnable")
                || owner.equals("java/util/concurrent/Callable")
                || owner.equals("java/util/Comparator");
    }
}
