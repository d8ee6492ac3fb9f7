"""An imagined Storm with the hooks, and the system that makes the moves."""

import heapq
import math
from collections.abc import Iterable

import numpy as np
from msgspec import UNSET

from controller.core.allowed import Allowed
from controller.core.cold import COLD_S
from controller.core.decision import Veto
from controller.core.topology import TopologyView
from deploy.sim.flow.load import Meter
from deploy.sim.flow.workload import ACKER, Part
from deploy.sim.flow.world import World
from deploy.sim.restart_cost import (
    Act,
    Change,
    Delays,
    SimulatedMove,
    System,
    changes,
    restart,
)
from migration import protocol
from migration.model import (
    AppliedPlan,
    Component,
    Edge,
    Entry,
    EntryAck,
    EntryState,
    ExecutorId,
    ExecutorWay,
    Node,
    NodeAcks,
    PersistedSlot,
    Phase,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
    SupervisorAck,
    Timing,
    Way,
    WorkerAck,
)
from migration.observation import Observation
from migration.wire import SPEAKS

CLUSTER, EPOCH, VERSION = "simulated", 1, "0"
FIRST_PORT = 6700
# The steps of a move with which tuples begin to go to the target.
_SWITCHES = frozenset({(Phase.SWITCH, Phase.DRAIN), (Phase.QUIET, Phase.STOP)})


def unix_s(now_s: float) -> float:
    """Give the time of day in a run: its JVMs have compiled their code when it begins."""
    return COLD_S + now_s


def slots_of(world: World) -> tuple[Slot, ...]:
    """Name the workers' slots, by their index."""
    size = world.hardware.workers
    return tuple(Slot(f"n{n}", FIRST_PORT + w % size) for w, n in enumerate(world.node_of))


class Assigned:
    """The slots of all topologies, as Storm assigns them."""

    def __init__(self) -> None:
        self.workers: list[list[int]] = []  # of each executor, a list a topology
        self.version = 0

    def taken(self) -> list[int]:
        return sorted({worker for workers in self.workers for worker in workers})


