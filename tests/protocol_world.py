"""A small world of workers, supervisors and a Nimbus that keep the rules of PROTOCOL.md.

Nothing happens on its own: a test lets each party take its turn, in any order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from msgspec import UNSET, structs

from controller.core.allowed import Allowed
from controller.core.decision import Outcome, Veto
from controller.core.topology import free_slots
from migration.model import (
    ABSORBED,
    OPENS_LATE,
    AppliedPlan,
    Component,
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
from migration.protocol import Event, FinishedMove, HeldPlan, MoveOutcome, Step, begin, resume, step
from migration.wire import SPEAKS

TOPOLOGY, CLUSTER = "wc-1", "c1"
TIMING = Timing()
POLL_S = 10

TURNS = ("supervise", "hear", "learn", "keep", "apply", "refresh", "work", "speak")
# What goes through a node's agent: plans down to worker and supervisor, answers up.
AGENT_TURNS = ("hear", "apply", "learn", "speak")

Assignment = dict[ExecutorId, tuple[Slot, int]]


@dataclass
class Worker:
    """A hooked JVM with its reconciler, and the supervisor that keeps it."""

    slot: Slot
    view: Assignment
    plan: Plan
    incarnation: int = 1
    running: set[ExecutorId] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)
    spouts: frozenset[ExecutorId] = frozenset()
    # Bolts that hold something open, and the copies here that hold it, those of spouts too.
    renewed: frozenset[ExecutorId] = frozenset()
    opened: set[ExecutorId] = field(default_factory=set)
    # Spouts whose tuples do not finish.
    stalled: set[ExecutorId] = field(default_factory=set)
    # What cannot be opened here by a plan, and the moves that this worker has refused for it.
    unopenable: set[ExecutorId] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    kills: int = 0
    silent: bool = False
    dead: bool = False
    closed: bool = False
    said: NodeAcks | None = None
    supervisor_view: Assignment = field(default_factory=dict)
    supervisor_plan: Plan = field(default_factory=lambda: Plan(CLUSTER, 0, -1, TOPOLOGY))
    persisted: set[ExecutorId] = field(default_factory=set)
    # What the bolts of carried executors have counted: the copy here, and all that ran here.
    carried: frozenset[ExecutorId] = frozenset()
    counts: Counter[ExecutorId] = field(default_factory=Counter)
    counted: Counter[ExecutorId] = field(default_factory=Counter)
    # By the moves' ids: states that have come here, and copies here that have begun with one.
    arrived: dict[str, int] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    # Executors that keep tuples to ack later, and which keep some now: the copy here.
    keepers: frozenset[ExecutorId] = frozenset()
    keeping: set[ExecutorId] = field(default_factory=set)
    lost: int = 0
    # Whether there is a file that switches this node off, made by its agent or by hand.
    told_off: bool = False
    file: bool = False
    stock: bool = False  # started while it was off, without hooks

    @property
    def off(self) -> bool:
        return self.told_off or self.file

    @property
    def inert(self) -> bool:
        """Whether the hooks of the worker do nothing until they are switched on."""
        here = {executor for executor, (at, _) in self.view.items() if at == self.slot}
        return self.stock or (self.off and not self.plan.entries and self.running == here)

    def holds_still(self, executor: ExecutorId) -> bool:
        """Check whether the copy here takes no tuple, by what this worker has read."""
        entry = self.entry(executor)
        if entry is None or entry.way is not Way.CARRY:
            return False
        if entry.source == self.slot:
            return entry.phase in (Phase.CARRY, Phase.RECALL, Phase.STOP, Phase.SETTLE)
        return entry.phase not in (Phase.STOP, Phase.SETTLE) and entry.id not in self.begun

    def count(self) -> None:
        """Let the bolts count, and what has ended forget."""
        self.counts = Counter({e: self.counts[e] for e in self.counts if e in self.running})
        here = [entry for entry in self.plan.entries if entry.executor in self.running]
        self.arrived = {e.id: self.arrived[e.id] for e in here if e.id in self.arrived}
        self.begun &= {entry.id for entry in here}
        for entry in here:
            # What comes later than the recall is for nobody.
            if entry.phase is Phase.CARRY and entry.id in self.arrived.keys() - self.begun:
                self.counts[entry.executor] = self.arrived[entry.id]
                self.begun.add(entry.id)
        for executor in self.running & self.carried:
            if not self.holds_still(executor):
                self.counts[executor] += 1
                self.counted[executor] += 1
        self.keeping &= self.running
        keepers = self.running & (self.keepers | self.renewed)
        self.keeping |= {e for e in keepers if self.owner(e) == self.slot and not self.quiet(e)}

    def carry(self, target: Worker) -> None:
        """Send what copies here have counted to where they go, if both ends hold still."""
        for entry in self.plan.entries:
            if entry.phase is not Phase.CARRY or (self.slot, target.slot) != (
                entry.source,
                entry.target,
            ):
                continue
            here, there = self.entry(entry.executor), target.entry(entry.executor)
            # The target takes pieces also before it has read of CARRY, and may read of it late.
            waits = there is not None and there.id == entry.id
            if waits and here == entry and entry.executor in self.running & target.running:
                target.arrived[entry.id] = self.counts[entry.executor]

    def entry(self, executor: ExecutorId) -> Entry | None:
        """Return the entry that counts here, by what this worker has read."""
        if self.stock:
            return None
        for entry in self.plan.entries:
            if entry.executor == executor and entry.counts(*self.view.get(executor, (None, None))):
                return entry
        return None

    def owner(self, executor: ExecutorId) -> Slot:
        entry = self.entry(executor)
        return self.view[executor][0] if entry is None else entry.owner

    def quiet(self, executor: ExecutorId) -> bool:
        """Check whether the copy here takes no tuple, since it is to be closed."""
        entry = self.entry(executor)
        return entry is not None and entry.phase is Phase.QUIET and entry.source == self.slot

    def refuses(self, entry: Entry) -> bool:
        """Check whether the copy here is not opened, and never will be in this move."""
        late = entry.way in OPENS_LATE and entry.phase is Phase.STOP and entry.target == self.slot
        absorbed = self.view[entry.executor][0] == entry.target
        if not late or absorbed or self.entry(entry.executor) != entry:
            return False
        fails = entry.executor in self.unopenable - self.opened
        return fails or entry.id in self.refused

    def may_run(self, executor: ExecutorId) -> bool:
        entry = self.entry(executor)
        if entry is None:
            return self.view[executor][0] == self.slot
        if entry.phase in (Phase.STOP, Phase.SETTLE):
            return entry.target == self.slot
        if self.quiet(executor):
            return executor in self.stalled | self.keeping
        if entry.phase is Phase.OPEN:
            return entry.source == self.slot
        return self.slot in (entry.source, entry.target)

    def restart(self) -> None:
        """Start again: what this slot owns, and the targets to prepare; never a copy to drain."""
        self.dead = self.closed = False
        self.stock = self.off and not self.plan.entries
        self.incarnation += 1
        self.view = dict(self.supervisor_view)
        self.drained.clear()
        self.counts.clear()
        self.arrived.clear()
        self.begun.clear()
        self.refused.clear()
        self.running = {executor for executor in self.view if self.owner(executor) == self.slot}
        self.opened = self.running & (self.spouts | self.renewed)

    def die(self) -> None:
        """End the JVM; its supervisor lives on, and starts another one some time."""
        self.dead = True
        self.running.clear()
        self.opened.clear()
        self.drained.clear()

    def apply(self, plan: Plan) -> None:
        if plan.stamp > self.plan.stamp and not (self.off and not self.plan.entries):
            self.plan = plan
            if not self.stock:
                self.reconcile()

    def refresh(self) -> None:
        self.view = dict(self.supervisor_view)
        self.reconcile()

    def reconcile(self) -> None:
        """Start and stop what the plan explains; anything else is left to Storm's restart."""
        planned = set() if self.stock else {entry.executor for entry in self.plan.entries}
        owned = {executor for executor in self.view if self.owner(executor) == self.slot}
        if (owned - self.running | self.stale()) - planned:
            self.kills += 1
            self.restart()

    def stale(self) -> set[ExecutorId]:
        return {executor for executor in self.running if not self.may_run(executor)}

    def work(self) -> None:
        """Finish what takes time: preparing, draining, stopping."""
        self.lost += len(self.keeping & self.stale())
        self.running -= self.stale()
        for entry in self.plan.entries:
            if self.entry(entry.executor) is None:
                continue
            if self.refuses(entry):
                self.refused.add(entry.id)
                self.running.discard(entry.executor)
                continue
            early = entry.phase in (Phase.PREPARE, Phase.QUIET)
            if (early and entry.target == self.slot) or (
                entry.owner == self.slot and entry.phase is not Phase.QUIET
            ):
                self.running.add(entry.executor)
            drains = entry.phase is Phase.DRAIN and entry.source == self.slot
            leaves = entry.phase is Phase.UNDO and entry.target == self.slot
            if (drains or leaves or self.quiet(entry.executor)) and entry.executor in self.keeping:
                self.keeping.discard(entry.executor)
            elif drains:
                self.drained.add(entry.id)
            elif leaves:
                self.running.discard(entry.executor)
        owned = {executor for executor in self.running if self.owner(executor) == self.slot}
        self.opened = self.running & (self.spouts | self.renewed) & (self.opened | owned)

    def state(self, entry: Entry) -> EntryState:
        target = entry.target == self.slot
        proves = entry.way is Way.LIVE and entry.source == self.slot
        ahead = entry.phase is Phase.OPEN or (
            entry.phase is Phase.PREPARE and not (target or proves)
        )
        if self.entry(entry.executor) is None or ahead:
            return EntryState.NONE
        here = entry.executor in self.running
        if target and entry.phase in ABSORBED and entry.way in OPENS_LATE:
            return self._open(entry)
        if entry.phase is Phase.PREPARE or (entry.phase is Phase.QUIET and target):
            return self._ready(entry, proves=proves) if here else EntryState.NONE
        if entry.phase is Phase.UNDO and (target or entry.source == self.slot) and not here:
            return EntryState.STOPPED if target else EntryState.NONE
        if not here and self.slot in (entry.source, entry.target):
            return EntryState.STOPPED if entry.source == self.slot else EntryState.NONE
        return self._running(entry)

    def _open(self, entry: Entry) -> EntryState:
        if entry.id in self.refused and self.refuses(entry):
            return EntryState.REFUSED
        return EntryState.ROUTED if entry.executor in self.opened else EntryState.NONE

    def _ready(self, entry: Entry, *, proves: bool) -> EntryState:
        remembers = proves and entry.executor in self.stalled
        return EntryState.REFUSED if remembers else EntryState.READY

    def _running(self, entry: Entry) -> EntryState:
        if entry.source == self.slot and entry.id in self.drained:
            return EntryState.DRAINED
        if entry.phase is Phase.QUIET:
            stalls = entry.source == self.slot and entry.executor in self.stalled
            return EntryState.REFUSED if stalls else EntryState.ROUTED
        begun = entry.phase in (Phase.CARRY, Phase.RECALL) and entry.id in self.begun
        return EntryState.LOADED if begun else EntryState.ROUTED

    def supervise(self, assignment: Assignment) -> None:
        """Let the supervisor learn Storm's newest assignment; its worker reads it from there."""
        self.supervisor_view = dict(assignment)

    def learn(self, plan: Plan) -> None:
        """Let the supervisor read the plan."""
        latched = self.off and not self.supervisor_plan.entries
        if plan.stamp > self.supervisor_plan.stamp and not latched:
            self.supervisor_plan = plan

    def keep(self) -> None:
        """Let the supervisor's slot accept the set and persist it, or kill the worker."""
        after = {executor for executor, (at, _) in self.supervisor_view.items() if at == self.slot}
        opened = self.slot in self.supervisor_plan.opened_slots()
        if self.closed and (after or opened):
            # It reads the same file as its supervisor.
            self.plan = max(self.plan, self.supervisor_plan, key=lambda plan: plan.stamp)
            self.restart()
        elif not (self.closed or after or opened):
            self.die()
            self.closed = True
            self.persisted = after
        explained = {
            entry.executor
            for entry in self.supervisor_plan.entries
            if entry.void is None and self.slot in (entry.source, entry.target)
        }
        if not self.persisted ^ after <= explained:
            self.kills += 1
            self.restart()
        self.persisted = after

    def speak(self, time_ms: int) -> None:
        """Let the agent publish what the JVMs of this node report."""
        if self.silent:
            return
        entries = tuple(
            EntryAck(e.id, self.state(e), self.view[e.executor][0]) for e in self.plan.entries
        )
        ack = WorkerAck(
            TOPOLOGY,
            self.slot,
            1,
            f"{self.slot}-{self.incarnation}",
            "0.2.0",
            SPEAKS,
            time_ms,
            CLUSTER,
            self.plan.epoch,
            self.plan.version,
            entries,
            tuple(sorted(self.running)),
            ways=(
                *(ExecutorWay(e, Way.SPOUT) for e in sorted(self.spouts)),
                *(ExecutorWay(e, Way.CARRY) for e in sorted(self.carried)),
                *(ExecutorWay(e, Way.DRAIN) for e in sorted(self.keepers)),
                *(ExecutorWay(e, Way.RENEW) for e in sorted(self.renewed)),
            ),
        )
        if self.inert:
            ack = structs.replace(ack, cluster="", epoch=0, version=-1, entries=(), off="a fault")
        kept = () if self.closed else (self._persisted_slot(),)
        read = AppliedPlan(TOPOLOGY, self.supervisor_plan.epoch, self.supervisor_plan.version)
        acks = () if self.dead or self.stock else (ack,)
        supervisor = SupervisorAck(
            self.slot.supervisor, 1, "0.2.0", SPEAKS, time_ms, CLUSTER, (read,), kept
        )
        if self.off and not self.supervisor_plan.entries:
            supervisor = structs.replace(supervisor, plans=(), error="the hooks are off: a fault")
        self.said = NodeAcks(
            self.slot.supervisor,
            time_ms,
            "0.2.0",
            SPEAKS,
            CLUSTER,
            acks,
            supervisor,
            off="a fault" if self.off else UNSET,
        )

    def _persisted_slot(self) -> PersistedSlot:
        return PersistedSlot(self.slot.port, TOPOLOGY, tuple(sorted(self.persisted)))


