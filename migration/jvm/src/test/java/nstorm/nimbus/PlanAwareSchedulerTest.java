package nstorm.nimbus;

import static nstorm.nimbus.SmallCluster.move;
import static nstorm.nimbus.SmallCluster.opening;
import static nstorm.nimbus.SmallCluster.shown;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import nstorm.wire.Entry;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Way;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.EvenScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.IsolationScheduler;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class PlanAwareSchedulerTest {

    private static final String PACKED = "s1:6700=1,2,3,4,5,6,7,8,9 s1:6701=10,11,12,13,14 s2:6700=15,16,17 s2:6701=18";

    /** Storm's own scheduler, which also writes down what it was shown. */
    private static final class Watched implements IScheduler {
        private final IScheduler stock;
        private final List<Cluster> shown = new ArrayList<>();

        Watched(IScheduler stock) {
            this.stock = stock;
        }

        @Override
        public void prepare(Map<String, Object> conf, StormMetricsRegistry registry) {
            stock.prepare(conf, registry);
        }

        @Override
        public void schedule(Topologies topologies, Cluster cluster) {
            shown.add(cluster);
            stock.schedule(topologies, cluster);
        }

        @Override
        public Map<?, ?> config() {
            return stock.config();
        }
    }

    /** Storm's scheduler with a pass over running workers as Storm 3 has it: one goes to a supervisor that has none. */
    private static final class Idle extends EvenScheduler {
        @Override
        public void schedule(Topologies topologies, Cluster cluster) {
            for (TopologyDetails topology : topologies.getTopologies()) {
                List<WorkerSlot> used = cluster.getUsedSlotsByTopologyId(topology.getId()).stream()
                        .sorted(Comparator.comparing(WorkerSlot::getId))
                        .toList();
                cluster.getSupervisors().values().stream()
                        .filter(one -> cluster.getUsedPorts(one).isEmpty() && used.size() > 1)
                        .findFirst()
                        .ifPresent(one -> restart(cluster, topology.getId(), used.get(used.size() - 1), one.getId()));
            }
            super.schedule(topologies, cluster);
        }

        private static void restart(Cluster cluster, String topology, WorkerSlot from, String to) {
            Collection<ExecutorDetails> executors =
                    cluster.getAssignmentById(topology).getSlotToExecutors().get(from);
            cluster.freeSlot(from);
            cluster.assign(new WorkerSlot(to, 6700), topology, executors);
        }
    }

    private static SmallCluster packed() {
        return new SmallCluster()
                .topology("t", 18, 4)
                .place("t", "s1:6700", 1, 9)
                .place("t", "s1:6701", 10, 14)
                .place("t", "s2:6700", 15, 17)
                .place("t", "s2:6701", 18, 18);
    }

    private static Cluster scheduled(SmallCluster small, IScheduler stock) {
        Cluster cluster = small.cluster();
        SchedulingRound round = new SchedulingRound(small.existing(), small.plans());
        new PlanAwareScheduler(stock, () -> round).schedule(small.topologies(), cluster);
        return cluster;
    }

    private static Cluster scheduled(SmallCluster small) {
        return scheduled(small, new DefaultScheduler());
    }

    @ParameterizedTest
    @CsvSource({"s1:6700, s1:6702", "s1:6701, s1:6702", "s2:6700, s2:6702", "s2:6701, s2:6702"})
    void onlyTheDeadWorkerOfAPackedTopologyMoves(String dead, String free) {
        assertEquals(
                PACKED.replace(dead, free)
                        .replaceAll("s2:6702=15,16,17 s2:6701=18", "s2:6701=18 s2:6702=15,16,17")
                        .replaceAll("s1:6702=(\\S+) s1:6701=(\\S+)", "s1:6701=$2 s1:6702=$1"),
                shown(scheduled(packed().plan("t").kill("t", dead)), "t"));
    }

    @Test
    void withoutAPlanStormsSchedulerRestartsHealthyWorkers() {
        // Why the hook is there: stock frees every slot whose count is not even.
        Cluster stock = scheduled(packed().kill("t", "s2:6701"));
        assertNotEquals("s1:6700=1,2,3,4,5,6,7,8,9", shown(stock, "t").split(" ")[0]);
    }

    @Test
    void aTopologyWithoutAPlanIsShownAsItIs() {
        Watched stock = new Watched(new DefaultScheduler());
        SmallCluster small = packed().kill("t", "s2:6701");
        Cluster cluster = small.cluster();
        SchedulingRound round = new SchedulingRound(small.existing(), small.plans());
        new PlanAwareScheduler(stock, () -> round).schedule(small.topologies(), cluster);
        assertEquals(1, stock.shown.size());
        assertSame(cluster, stock.shown.get(0));
    }

    @Test
    void stockRunsOnceAndChangesNothingWhileAllLive() {
        Watched stock = new Watched(new DefaultScheduler());
        // It asks for six workers and uses four: stock alone would spread it.
        SmallCluster small = new SmallCluster()
                .topology("t", 18, 6)
                .place("t", "s1:6700", 1, 9)
                .place("t", "s1:6701", 10, 14)
                .place("t", "s2:6700", 15, 17)
                .place("t", "s2:6701", 18, 18)
                .plan("t");
        assertEquals(PACKED, shown(scheduled(small, stock), "t"));
        assertEquals(1, stock.shown.size());
    }

    /** A host has come back: Storm uses it for what was never moved, though another topology was. */
    @Test
    void whatWasNeverMovedIsSpreadByStorm() {
        SmallCluster small = new SmallCluster()
                .topology("t", 2, 2)
                .place("t", "s1:6700", 1, 2)
                .plan("t")
                .topology("u", 2, 2)
                .place("u", "s1:6701", 1, 2);
        Cluster cluster = scheduled(small);
        assertEquals("s1:6700=1,2", shown(cluster, "t"));
        assertEquals("s1:6701=2 s2:6700=1", shown(cluster, "u"));
    }

    /** What nstorm has packed would go back, with a restart, in each round. */
    @Test
    void stormsOwnPassOverRunningWorkersMissesWhatWasMoved() {
        SmallCluster small = new SmallCluster()
                .topology("t", 2, 2)
                .place("t", "s1:6700", 1, 1)
                .place("t", "s1:6701", 2, 2);
        assertEquals("s1:6700=1 s2:6700=2", shown(scheduled(small, new Idle()), "t"));
        assertEquals("s1:6700=1 s1:6701=2", shown(scheduled(small.plan("t"), new Idle()), "t"));
    }

    @Test
    void stormsOwnPassStillMovesWhatWasNeverMoved() {
        SmallCluster small = new SmallCluster()
                .topology("t", 2, 2)
                .place("t", "s1:6700", 1, 2)
                .plan("t")
                .topology("u", 2, 2)
                .place("u", "s1:6701", 1, 1)
                .place("u", "s1:6702", 2, 2);
        Cluster cluster = scheduled(small, new Idle());
        assertEquals("s1:6700=1,2", shown(cluster, "t"));
        assertEquals("s1:6701=1 s2:6700=2", shown(cluster, "u"));
    }

    @Test
    void aTopologyThatLacksAWorkerIsScheduledAllTheSame() {
        SmallCluster small = fullWithADeadWorker().plan("t");
        assertEquals(
                shown(scheduled(fullWithADeadWorker(), new EvenScheduler()), "t"),
                shown(scheduled(small, new EvenScheduler()), "t"));
    }

    @Test
    void theDeadDoNotComeToAHostThatStormHoldsBad() {
        SmallCluster small = packed().plan("t").kill("t", "s2:6701");
        Cluster cluster = small.cluster();
        cluster.blacklistHost("host2");
        SchedulingRound round = new SchedulingRound(small.existing(), small.plans());
        PlanAwareScheduler scheduler = new PlanAwareScheduler(new DefaultScheduler(), () -> round);
        scheduler.schedule(small.topologies(), cluster);
        assertEquals(
                "s1:6700=1,2,3,4,5,6,7,8,9 s1:6701=10,11,12,13,14 s1:6702=18 s2:6700=15,16,17", shown(cluster, "t"));
        assertEquals(Set.of("host2"), scheduler.passes(Map.of()).heldBack());
    }

    /** Its slots are another's now: what it has moved before would come back alone. */
    @Test
    void whatAHigherPriorityHasEvictedIsNotPlacedByItsPlan() {
        SmallCluster small = new SmallCluster()
                .topology("t", 4, 2)
                .place("t", "s1:6700", 1, 2)
                .place("t", "s2:6700", 3, 4)
                .plan("t", opening(1, "s1:6700", "s2:6702", Phase.SETTLE))
                .topology("first", 7, 4)
                .comesFirst("first");
        ResourceAwareScheduler ras = new ResourceAwareScheduler();
        ras.prepare(org.apache.storm.utils.Utils.readDefaultConfig(), new StormMetricsRegistry());
        Cluster cluster = scheduled(small, ras);
        assertEquals("", shown(cluster, "t"));
        assertEquals(7, cluster.getAssignmentById("first").getExecutorToSlot().size());
    }

    /** It places an isolated topology again whose workers are not as it wants them: its moves are not begun. */
    @Test
    void anIsolatedTopologyIsNamedAndItsMachineHeldBack() {
        SmallCluster small = new SmallCluster()
                .isolated("u")
                .topology("u", 4, 2)
                .place("u", "s2:6700", 1, 3)
                .place("u", "s2:6701", 4, 4)
                .plan("u")
                .topology("t", 1, 1)
                .place("t", "s1:6700", 1, 1)
                .plan("t");
        IsolationScheduler stock = new IsolationScheduler();
        Map<String, Object> conf = small.cluster().getConf();
        stock.prepare(conf, new StormMetricsRegistry());
        SchedulingRound round = new SchedulingRound(small.existing(), small.plans());
        PlanAwareScheduler scheduler = new PlanAwareScheduler(stock, () -> round);
        Cluster cluster = small.cluster();
        scheduler.schedule(small.topologies(), cluster);
        assertNotEquals("s2:6700=1,2,3 s2:6701=4", shown(cluster, "u"), "what was packed comes apart by restarts");
        StormPasses passes = scheduler.passes(conf);
        assertTrue(passes.undoes("u").contains("IsolationScheduler"), passes.undoes("u"));
        assertNull(passes.undoes("t"));
        String host = cluster.getHost(shown(cluster, "u").substring(0, 2));
        assertEquals(Set.of(host), passes.heldBack());
        assertNotNull(passes.closes(new SupervisorInfo(1, host), false));
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void aSlotThatAMoveHasOpenedIsUsedFromStopOn(Phase phase) {
        SmallCluster small = packed().plan("t", opening(1, "s1:6700", "s2:6702", phase));
        String opened = PACKED.replace("=1,2,", "=2,") + " s2:6702=1";
        assertEquals(phase.absorbed() ? opened : PACKED, shown(scheduled(small), "t"));
        SmallCluster unopened = packed().plan("t", move(1, "s1:6700", "s2:6702", phase));
        assertEquals(PACKED, shown(scheduled(unopened), "t"));
    }

    @Test
    void aSlotThatIsAnotherTopologysByNowIsNotOpened() {
        SmallCluster small = packed().topology("u", 1, 1)
                .place("u", "s2:6702", 1, 1)
                .plan("t", opening(1, "s1:6700", "s2:6702", Phase.STOP));
        assertEquals(PACKED, shown(scheduled(small), "t"));
        SmallCluster gone = packed().plan("t", opening(1, "s1:6700", "s3:6700", Phase.STOP));
        assertEquals(PACKED, shown(scheduled(gone), "t"));
    }

    @Test
    void theDeadDoNotGetTheSlotThatTheSameRoundOpens() {
        SmallCluster small = packed().kill("t", "s2:6701").plan("t", opening(1, "s1:6700", "s2:6702", Phase.STOP));
        assertEquals(
                "s1:6700=2,3,4,5,6,7,8,9 s1:6701=10,11,12,13,14 s1:6702=18 s2:6700=15,16,17 s2:6702=1",
                shown(scheduled(small), "t"));
    }

    @Test
    void twoDeadWorkersDoNotMeet() {
        String shown = shown(scheduled(packed().plan("t").kill("t", "s1:6700").kill("t", "s2:6701")), "t");
        assertEquals("s1:6701=10,11,12,13,14 s1:6702=1,2,3,4,5,6,7,8,9 s2:6700=15,16,17 s2:6702=18", shown);
    }

    @Test
    void anotherHostIfItsOwnIsFull() {
        SmallCluster small = new SmallCluster()
                .topology("t", 4, 4)
                .place("t", "s1:6700", 1, 1)
                .place("t", "s1:6701", 2, 2)
                .place("t", "s1:6702", 3, 3)
                .place("t", "s2:6700", 4, 4)
                .plan("t")
                .kill("t", "s1:6701");
        assertEquals("s1:6700=1 s1:6702=3 s2:6700=4 s2:6701=2", shown(scheduled(small), "t"));
    }

    @Test
    void notTheHostThatAnotherTopologyHasForItself() {
        SmallCluster small = new SmallCluster()
                .topology("t", 2, 2)
                .topology("u", 1, 1)
                .isolated("u")
                .place("t", "s1:6700", 1, 1)
                .place("t", "s2:6701", 2, 2)
                .place("u", "s2:6700", 1, 1)
                .plan("t")
                .kill("t", "s2:6701");
        assertEquals("s1:6700=1 s1:6701=2", shown(scheduled(small), "t"));
    }

    @Test
    void aRoundEndsByTheCpuThatItUses() {
        SmallCluster small = packed().plan("t").topology("u", 1, 1);
        AtomicLong cpuNanos = new AtomicLong();
        SchedulingRound round =
                new SchedulingRound(small.existing(), small.plans(), () -> cpuNanos.getAndAdd(2_000_000_001L));
        assertThrows(IllegalStateException.class, () -> round.prepare(small.topologies(), small.cluster()));
        SchedulingRound still = new SchedulingRound(small.existing(), small.plans(), () -> 0);
        assertNotNull(still.prepare(small.topologies(), small.cluster()));
    }

    @Test
    void withoutAFreeSlotStormsAnswerStands() {
        SmallCluster small = fullWithADeadWorker().plan("t");
        SmallCluster stock = fullWithADeadWorker();
        assertEquals(shown(scheduled(stock), "t"), shown(scheduled(small), "t"));
    }

    private static SmallCluster fullWithADeadWorker() {
        return new SmallCluster()
                .topology("t", 6, 6)
                .place("t", "s1:6700", 1, 1)
                .place("t", "s1:6701", 2, 2)
                .place("t", "s1:6702", 3, 3)
                .place("t", "s2:6700", 4, 4)
                .place("t", "s2:6701", 5, 5)
                .place("t", "s2:6702", 6, 6)
                .kill("t", "s1:6701");
    }

    @Test
    void allWorkersDeadComeBackAsTheyWere() {
        SmallCluster small = new SmallCluster()
                .topology("t", 4, 4)
                .plan("t")
                .place("t", "s1:6700", 1, 4)
                .kill("t", "s1:6700");
        assertEquals("s1:6701=1,2,3,4", shown(scheduled(small), "t"));
    }

    @Test
    void aNewTopologyGetsWhatIsFree() {
        SmallCluster small = packed().plan("t").kill("t", "s2:6701").topology("new", 3, 3);
        Cluster cluster = scheduled(small);
        assertEquals(PACKED.replace("s2:6701", "s2:6702"), shown(cluster, "t"));
        assertEquals("s1:6702=1,2,3", shown(cluster, "new"), "the one slot that is left");
    }

    @Test
    void rebalancedOrSubmittedIsStormsAlone() {
        SmallCluster rebalanced = new SmallCluster().topology("t", 4, 2).plan("t");
        SmallCluster stock = new SmallCluster().topology("t", 4, 2);
        assertEquals(shown(scheduled(stock), "t"), shown(scheduled(rebalanced), "t"));
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void onlyStopAndSettleAreAbsorbed(Phase phase) {
        String shown = shown(scheduled(packed().plan("t", move(1, "s1:6700", "s2:6701", phase))), "t");
        assertEquals(phase.absorbed() ? PACKED.replace("=1,2,", "=2,").replace("=18", "=1,18") : PACKED, shown);
    }

    @Test
    void whatStormMovedItselfIsNotTheirs() {
        Entry stale = new Entry(
                "m",
                new nstorm.wire.ExecutorId(1, 1),
                nstorm.wire.Slot.parse("s1:6700"),
                nstorm.wire.Slot.parse("s2:6701"),
                Phase.STOP,
                nstorm.wire.Slot.parse("s1:6700"),
                99,
                null);
        assertEquals(PACKED, shown(scheduled(packed().plan("t", stale)), "t"));
    }

    @Test
    void aDeadTargetAbsorbsNothing() {
        String shown = shown(
                scheduled(packed().kill("t", "s2:6701").plan("t", move(1, "s1:6700", "s2:6701", Phase.STOP))), "t");
        assertEquals(PACKED.replace("s2:6701", "s2:6702"), shown);
    }

    @Test
    void aDeadSourceStillGivesWhatMoved() {
        // Its other executors go to a free slot together; the moved one runs at the target.
        String shown = shown(
                scheduled(packed().kill("t", "s2:6700").plan("t", move(15, "s2:6700", "s1:6701", Phase.STOP))), "t");
        assertEquals("s1:6700=1,2,3,4,5,6,7,8,9 s1:6701=10,11,12,13,14,15 s2:6701=18 s2:6702=16,17", shown);
    }

    @Test
    void theLastOfASlotLeavesOnlyInSettle() {
        Entry[] all = {move(16, "s2:6700", "s1:6701", Phase.STOP), move(17, "s2:6700", "s1:6700", Phase.STOP)};
        Entry last = move(18, "s2:6701", "s2:6700", Phase.STOP);
        assertEquals(PACKED, shown(scheduled(packed().plan("t", last)), "t"));
        assertEquals(
                PACKED.replace(" s2:6701=18", ",18"),
                shown(scheduled(packed().plan("t", move(18, "s2:6701", "s2:6700", Phase.SETTLE))), "t"));
        // Where something comes at the same time, the slot is not empty.
        String exchanged =
                shown(scheduled(packed().plan("t", last, all[0], move(15, "s2:6700", "s2:6701", Phase.STOP))), "t");
        assertEquals("s1:6700=1,2,3,4,5,6,7,8,9 s1:6701=10,11,12,13,14,16 s2:6700=17,18 s2:6701=15", exchanged);
        // What stays may have been all that came elsewhere.
        SmallCluster chain = packed().plan("t", last, all[0], all[1], move(15, "s2:6700", "s1:6701", Phase.STOP));
        String shown = shown(scheduled(chain), "t");
        assertEquals("s1:6700=1,2,3,4,5,6,7,8,9,17 s1:6701=10,11,12,13,14,15 s2:6700=16 s2:6701=18", shown);
    }

    /** It may still go back: Storm would have it where it cannot be opened. */
    @ParameterizedTest
    @EnumSource(Way.class)
    void whatOpensLateLeavesOnlyInSettle(Way way) {
        boolean late = way == Way.SPOUT || way == Way.RENEW;
        String there = PACKED.replace("=1,2,", "=2,").replace("=18", "=1,18");
        for (Phase phase : List.of(Phase.STOP, Phase.SETTLE)) {
            Entry live = move(1, "s1:6700", "s2:6701", phase);
            Entry entry = new Entry(
                    live.id(),
                    live.executor(),
                    live.from(),
                    live.to(),
                    phase,
                    live.baseSlot(),
                    live.baseStartSecs(),
                    null,
                    way,
                    null,
                    true);
            boolean stays = late && phase == Phase.STOP || way == Way.UNKNOWN;
            assertEquals(stays ? PACKED : there, shown(scheduled(packed().plan("t", entry)), "t"), way + " " + phase);
        }
    }

    @Test
    void theResourceAwareSchedulerKeepsItsWord() {
        ResourceAwareScheduler ras = new ResourceAwareScheduler();
        SmallCluster small = packed().plan("t", move(1, "s1:6700", "s2:6701", Phase.SETTLE));
        ras.prepare(org.apache.storm.utils.Utils.readDefaultConfig(), new StormMetricsRegistry());
        assertEquals(PACKED.replace("=1,2,", "=2,").replace("=18", "=1,18"), shown(scheduled(small, ras), "t"));
    }

    @Test
    void ifPreparingFailsStormSeesTheUntouchedCluster() {
        SmallCluster small = packed().kill("t", "s2:6701");
        KnownPlans broken = new KnownPlans() {
            @Override
            public Plan of(String topologyId) {
                throw new IllegalStateException("broken");
            }

            @Override
            public boolean manages(String topologyId) {
                return true;
            }
        };
        Watched stock = new Watched(new EvenScheduler());
        Cluster cluster = small.cluster();
        SchedulingRound round = new SchedulingRound(small.existing(), broken);
        new PlanAwareScheduler(stock, () -> round).schedule(small.topologies(), cluster);
        assertSame(cluster, stock.shown.get(0));
        assertTrue(shown(cluster, "t").contains("18"), "stock placed the dead one");
    }
}