class Storm:
    """Storm's own knowledge of a topology, the plan, and the moves under way."""

    def __init__(
        self,
        world: World,
        meter: Meter,
        everyones: Assigned,
        *,
        name: str,
        system: System,
        delays: Delays,
        timing: Timing,
        random: np.random.Generator,
    ) -> None:
        self.name, self.topology = name, f"{name}-1"
        self._world, self._meter, self._system, self._delays = world, meter, system, delays
        self._timing, self._random = timing, random
        self._slots = slots_of(world)
        self._worker = {slot: w for w, slot in enumerate(self._slots)}
        self._ids = [ExecutorId(e + 1, e + 1) for e in range(len(world.place))]
        ways = [_way_of(world.parts[c]) for c in world.component]
        self._ways = {
            one: ExecutorWay(one, way)
            for one, way in zip(self._ids, ways, strict=True)
            if way is not Way.LIVE
        }
        # Storm's assignment, and what supervisors and workers have read of it.
        self._assigned: list[int] = world.place.tolist()
        self._everyones, self._everyones_version = everyones, 0
        everyones.workers.append(self._assigned)
        self._known = list(self._assigned)
        self._start = [0] * len(self._assigned)
        self._held_plan = protocol.resume(Plan(CLUSTER, EPOCH, 0, self.topology), EPOCH, 0.0)
        self._due: list[tuple[float, int, Change]] = []
        self._round_s = self._read_s = delays.nimbus_s
        self._number = 0
        self._published: Publication | None = None
        self.moved: list[tuple[float, SimulatedMove]] = []
        self.jvms_dead = 0  # of too full a heap

    def view(self) -> TopologyView:
        """Show the topology with the answers of its own JVMs."""
        return TopologyView(self._publication(), self._held_plan.plan, self._acks())

    def write(self, plan: Plan) -> list[int]:
        """Begin the new moves of a plan that was made at this very moment; give what they open."""
        begun = plan.entries[len(self._held_plan.plan.entries) :]
        self.redeploy(begun)
        return [self._worker[entry.target] for entry in begun if entry.phase is Phase.OPEN]

    def leave(self, worker: int) -> None:
        """End the worker that another topology takes the slot of, if it has none of ours left."""
        if self._world.up[worker] and worker not in self._assigned:
            self.plan_change(Change(self._world.now_s, Act.KILL, worker))

    def end_full_workers(self) -> None:
        """Let each worker die whose heap is too small; its supervisor starts it again."""
        world = self._world
        live_mb = world.heaps.live_mb(world.place)
        full = np.flatnonzero(world.up & (live_mb > world.hardware.heap_mb))
        self.jvms_dead += len(full)
        for worker in full.tolist():
            self.restart(worker)

    def restart(self, worker: int) -> None:
        """End a worker now; its supervisor starts it again."""
        for change in restart(worker, self._world.now_s, self._delays):
            self.plan_change(change)

    def redeploy(self, entries: Iterable[Entry]) -> Plan:
        """Begin moves together."""
        now_s, entries = self._world.now_s, tuple(entries)
        shifts = [
            SimulatedMove(e.executor.start - 1, self._worker[e.source], self._worker[e.target])
            for e in entries
        ]
        self.moved += [(now_s, shift) for shift in shifts]
        self._held_plan = protocol.begin(self._held_plan, entries, now_s).held_plan
        for entry in entries:
            if entry.phase is Phase.OPEN:
                # A worker that was left still runs here, and does nothing: it ends before the new.
                self.restart(self._worker[entry.target])
        if self._system is not System.NSTORM:
            made = changes(
                self._system,
                shifts,
                now_s,
                delays=self._delays,
                node_of=self._world.node_of.tolist(),
                random=self._random,
            )
            for change in made:
                self.plan_change(change)
        return self._held_plan.plan

    def plan_change(self, change: Change) -> None:
        """Let something happen later."""
        self._number += 1
        heapq.heappush(self._due, (change.at_s, self._number, change))

    def entry(self, executor: int, target: int, begun: list[Entry]) -> Entry | Veto:
        """Make the entry of a move together with those that begin, if it is allowed."""
        observation = Observation.of(self._publication(), self._held_plan.plan, self._acks())
        return Allowed(observation).entry(self._ids[executor], self._slots[target], begun)

    def advance(self) -> None:
        """Let everything happen that is due by now."""
        now_s = self._world.now_s
        while self._due and self._due[0][0] <= now_s:
            self._happen(heapq.heappop(self._due)[2])
        if now_s >= self._round_s:
            self._round_s += self._delays.nimbus_s
            self._read_s = now_s + self._delays.nimbus_s / 2
            self._absorb()
        if now_s >= self._read_s:
            self._known = list(self._assigned)
        if self._system is System.NSTORM and self._held_plan.plan.entries:
            self._look()

    def _happen(self, change: Change) -> None:
        world, who = self._world, change.who
        self._meter.read()
        if change.act is Act.KILL and world.up[who]:
            world.kill(who)
            self._meter.reborn(who)
        elif change.act is Act.START:
            world.up[who] = True
        elif change.act is Act.STOP:
            world.running[who] = False
            world.lose(np.arange(len(world.place)) == who)
        elif change.act is Act.MOVE:
            world.move(who, change.to)
        elif change.act is Act.RUN:
            world.running[who] = True
        elif change.act is Act.DONE:
            self._end(who)
        if not world.up.any():
            # The spouts' workers are also new.
            world.forget_lost()
        self._changed()

    def _end(self, executor: int) -> None:
        """Take a move made by restarts out of the plan: Storm itself has made it."""
        plan = self._held_plan.plan
        left = tuple(e for e in plan.entries if e.executor.start != executor + 1)
        self._assigned[executor] = int(self._world.place[executor])
        self._start[executor] = round(unix_s(self._world.now_s))
        self._known = list(self._assigned)
        plan = protocol.following(plan, left, EPOCH)
        self._held_plan = protocol.resume(plan, EPOCH, self._world.now_s)

    def _absorb(self) -> None:
        """Take a round of Nimbus: moves from STOP on become Storm's own assignment."""
        for entry in self._held_plan.plan.entries:
            if entry.absorbable and entry.void is None:
                self._assigned[entry.executor.start - 1] = self._worker[entry.target]
        self._changed()

    def _changed(self) -> None:
        """Let all topologies be published again: they share the slots."""
        self._everyones.version += 1

    def _look(self) -> None:
        """Let the shipped protocol look once; routes switch as DRAIN is written."""
        now_s, before = self._world.now_s, self._held_plan.plan
        taken = protocol.step(
            self._held_plan, self._publication(), self._acks(), now_s, self._timing
        )
        self._held_plan = taken.held_plan
        now = {entry.id: entry.phase for entry in taken.held_plan.plan.entries}
        for entry in before.entries:
            executor, step = entry.executor.start - 1, (entry.phase, now.get(entry.id))
            if step in _SWITCHES:
                self._meter.read()
                self._world.move(executor, self._worker[entry.target])
                self._world.running[executor] = False
                self.plan_change(Change(now_s + self._delays.pause_s, Act.RUN, executor))
            elif Phase.QUIET in step and step[0] is not step[1]:
                # The spout emits nothing until it opens at the target, or the move is given up.
                self._meter.read()
                self._world.running[executor] = step[1] is not Phase.QUIET

    def _publication(self) -> Publication:
        if self._published is None or self._everyones_version != self._everyones.version:
            self._everyones_version = self._everyones.version
            self._published = self._publish()
        return self._published

    def _publish(self) -> Publication:
        world = self._world
        names = [part.id for part in world.parts]
        # A rebalance is the only thing after which no worker at all is up.
        status = "ACTIVE" if world.up.any() else "REBALANCING"
        per_node = tuple(range(FIRST_PORT, FIRST_PORT + world.hardware.workers))
        counts = world.hardware.counts_memory and not math.isinf(world.hardware.memory_mb)
        has_mb = world.hardware.memory_mb if counts else UNSET
        in_use = np.bincount(world.node_of[self._everyones.taken()], minlength=world.hardware.nodes)
        return Publication(
            topology=self.topology,
            name=self.name,
            status=status,
            refresh_poll_secs=10,
            components=tuple(
                Component(p.id, p.kind, p.executors, p.memory_mb if counts else UNSET)
                for p in world.parts
            ),
            edges=tuple(
                Edge(k.source, k.target, "default", k.grouping.replace("near", "shuffle"))
                for k in world.topology.data_links
            ),
            nodes=tuple(
                Node(f"n{n}", f"n{n}", 100 * world.hardware.cores, per_node, used, memory_mb=has_mb)
                for n, used in enumerate(in_use.tolist())
            ),
            executors=tuple(
                PlacedExecutor(self._ids[e], names[c], self._slots[w], self._start[e])
                for e, (c, w) in enumerate(
                    zip(world.component.tolist(), self._assigned, strict=True)
                )
            ),
            speaks=SPEAKS,
        )

    def _acks(self) -> tuple[NodeAcks, ...]:
        world = self._world
        now_ms = round(world.now_s * 1000)
        here: list[list[ExecutorId]] = [[] for _ in self._slots]
        kept: list[list[ExecutorId]] = [[] for _ in self._slots]
        for e, (w, known) in enumerate(zip(world.place.tolist(), self._known, strict=True)):
            here[w].append(self._ids[e])
            kept[known].append(self._ids[e])
        read = AppliedPlan(self.topology, self._held_plan.plan.epoch, self._held_plan.plan.version)
        found = []
        for n in range(world.hardware.nodes):
            on_node = np.flatnonzero(world.node_of == n).tolist()
            workers = [self._ack(w, here[w], now_ms) for w in on_node if world.up[w]]
            persisted = tuple(
                PersistedSlot(self._slots[w].port, self.topology, tuple(kept[w]))
                for w in on_node
                if kept[w]
            )
            supervisor = SupervisorAck(
                f"n{n}", 1, VERSION, SPEAKS, now_ms, CLUSTER, (read,), persisted
            )
            found.append(
                NodeAcks(f"n{n}", now_ms, VERSION, SPEAKS, CLUSTER, tuple(workers), supervisor)
            )
        return tuple(found)

    def _ack(self, w: int, executors: list[ExecutorId], now_ms: int) -> WorkerAck:
        plan, slot = self._held_plan.plan, self._slots[w]
        entries = tuple(
            EntryAck(
                entry.id,
                self._state(entry, slot, progress.since_s),
                self._slots[self._known[entry.executor.start - 1]],
            )
            for entry, progress in zip(plan.entries, self._held_plan.progress, strict=True)
        )
        return WorkerAck(
            topology=self.topology,
            slot=slot,
            pid=1,
            incarnation=f"{slot}-{self._meter.born[w]}",
            hooks=VERSION,
            speaks=SPEAKS,
            time_ms=now_ms,
            cluster=plan.cluster,
            epoch=plan.epoch,
            version=plan.version,
            entries=entries,
            executors=tuple(executors),
            ways=tuple(self._ways[one] for one in executors if one in self._ways),
        )

    def _state(self, entry: Entry, slot: Slot, since_s: float) -> EntryState:
        """Compute what a worker has done for a phase: nothing at first, all of it after a while."""
        if self._world.now_s - since_s < self._delays.answer_s:
            return EntryState.NONE
        if entry.phase is Phase.OPEN:
            return EntryState.NONE
        if entry.phase is Phase.PREPARE or (entry.phase is Phase.QUIET and slot == entry.target):
            ends = (entry.source, entry.target)
            return EntryState.READY if slot in ends else EntryState.NONE
        if entry.phase is Phase.UNDO:
            return EntryState.STOPPED if slot == entry.target else EntryState.ROUTED
        if slot != entry.source or entry.phase is Phase.SWITCH:
            return EntryState.ROUTED
        return EntryState.DRAINED if entry.phase is Phase.DRAIN else EntryState.STOPPED


def _way_of(part: Part) -> Way:
    """Choose the way of a component's executors; its bolts keep nothing in the bolt."""
    if part.kind == "spout":
        return Way.SPOUT
    return Way.ACKER if part.id == ACKER else Way.LIVE
