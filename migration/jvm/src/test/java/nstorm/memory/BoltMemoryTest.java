package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Constructor;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;

class BoltMemoryTest {
    private static Object made(Class<?> type) {
        try {
            Constructor<?> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static BoltMemory of(Class<?> type) {
        return BoltMemory.of(made(type));
    }

    /** As a worker has it: its collector leads back to it. */
    private static BoltMemory prepared(Class<?> type) {
        IRichBolt bolt = (IRichBolt) made(type);
        bolt.prepare(Map.of("stop", "word"), null, new OutputCollector(new BackTo(bolt)));
        return BoltMemory.of(bolt);
    }

    private record BackTo(IRichBolt bolt) implements IOutputCollector {
        @Override
        public List<Integer> emit(String stream, Collection<Tuple> anchors, List<Object> values) {
            return List.of();
        }

        @Override
        public void emitDirect(int task, String stream, Collection<Tuple> anchors, List<Object> values) {}

        @Override
        public void ack(Tuple tuple) {}

        @Override
        public void fail(Tuple tuple) {}

        @Override
        public void resetTimeout(Tuple tuple) {}

        @Override
        public void flush() {}

        @Override
        public void reportError(Throwable error) {}
    }

    private static void each(List<Class<?>> types, Set<String> fields, String stays) {
        assertAll(types.stream().map(type -> () -> {
            BoltMemory memory = of(type);
            assertEquals(stays, memory.stays(), type.getSimpleName());
            assertEquals(fields, memory.fields(), type.getSimpleName());
        }));
    }

    @Test
    void whatOnlySeemsToKeepSomethingKeepsNothing() {
        each(
                List.of(
                        Keeping.Splits.class,
                        Keeping.AsksRules.class,
                        Keeping.AppliesLambda.class,
                        Keeping.JoinsTexts.class,
                        Keeping.CountsForTheJvm.class,
                        Keeping.LogsElsewhere.class,
                        Keeping.SwitchesElsewhere.class),
                Set.of(),
                null);
    }

    @Test
    void whateverChangesAFieldIsFound() {
        each(
                List.of(
                        Keeping.Number.class,
                        Keeping.Last.class,
                        Keeping.InMap.class,
                        Keeping.InMapUnlessTheSame.class,
                        Keeping.InListOfMap.class,
                        Keeping.InArray.class,
                        Keeping.InArrayOfArrays.class,
                        Keeping.InAtomic.class,
                        Keeping.InAdder.class,
                        Keeping.InReference.class,
                        Keeping.InNumberOfUnknownType.class,
                        Keeping.InText.class,
                        Keeping.InHelper.class,
                        Keeping.InHelpersList.class,
                        Keeping.ByHelper.class,
                        Keeping.InHelperOfCollection.class,
                        Keeping.InOneOfHelpers.class,
                        Keeping.ByNestedClass.class,
                        Keeping.ByAnonymousClass.class,
                        Keeping.ByLambda.class,
                        Keeping.ByLambdaOfTheJdk.class,
                        Keeping.ByMethodReference.class,
                        Keeping.ByCapturedMap.class,
                        Keeping.Inherited.class,
                        Keeping.Overrides.class,
                        Keeping.ByStaticMethod.class,
                        Keeping.ByTernary.class,
                        Keeping.ByEntry.class,
                        Keeping.ByRemoval.class,
                        Keeping.ByIteratorsRemoval.class,
                        Keeping.ByCollections.class,
                        Keeping.ByRecord.class,
                        Keeping.BySwap.class,
                        Keeping.ByException.class,
                        Keeping.InThreadLocal.class,
                        Keeping.InBits.class,
                        Keeping.InRandom.class,
                        Keeping.InCursor.class,
                        Keeping.ByOwnMap.class,
                        Keeping.InLazyField.class,
                        Keeping.ByPreparedObject.class,
                        Keeping.ByView.class,
                        Keeping.Serial.class,
                        Keeping.WritesToPath.class),
                Set.of("x"),
                null);
    }

    @Test
    void aLambdaInAFieldIsFollowedOrStays() {
        BoltMemory memory = of(Keeping.ByFieldOfLambda.class);
        assertTrue(
                memory.stays() != null
                        || memory.unsure() != null
                        || memory.fields().contains("x"),
                memory.toString());
    }

    @Test
    void tuplesAreFoundWhereverTheyAreKept() {
        each(
                List.of(
                        Keeping.KeepsTuple.class,
                        Keeping.CollectsTuples.class,
                        Keeping.HoldsTuples.class,
                        Keeping.PutsTuplesOff.class,
                        Keeping.EntersTuples.class),
                Set.of("x"),
                null);
        assertEquals(
                "keeps tuples that it looks up for others in its field x",
                of(Keeping.MapsTuples.class).stays());
        assertEquals(Set.of(), of(Keeping.InMap.class).tuples());
    }

    @Test
    void whatElseIsKeptBesideTuplesIsSaid() {
        BoltMemory memory = of(Keeping.CountsItsTuples.class);
        assertEquals(Set.of("x"), memory.tuples());
        assertEquals(
                "keeps tuples in its field x, and something else; declare nstorm.move: {sink: live} if those may be replayed, "
                        + "or drain if what else it keeps may be forgotten",
                memory.reason("sink"));
    }

    @Test
    void threadsStay() {
        assertAll(Stream.of(
                        Keeping.StartsThread.class,
                        Keeping.HasPool.class,
                        Keeping.SharesWithThread.class,
                        Keeping.HasTimer.class,
                        Keeping.GoesAway.class)
                .map(type -> () -> {
                    String stays = of(type).stays();
                    assertTrue(
                            stays != null && stays.startsWith("starts threads ("), type.getSimpleName() + ": " + stays);
                }));
    }

    @Test
    void whatIsKeptForTheWholeJvmStays() {
        String stays = "keeps something for the whole JVM in ";
        assertEquals(
                stays + "Keeping$InStaticMap.COUNTS",
                of(Keeping.InStaticMap.class).stays());
        assertEquals(
                stays + "Keeping$InStaticNumber.count",
                of(Keeping.InStaticNumber.class).stays());
        assertEquals(
                stays + "Keeping$InStaticByField.COUNTS",
                of(Keeping.InStaticByField.class).stays());
    }

    @Test
    void aPreparedBoltIsReadAsItRuns() {
        assertNull(prepared(Keeping.Splits.class).reason("split"));
        assertNull(prepared(Keeping.CountsForTheJvm.class).reason("split"));
        assertEquals(Set.of("x"), prepared(Keeping.AcksLater.class).tuples());
    }

    /** Before its code is read, which takes seconds where that leads into a library. */
    @Test
    void threadsInFieldsStayWhateverTheCodeDoes() {
        BoltMemory memory = prepared(Keeping.HasPool.class);
        assertEquals(
                "has threads in its field pool; declare nstorm.move: {sink: live} if those may live on, "
                        + "or renew if its cleanup ends them",
                memory.reason("sink"));
    }

    @Test
    void aBasicBoltIsReadThroughStormsWrapper() {
        assertEquals(
                Set.of("counts"),
                BoltMemory.of(new BasicBoltExecutor(new Keeping.Basic())).fields());
    }

    @Test
    void theReasonSaysWhatToDeclare() {
        assertEquals(
                "keeps something in its field x; declare nstorm.move: {count: live} if it may forget that",
                of(Keeping.InMap.class).reason("count"));
        assertEquals(
                "keeps tuples in its field x; declare nstorm.move: {sink: live} if those may be replayed",
                of(Keeping.CollectsTuples.class).reason("sink"));
        assertNull(of(Keeping.Splits.class).reason("split"));
    }

    @Test
    void aBoltIsReadOnce() {
        assertSame(of(Keeping.InMap.class), of(Keeping.InMap.class));
    }

    @Test
    void aLibraryIsNotRead() {
        assertEquals(
                "calls ByteBuddy.<init> of a library, whose code is not read",
                of(Keeping.CallsVeryMuch.class).unsure());
    }

    @Test
    void whatCannotBeLookedIntoStays() {
        assertAll(Stream.of(
                        Keeping.Reflects.class,
                        Keeping.HasVarHandle.class,
                        Keeping.Native.class,
                        Keeping.HandsItselfOut.class,
                        Keeping.CallsUnknownCode.class,
                        Keeping.SortsByUnknownCode.class)
                .map(type -> () -> assertNotNull(
                        of(type).stays() == null ? of(type).unsure() : of(type).stays(), type.getSimpleName())));
    }

    /** Changes more in one method than is done between two looks at the clock. */
    @Test
    void theClockIsLookedAtWithinAMethodToo() {
        String bolt = LiveTypes.nameOf(Keeping.ChangesMuch.class);
        Findings findings = new Findings();
        findings.prepared();
        Walk walk = new Walk(
                new Bytecode(Keeping.ChangesMuch.class.getClassLoader(), new CodeBase(Keeping.class)),
                new Origins(),
                bolt,
                Map.of(),
                findings);
        assertThrows(
                Undecided.class,
                () -> walk.follow("execute", "(Lorg/apache/storm/tuple/Tuple;)V", List.of(Walk.of(Origins.TUPLE)), 0));
        assertTrue(findings.fields.size() < 20, findings.fields.toString());
    }

    /** As the bolt's own thread does while another one reads what its fields hold. */
    @Test
    void aMapThatChangesMeanwhileIsLookedIntoAllTheSame() throws InterruptedException {
        Map<Integer, Object> changing = new TreeMap<>();
        Thread bolt = new Thread(() -> {
            for (int i = 0; !Thread.currentThread().isInterrupted(); i++) {
                changing.put(i % 90, "a");
                changing.remove((i + 45) % 90);
            }
        });
        bolt.start();
        try {
            for (int i = 0; i < 5000; i++) {
                LiveTypes.of(changing);
            }
        } finally {
            bolt.interrupt();
            bolt.join();
        }
    }
}