class World:
    """Storm's assignment, the stored plan, one worker a node, and a leader."""

    def __init__(
        self,
        slots: int = 3,
        executors: int = 4,
        spouts: int = 0,
        carried: int = 0,
        keepers: int = 0,
        *,
        renewed: int = 0,
        used: int | None = None,
    ) -> None:
        """Lay it out; the executors are in the first `used` slots."""
        self.now_s, self.epoch, self.moves = 0.0, 1, 0
        self.slots = [Slot(f"s{i}", 6700) for i in range(slots)]
        self.executors = [ExecutorId(i, i) for i in range(1, executors + 1)]
        self.storm: Assignment = {
            executor: (self.slots[i % (used or slots)], 100)
            for i, executor in enumerate(self.executors)
        }
        self.spouts = frozenset(self.executors[:spouts])
        self.carried = frozenset(self.executors[spouts : spouts + carried])
        self.keepers = frozenset(self.executors[spouts + carried :][:keepers])
        self.renewed = frozenset(self.executors[spouts + carried + keepers :][:renewed])
        self.status = "ACTIVE"
        self.off = False  # whether `/nstorm/off` is not empty
        self.stored = Plan(CLUSTER, 1, 0, TOPOLOGY)
        self.publication = self.publish()
        self.workers = [
            Worker(
                slot,
                dict(self.storm),
                self.stored,
                spouts=self.spouts,
                renewed=self.renewed,
                supervisor_view=dict(self.storm),
                carried=self.carried,
                keepers=self.keepers,
            )
            for slot in self.slots
        ]
        for worker in self.workers:
            worker.keep()
            worker.running = set(worker.persisted)
            worker.opened = worker.running & (self.spouts | self.renewed)
            worker.kills = 0
            worker.speak(0)
        self.held_plan: HeldPlan = resume(self.stored, self.epoch, 0.0)
        self.finished: list[FinishedMove] = []
        self.events: list[Event] = []

    def worker(self, slot: Slot) -> Worker:
        return next(worker for worker in self.workers if worker.slot == slot)

    def publish(self) -> Publication:
        self.publication = Publication(
            TOPOLOGY,
            "wc",
            self.status,
            POLL_S,
            (Component("b", "bolt", len(self.executors)),),
            (),
            tuple(
                PlacedExecutor(executor, "b", slot, start)
                for executor, (slot, start) in self.storm.items()
            ),
            tuple(Node(slot.supervisor, "h", 100.0, (slot.port,), 1) for slot in self.slots),
            SPEAKS,
        )
        return self.publication

    def fresh(self) -> list[NodeAcks]:
        oldest_ms = (self.now_s - TIMING.ack_fresh_s) * 1000
        words = [w.said for w in self.workers if w.said is not None and not w.silent]
        return [said for said in words if said.time_ms >= oldest_ms]

    def absorb(self) -> None:
        """Take a round of Nimbus."""
        due = {
            entry.executor: entry
            for entry in self.stored.entries
            if entry.absorbable
            and entry.counts(*self.storm[entry.executor])
            and self.storm[entry.executor][0] != entry.target
            and (entry.opens or entry.target in {slot for slot, _ in self.storm.values()})
        }
        while held := self._last(due):
            for executor in held:
                del due[executor]
        for executor, entry in due.items():
            self.storm[executor] = (entry.target, self.storm[executor][1] + 1)
        self.publish()

    def _last(self, due: dict[ExecutorId, Entry]) -> list[ExecutorId]:
        """List those in STOP whose slots would be empty."""
        used = {due[e].target if e in due else slot for e, (slot, _) in self.storm.items()}
        return [
            executor
            for executor, entry in due.items()
            if entry.phase is Phase.STOP and entry.source not in used
        ]

    def rebalance(self, executor: ExecutorId, slot: Slot) -> None:
        """Let the user move an executor in Storm's own way."""
        start = max(start for _, start in self.storm.values()) + 1
        self.storm[executor] = (slot, start)

    def take_over(self) -> None:
        """Let another leader be elected."""
        self.epoch += 1
        self.held_plan = resume(self.stored, self.epoch, self.now_s)

    def write(self, result: Step) -> None:
        if result.plan is not None:
            assert result.plan.version == self.stored.version + 1
            assert result.plan.stamp > self.stored.stamp
            self.stored = result.plan
        self.held_plan = result.held_plan
        self.finished += result.finished
        self.events += result.events

    def move(self, executor: ExecutorId, target: Slot) -> Entry | Veto:
        self.moves += 1
        observation = Observation.of(self.publication, self.stored, self.fresh())
        if self.off or observation.switched_off:
            # The plan that begins a move is written only while the node is as it was.
            return Veto(Outcome.STAND_BACK, "switched off")
        free = free_slots(self.publication.nodes, self.publication.slots, self.fresh())
        entry = Allowed(observation).entry(executor, target, free=free)
        if isinstance(entry, Entry):
            entry = structs.replace(entry, id=f"m{self.moves}")
            self.write(begin(self.held_plan, [entry], self.now_s))
        return entry

    def lead(self) -> Step:
        observation = Observation.of(self.publication, self.stored, self.fresh())
        if self.off or observation.switched_off:
            self.cancel()
        result = step(self.held_plan, self.publication, self.fresh(), self.now_s, TIMING)
        self.write(result)
        return result

    def everybody(self, seconds: float = 0.05, lagging: frozenset[str] = frozenset()) -> None:
        """Let everybody but the leader take a turn, except for what lags behind."""
        self.now_s += seconds
        if "absorb" not in lagging:
            self.absorb()
        for index, worker in enumerate(self.workers):
            for turn in TURNS:
                if f"{turn} {index}" not in lagging:
                    self.turn(turn, worker)

    def rounds(
        self, count: int, seconds: float = 0.05, lagging: frozenset[str] = frozenset()
    ) -> list[Phase]:
        """Let everybody take turns, each time followed by the leader; return the phases seen."""
        seen = []
        for _ in range(count):
            self.everybody(seconds, lagging)
            self.lead()
            seen += self.phases()
        return seen

    def until(
        self, phase: Phase, seconds: float = 0.05, lagging: frozenset[str] = frozenset()
    ) -> None:
        """Let everybody take turns until the only move is in a phase."""
        while self.phases() != [phase]:
            self.everybody(seconds, lagging)
            self.lead()

    def cancel(self) -> None:
        """Take all moves back, as an operator does."""
        progress = tuple(replace(one, cancelled=True) for one in self.held_plan.progress)
        self.held_plan = replace(self.held_plan, progress=progress)

    def turn(self, turn: str, worker: Worker) -> None:
        if worker.dead and turn in ("apply", "refresh", "work"):
            return
        if turn == "supervise":
            worker.supervise(self.storm)
        elif turn == "hear":
            if self.off and not worker.told_off:
                # The agent reads the plans after the switch, and the JVMs as well.
                worker.learn(self.stored)
                if not worker.dead:
                    worker.apply(self.stored)
            worker.told_off = self.off
        elif turn == "learn":
            worker.learn(self.stored)
        elif turn == "keep":
            worker.keep()
        elif turn == "apply":
            worker.apply(self.stored)
        elif turn == "refresh":
            worker.refresh()
        elif turn == "work":
            worker.work()
            worker.count()
            for target in self.workers:
                worker.carry(target)
        else:
            worker.speak(int(self.now_s * 1000))

    def copies(self, executor: ExecutorId) -> list[Slot]:
        return [worker.slot for worker in self.workers if executor in worker.running]

    def phases(self) -> list[Phase]:
        return [entry.phase for entry in self.stored.entries]

    def settle(self, rounds: int = 60) -> None:
        """Let everybody answer until the plan is empty."""
        self.status = "ACTIVE"
        for worker in self.workers:
            worker.silent = False
            if worker.dead and not worker.closed:
                worker.restart()
        for _ in range(rounds):
            self.everybody(1.0)
            self.lead()
            if not self.stored.entries:
                break
        self.everybody(1.0)

    def ends(self) -> MoveOutcome:
        """Let everybody answer until the plan is empty, and give how the last move ended."""
        self.settle()
        return self.finished[-1].outcome

    def working(self, executor: ExecutorId) -> int:
        """Count the copies that take tuples."""
        at = [worker for worker in self.workers if executor in worker.running]
        return sum(not worker.holds_still(executor) for worker in at)

    def counted(self, executor: ExecutorId) -> int:
        """Count how often its bolt has counted, wherever it ran."""
        return sum(worker.counted[executor] for worker in self.workers)

    def with_kills(self) -> int:
        return sum(worker.kills for worker in self.workers)
