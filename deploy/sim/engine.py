"""Runs one setting from its first second to its last, deciding with the shipped cycle."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from controller.config import Config
from controller.core.capacity import Capacity
from controller.core.cluster import Floats
from controller.cycle import Memory
from controller.ingest.cycle import cycle_with_searches
from controller.report import TopologyReport
from deploy.sim import ScenarioError
from deploy.sim.flow.load import Meter
from deploy.sim.flow.nodes import Nodes
from deploy.sim.flow.room import Room, room
from deploy.sim.flow.world import World, step_together
from deploy.sim.restart_cost import SimulatedMove, System
from deploy.sim.scenario import FIRST, Happening, Redeploy, RunSetting, SharedTopology, What
from deploy.sim.storm import Assigned, Storm, slots_of
from deploy.sim.together import Together
from migration.model import Entry, Timing

SAMPLE_S = 1.0
# A turn due within this is due.
SOON_S = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class SimulationResult:
    """What a run has shown; series have one value a second, S of them."""

    name: str
    throughput_tps: Floats  # (S,), sentences (or clicks) finished
    # (S,), share of the tuples that went to another node; the last one known where none were sent
    inter_node_frac: Floats
    # (S, W), processor used, as a share of what each worker has if all of its node are alike
    cpu_frac: Floats
    pending: Floats  # (S,), sentences in flight: queued, on links, and on their way
    offered_tps: Floats  # (S, T), sentences that each topology's source had; may be infinite
    carried_tps: Floats  # (S, T), of them finished
    # (S,), share of the bytes that went to another node; the last one known where none were sent
    inter_node_bytes_frac: Floats
    memory_frac: Floats  # (S, N), share of each node's memory that is declared there
    room: Room  # at the end, at the rates of then without bursts, day and noise
    jvms_dead: int  # of too full a heap
    # Moves begun, and when; executors are counted through all topologies.
    moves: tuple[tuple[float, SimulatedMove], ...]
    reports: tuple[TopologyReport, ...]  # every cycle of the controller
    # Sentences; the first is the sum of the others.
    emitted: float
    done: float
    queued: float
    lost: float


def run(setting: RunSetting, seed: int) -> SimulationResult:
    """Simulate one run; the same seed gives the same result.

    Raises ScenarioError if there are not enough slots, or a topology has more workers than
    executors: one would be empty.
    """
    return _Run(setting, seed).all()


class _Sample(NamedTuple):
    """What a second has shown; the names are those of `SimulationResult`."""

    throughput_tps: float
    inter_node_frac: float
    cpu_frac: Floats
    pending: float
    offered_tps: Floats
    carried_tps: Floats
    inter_node_bytes_frac: float
    memory_frac: Floats


def placed(setting: RunSetting, seed: int) -> list[World]:
    """Make the topologies of a run as Storm places them, before anything flows."""
    return _Run(setting, seed).worlds


@dataclass(slots=True)
class _Turn:
    """Something that comes once or again and again."""

    next_s: float
    every_s: float
    act: Callable[[], None]

    def take(self, now_s: float) -> None:
        if now_s < self.next_s - SOON_S:
            return
        self.next_s = self.next_s + self.every_s if self.every_s else math.inf
        self.act()


class _Run:
    def __init__(self, setting: RunSetting, seed: int) -> None:
        # Streams of their own, so that one more draw here changes nothing there.
        streams = np.random.SeedSequence(seed).spawn(4 + 3 * len(setting.others))
        random = [np.random.default_rng(stream) for stream in streams]
        self.setting, self._random = setting, random[3]
        self._everyones, self._everyones_slots = Assigned(), np.zeros(0, np.int64)
        self.nodes = Nodes(setting.hardware, setting.neighbours)
        self.worlds: list[World] = []
        self.meters: list[Meter] = []
        self.storms: list[Storm] = []
        config = setting.controller or Config()
        hardware = setting.hardware
        if hardware.shared_by == "worker" and config.capacity.is_shared:
            # What a worker leaves no other gets, in use or not.
            config = replace(config, capacity=Capacity(hardware.cores / hardware.workers))
        self.config, self.memory = config, Memory()
        first = SharedTopology(FIRST, setting.topology, setting.feed, setting.slots)
        self._submit(first, *random[:3])
        for number, one in enumerate(setting.others):
            self._submit(one, *random[4 + 3 * number : 7 + 3 * number])
        self.together = Together(self.storms, self.meters)
        self.reports: list[TopologyReport] = []
        self.samples: list[_Sample] = []
        self._done = np.zeros(len(self.worlds))
        self._offered = np.zeros(len(self.worlds))
        self._turns = self._agenda()

    def _submit(
        self,
        one: SharedTopology,
        flow: np.random.Generator,
        noise: np.random.Generator,
        polls: np.random.Generator,
    ) -> None:
        setting, slots = self.setting, None
        if one.slots is not None:
            slots = self.nodes.slots(self._everyones_slots, one.slots)
            self._everyones_slots = np.concatenate([self._everyones_slots, slots])
            if len(slots) < one.slots:
                raise ScenarioError(f"slots: {one.name} finds {len(slots)} of {one.slots} free")
        world = World(one.topology, setting.hardware, one.feed, flow, nodes=self.nodes, slots=slots)
        workers = int(world.up.sum())
        if len(world.place) < workers:
            raise ScenarioError(f"cluster: {workers} workers for {len(world.place)} executors")
        meter = Meter(world, setting.metering, slots_of(world), noise)
        storm = Storm(
            world,
            meter,
            self._everyones,
            name=one.name,
            system=setting.system,
            delays=setting.delays,
            timing=replace(Timing(), lazy_kill_ms=self.config.lazy_kill_ms),
            random=polls,
        )
        self.worlds.append(world)
        self.meters.append(meter)
        self.storms.append(storm)

    def _agenda(self) -> list["_Turn"]:
        """List what comes again and again, in the order of one moment."""
        setting, moving = self.setting, self.setting.system is not System.NONE
        turns = [_Turn(h.at_s, h.every_s, partial(self._happen, h)) for h in setting.happenings]
        if setting.redeploy is not None and moving:
            random_moves = partial(self._redeploy, setting.redeploy)
            turns.append(_Turn(setting.redeploy.first_s, setting.redeploy.every_s, random_moves))
        if setting.controller is not None and moving:
            turns.append(_Turn(0.0, setting.metering.period_s, self._report))
            turns.append(_Turn(setting.begin_s, setting.controller.cycle_s, self._cycle))
        if not math.isinf(setting.hardware.heap_mb):
            turns += [_Turn(0.0, SAMPLE_S, storm.end_full_workers) for storm in self.storms]
        turns.append(_Turn(SAMPLE_S, SAMPLE_S, self._sample))
        return turns

    def all(self) -> SimulationResult:
        setting, first = self.setting, self.worlds[0]
        steps = round(setting.seconds / setting.step_s)
        for step in range(steps + 1):
            for storm in self.storms:
                storm.advance()
            for turn in self._turns:
                turn.take(first.now_s)
            if step < steps:
                step_together(self.worlds, setting.step_s)
        return self._result()

    def _happen(self, happening: Happening) -> None:
        for meter in self.meters:
            meter.read()
        if happening.what is What.KILL:
            self._kill(happening.who)
        elif happening.what is What.SLOW:
            self.nodes.speed[int(happening.who[1:])] = happening.value
        elif happening.what is What.COSTLY:
            self.nodes.cost_times[int(happening.who[1:])] = happening.value
            for world in self.worlds:
                world.reroute()
        elif happening.what is What.FEED:
            self.worlds[0].rate_tps = happening.value
        elif happening.what is What.DRAIN:
            self.together.drained.add(happening.who)
        elif happening.what is What.UNDRAIN:
            self.together.drained.discard(happening.who)
        else:
            self.worlds[0].new_keys()

    def _kill(self, slot: str) -> None:
        for world, storm in zip(self.worlds, self.storms, strict=True):
            worker = [str(s) for s in slots_of(world)].index(slot)
            if world.up[worker] or len(self.storms) == 1:
                storm.restart(worker)

    def _redeploy(self, redeploy: Redeploy) -> None:
        """Move random bolts of the first topology from the fullest workers to the emptiest."""
        world, storm = self.worlds[0], self.storms[0]
        place, entries = world.place.copy(), list[Entry]()
        may_move = world.is_bolt.copy()
        for _ in range(redeploy.executors):
            count = np.bincount(place, minlength=len(world.up))
            fullest = may_move & (count[place] == count[place[may_move]].max(initial=0))
            if not fullest.any():
                break
            executor = int(self._random.choice(np.flatnonzero(fullest)))
            count[place[executor]] = count.max() + 1
            target = int(self._random.choice(np.flatnonzero(count == count.min())))
            entry = storm.entry(executor, target, entries)
            may_move[executor] = False
            if isinstance(entry, Entry):
                entries.append(entry)
                place[executor] = target
        storm.redeploy(entries)

    def _report(self) -> None:
        for meter in self.meters:
            meter.read()
        for meter, storm in zip(self.meters, self.storms, strict=True):
            meter.report(storm.topology)

    def _cycle(self) -> None:
        opens = self.setting.system is System.NSTORM
        seen = self.together.seen(self.worlds[0].now_s, opens=opens)
        self.memory, report, _ = cycle_with_searches(self.memory, seen, self.config)
        self.together.write(report)
        self.reports += report.topologies

    def _sample(self) -> None:
        for meter in self.meters:
            meter.read()
        looks, worlds = [meter.look() for meter in self.meters], self.worlds
        before = self.samples[-1] if self.samples else None
        total, size_bytes = sum(one.total for one in looks), sum(one.total_bytes for one in looks)
        crossed = sum(one.inter_node for one in looks)
        crossed_bytes = sum(one.inter_node_bytes for one in looks)
        done = np.array([world.done for world in worlds])
        offered = np.array([world.offered for world in worlds])
        carried_tps = (done - self._done) / SAMPLE_S
        cores = self.setting.hardware.cores / self.setting.hardware.workers
        # Sentences on their way within a step are in no queue at its end; they are counted by
        # Little's law.
        on_way = carried_tps * np.array([world.way_s for world in worlds])
        pending = np.array([world.pending for world in worlds])
        is_bounded = np.isfinite(offered)
        since = np.subtract(
            offered, self._offered, out=np.full_like(done, math.inf), where=is_bounded
        )
        self.samples.append(
            _Sample(
                float(carried_tps.sum()),
                _part(crossed, total, before.inter_node_frac if before else 0.0),
                np.sum([one.cpu_s for one in looks], axis=0) / cores / SAMPLE_S,
                float((pending + on_way).sum()),
                since / SAMPLE_S,
                carried_tps,
                _part(crossed_bytes, size_bytes, before.inter_node_bytes_frac if before else 0.0),
                self._declared_mb() / self.setting.hardware.memory_mb,
            )
        )
        self._done, self._offered = done, offered

    def _declared_mb(self) -> Floats:
        """Add up what executors declare on each node, (N,)."""
        nodes = self.setting.hardware.nodes
        each = [
            np.bincount(world.node_of[world.place], world.memory_mb, nodes) for world in self.worlds
        ]
        return np.sum(each, axis=0)  # type: ignore[no-any-return]

    def _result(self) -> SimulationResult:
        worlds, storms = self.worlds, self.storms
        series = {
            name: np.array([getattr(sample, name) for sample in self.samples])
            for name in _Sample._fields
        }
        moves, count = list[tuple[float, SimulatedMove]](), 0
        for world, storm in zip(worlds, storms, strict=True):
            moves += [(s, replace(m, executor=m.executor + count)) for s, m in storm.moved]
            count += len(world.place)
        return SimulationResult(
            name=self.setting.name,
            **series,
            room=room(worlds, self._rates_tps()),
            jvms_dead=sum(storm.jvms_dead for storm in storms),
            moves=tuple(sorted(moves, key=lambda moved: moved[0])),
            reports=tuple(self.reports),
            emitted=sum(world.emitted for world in worlds),
            done=sum(world.done for world in worlds),
            queued=sum(world.queued for world in worlds),
            lost=sum(world.lost for world in worlds),
        )

    def _rates_tps(self) -> list[float]:
        """Give the input of now, or what came through where it is unbounded."""
        window = self.samples[-round(self.setting.window_s) :]
        done_tps = np.mean([sample.carried_tps for sample in window], axis=0)
        return [
            float(done) if math.isinf(world.rate_tps) else world.rate_tps
            for world, done in zip(self.worlds, done_tps, strict=True)
        ]


def _part(part: float, whole: float, otherwise: float) -> float:
    return part / whole if whole else otherwise
