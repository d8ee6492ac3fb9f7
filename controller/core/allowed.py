"""Whether an executor may go to a slot, and why not; and the entry of its move.

Only what was observed counts here. What settings, operators and time hold back is in `veto.py`.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import UNSET

from controller.core.decision import Outcome, Veto, Vetoes
from controller.core.pins import pinned
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    Phase,
    PlacedExecutor,
    Slot,
    Way,
)
from migration.observation import Observation
from migration.table import NEEDS_VERSION, OPENS_SINCE

# A plan is one node of ZooKeeper of at most 256 kB, and an entry takes up to 1.4 kB. It names its
# slots three times, each with a host of up to 253 characters, and the host of a slot that it opens.
MOST_ENTRIES = 180
# Storm's keys, by what a worker reports that its connections have.
_GUARDS = {
    "sasl": "storm.messaging.netty.authentication",
    "tls": "storm.messaging.netty.tls.enable",
}


# Without slots, so that what is worked out of it is kept.
@dataclass(frozen=True, eq=False)
class Allowed:
    """Whether executors of a topology may go to slots, each part worked out once it is asked for.

    It expects a fresh publication, and acks that are at most `Timing.ack_fresh_s` old.
    """

    observation: Observation

    @cached_property
    def inactive(self) -> Veto | None:
        """Why no executor may move at all."""
        status = self.observation.publication.status
        return None if status == "ACTIVE" else Veto(Outcome.STAND_BACK, f"the topology is {status}")

    @property
    def room(self) -> int:
        """How many moves the plan may still begin."""
        return MOST_ENTRIES - len(self.observation.plan.entries)

    @cached_property
    def pinned(self) -> Mapping[ExecutorId, str]:
        """Why executors must stay."""
        return pinned(self.observation)

    @cached_property
    def ways(self) -> Mapping[ExecutorId, Way]:
        """The ways that the workers of executors name for them."""
        placed = self.observation.placed
        return {
            one.executor: one.way
            for slot, ack in self.observation.workers.items()
            for one in reversed(ack.ways)
            if one.executor in placed and placed[one.executor].slot == slot
        }

    @cached_property
    def vetoes(self) -> Vetoes:
        """Why executors may go nowhere, and why nothing may go to slots of the topology, by name.

        A slot that is not open yet takes nothing: only an operator moves one more executor there.
        """
        closed = ((slot, self._unusable.get(slot) or self._unoffered(slot)) for slot in self._slots)
        return Vetoes(
            {str(executor): veto for executor, veto in self._held.items()},
            {str(slot): veto for slot, veto in closed if veto is not None},
        )

    def why_not(
        self,
        executor: ExecutorId,
        target: Slot,
        begun: Sequence[Entry] = (),
        free: Collection[Slot] = (),
    ) -> Veto | None:
        """Name what is in the way of a move; None if nothing is.

        `begun` are the other entries that the next plan begins, `free` the slots that a move may
        open, of `topology.free_slots`.
        """
        placed = self.observation.placed.get(executor)
        topology = self.observation.publication.topology
        if self.inactive is not None:
            return self.inactive
        if placed is None:
            return Veto(Outcome.STAND_BACK, f"topology {topology} has no executor {executor}")
        return (
            self._unoffered(target)
            or next((_under_way(one) for one in begun if one.executor == executor), None)
            or self._held.get(executor)
            or self._full(len(begun))
            or self._no_target(placed, target, free)
            or self._barred(executor, opens=self._opens(target))
            or self._last_after(begun, placed)
        )

    def entry(
        self,
        executor: ExecutorId,
        target: Slot,
        begun: Sequence[Entry] = (),
        free: Collection[Slot] = (),
    ) -> Entry | Veto:
        """Make the entry of a move, or name what is in its way; the arguments are of `why_not`."""
        veto = self.why_not(executor, target, begun, free)
        if veto is not None:
            return veto
        observation, opens = self.observation, self._opens(target)
        placed = observation.placed[executor]
        assert placed.slot is not None and placed.start_secs is not None
        return Entry(
            _free_id(observation.plan.version + 1, (*observation.plan.entries, *begun)),
            executor,
            placed.slot,
            target,
            Phase.OPEN if opens else Phase.PREPARE,
            Base(placed.slot, placed.start_secs),
            way=self.ways.get(executor, Way.LIVE),
            opens=observation.publication.hosts[target.supervisor] if opens else None,
            # A message of the order would end a worker without hooks.
            ordered=observation.cannot_close is None,
        )

    def is_last(self, slot: Slot, leaving: int = 0) -> bool:
        """Whether a worker may lose no executor after those that are leaving it."""
        observation = self.observation
        return observation.cannot_close is not None and observation.staying[slot] - leaving <= 1

    def last_of(self, executors: Sequence[str], place: Sequence[int]) -> Vetoes:
        """Veto the last executor of each worker on another placement."""
        why = self.observation.cannot_close
        if why is None:
            return Vetoes()
        veto = Veto(Outcome.LAST_IN_WORKER, f"the last executor of its worker: {why}")
        count = Counter(place)
        alone = (e for e, worker in zip(executors, place, strict=True) if count[worker] == 1)
        return Vetoes(dict.fromkeys(alone, veto))

    @cached_property
    def _held(self) -> Mapping[ExecutorId, Veto]:
        """Why executors may go nowhere, whatever the slot."""
        observation = self.observation
        here = observation.publication.executors
        bad, last = self._unusable, {slot for slot in self._slots if self.is_last(slot)}
        named = {one: self._barred(one) for one in (*self.pinned, *self.ways)}
        unplaced = (one for one in here if one.slot is None or one.start_secs is None)
        # Of several reasons the last one counts.
        return (
            {one.executor: self._last(one) for one in here if last and one.slot in last}
            | {executor: veto for executor, veto in named.items() if veto is not None}
            | {one: _absent(observation.placed[one]) for one in observation.not_running}
            | {one.executor: bad[one.slot] for one in here if one.slot and one.slot in bad}
            | {one.executor: _under_way(one) for one in observation.plan.entries}
            | {one.executor: _unplaced(one) for one in unplaced}
        )

    @cached_property
    def _slots(self) -> frozenset[Slot]:
        """Where the topology is, or goes."""
        targets = (entry.target for entry in self.observation.plan.entries)
        return self.observation.slots.union(targets)

    @cached_property
    def _unusable(self) -> Mapping[Slot, Veto]:
        """Why workers can be no end of a move."""
        found = {
            slot: Veto(Outcome.NO_WORKER_IN_SLOT, self.observation.unheard(slot))
            for slot in self._slots - self._hooked
        }
        for slot, worker in self.observation.workers.items():
            if worker.error is not None:
                reason = f"the worker at {slot} cannot follow plans: {worker.error}"
                found[slot] = Veto(Outcome.STAND_BACK, reason)
        if (mixed := self.observation.two_majors) is not None:
            found |= dict.fromkeys(self._slots, Veto(Outcome.STAND_BACK, mixed))
        return found

    def _unoffered(self, slot: Slot) -> Veto | None:
        node = self.observation.publication.node_of.get(slot.supervisor)
        if node is None or slot.port not in node.slots:
            return Veto(Outcome.NO_WORKER_IN_SLOT, f"no supervisor offers a slot {slot}")
        if node.closed is not None:
            return Veto(Outcome.EXCLUDED, f"nothing may come to host {node.host}: {node.closed}")
        return None

    def _full(self, begun: int) -> Veto | None:
        if begun < self.room:
            return None
        topology = self.observation.publication.topology
        reason = f"the plan of {topology} has {MOST_ENTRIES} moves, and no room for more"
        return Veto(Outcome.MOVE_IN_FLIGHT, reason)

    def _no_target(
        self, placed: PlacedExecutor, target: Slot, free: Collection[Slot]
    ) -> Veto | None:
        if placed.slot == target:
            reason = f"executor {placed.executor} is at {target} already"
            return Veto(Outcome.NOTHING_TO_GAIN, reason)
        if not self._opens(target):
            return self._unusable.get(target)
        if target in free or target in self.observation.opened:
            return None
        topology = self.observation.publication.topology
        why = "another topology may have it, or its supervisor or agent cannot open it"
        reason = f"topology {topology} has no worker at {target}, and it is not free: {why}"
        return Veto(Outcome.NO_WORKER_IN_SLOT, reason)

    def _barred(self, executor: ExecutorId, *, opens: bool = False) -> Veto | None:
        """Give the reason why an executor may not move by the way that its worker names."""
        (version, who), way = self.observation.speaks, self.ways.get(executor, Way.LIVE)
        needed = max(NEEDS_VERSION[way], OPENS_SINCE if opens else 0)
        if way is Way.CARRY and self._unguarded is not None:
            return Veto(Outcome.EXCLUDED, f"executor {executor} must stay: {self._unguarded}")
        stays = old = None
        if executor in self.pinned:
            reason = f"executor {executor} must stay: {self.pinned[executor]}"
            stays = Veto(Outcome.EXCLUDED, reason)
        if version < needed:
            what = f"a move of way {way}{' that opens a slot' * opens} needs {needed}"
            reason = f"{who} speaks version {version} of the protocol, and {what}"
            old = Veto(Outcome.STAND_BACK, reason)
        # What is pinned moves once everybody understands the way that is named for it.
        return stays or old if way in (Way.LIVE, Way.UNKNOWN) else old or stays

    @cached_property
    def _unguarded(self) -> str | None:
        """Why no state may travel: a worker's connections lack what others have, or should have.

        A worker whose hooks are older does not count: Storm itself lets nothing pass from a guarded
        connection to one that is not.
        """
        guards = {
            slot: ack.messaging
            for slot, ack in sorted(self.observation.workers.items())
            if ack.messaging is not UNSET
        }
        wanted = {name for one in guards.values() for name in (*one.has, *one.due)}
        for slot, one in guards.items():
            for name in sorted(wanted - {*one.has}):
                key = _GUARDS.get(name, name)
                what = f"the worker at {slot} runs without {key}, so its state would be unguarded"
                return (
                    f"{what}: set it in the storm.yaml of each node, and in no topology otherwise"
                )
        return None

    def _last_after(self, begun: Sequence[Entry], placed: PlacedExecutor) -> Veto | None:
        leaving = sum(one.source == placed.slot for one in begun)
        is_last = placed.slot is not None and self.is_last(placed.slot, leaving)
        return self._last(placed) if is_last else None

    def _last(self, placed: PlacedExecutor) -> Veto:
        reason = f"{placed.executor} is the last executor of {placed.slot}"
        return Veto(Outcome.LAST_IN_WORKER, f"{reason}: {self.observation.cannot_close}")

    def _opens(self, target: Slot) -> bool:
        return target not in self.observation.publication.slots

    @cached_property
    def _hooked(self) -> frozenset[Slot]:
        return frozenset(self.observation.hooked)


def _unplaced(placed: PlacedExecutor) -> Veto:
    reason = f"Storm has assigned executor {placed.executor} to no slot"
    return Veto(Outcome.STAND_BACK, reason)


def _absent(placed: PlacedExecutor) -> Veto:
    reason = f"the worker at {placed.slot} does not run executor {placed.executor}"
    return Veto(Outcome.MOVE_IN_FLIGHT, reason)


def _under_way(entry: Entry) -> Veto:
    state = "void" if entry.void is not None else entry.phase
    return Veto(Outcome.MOVE_IN_FLIGHT, f"{entry.executor} has move {entry.id} in {state}")


def _free_id(version: int, entries: Sequence[Entry]) -> str:
    """Name a move that a version of the plan begins: ``m7`` for version 7, ``m7.2`` if taken."""
    taken, name, number = {entry.id for entry in entries}, f"m{version}", 1
    while name in taken:
        number += 1
        name = f"m{version}.{number}"
    return name
