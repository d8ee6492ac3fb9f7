"""Runs one setting from its first second to its last, deciding with the shipped cycle."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from controller.config import Config
from controller.core.cluster import Floats
from controller.core.fit import Capacity
from controller.cycle import Memory
from controller.report import TopologyReport
from deploy.cycle import cycle_with_searches
from deploy.sim import ScenarioError
from deploy.sim.flow.load import Meter
from deploy.sim.flow.world import World
from deploy.sim.restart_cost import Act, Change, SimulatedMove, System
from deploy.sim.scenario import Happening, Redeploy, RunSetting, What
from deploy.sim.storm import TOPOLOGY, Storm, slots_of
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
    moves: tuple[tuple[float, SimulatedMove], ...]  # moves begun, and when
    reports: tuple[TopologyReport, ...]  # every cycle of the controller
    # Sentences; the first is the sum of the others.
    emitted: float
    done: float
    queued: float
    lost: float


def run(setting: RunSetting, seed: int) -> SimulationResult:
    """Simulate one run; the same seed gives the same result.

    Raises ScenarioError if the cluster has more workers than the topology executors: one would be
    empty.
    """
    return _Run(setting, seed).all()


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
        flow, noise, polls, self._random = (
            np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(4)
        )
        self.setting = setting
        self.world = World(setting.topology, setting.hardware, setting.feed, flow)
        self.slots = slots_of(self.world)
        if len(self.world.place) < len(self.slots):
            raise ScenarioError(
                f"cluster: {len(self.slots)} workers for {len(self.world.place)} executors"
            )
        self.meter = Meter(self.world, setting.metering, self.slots, noise)
        config = setting.controller or Config()
        hardware = setting.hardware
        if hardware.shared_by == "worker" and config.capacity.is_shared:
            # What a worker leaves no other gets, in use or not.
            config = replace(config, capacity=Capacity(hardware.cores / hardware.workers))
        self.storm = Storm(
            self.world,
            self.meter,
            system=setting.system,
            delays=setting.delays,
            timing=replace(Timing(), lazy_kill_ms=config.lazy_kill_ms),
            random=polls,
        )
        self.config, self.memory = config, Memory()
        self.reports: list[TopologyReport] = []
        self.samples: list[tuple[float, float, Floats, float]] = []
        self._done = 0.0
        self._turns = self._agenda()

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
        turns.append(_Turn(SAMPLE_S, SAMPLE_S, self._sample))
        return turns

    def all(self) -> SimulationResult:
        setting, world = self.setting, self.world
        steps = round(setting.seconds / setting.step_s)
        for step in range(steps + 1):
            self.storm.advance()
            for turn in self._turns:
                turn.take(world.now_s)
            if step < steps:
                world.step(setting.step_s)
        return self._result()

    def _happen(self, happening: Happening) -> None:
        self.meter.read()
        if happening.what is What.KILL:
            worker = next(w for w, slot in enumerate(self.slots) if str(slot) == happening.who)
            now_s = self.world.now_s
            self.storm.plan_change(Change(now_s, Act.KILL, worker))
            back_s = now_s + self.setting.delays.worker_start_s
            self.storm.plan_change(Change(back_s, Act.START, worker))
        elif happening.what is What.SLOW:
            self.world.nodes.speed[int(happening.who[1:])] = happening.value
        elif happening.what is What.FEED:
            self.world.rate_tps = happening.value
        elif happening.what is What.DRAIN:
            self.storm.drained.add(happening.who)
        elif happening.what is What.UNDRAIN:
            self.storm.drained.discard(happening.who)
        else:
            self.world.new_keys()

    def _redeploy(self, redeploy: Redeploy) -> None:
        """Move random executors from the fullest workers to the emptiest ones, all at once."""
        place, entries = self.world.place.copy(), list[Entry]()
        movable = self.world.movable.copy()
        for _ in range(redeploy.executors):
            count = np.bincount(place, minlength=len(self.slots))
            fullest = movable & (count[place] == count[place[movable]].max(initial=0))
            if not fullest.any():
                break
            executor = int(self._random.choice(np.flatnonzero(fullest)))
            count[place[executor]] = count.max() + 1
            target = int(self._random.choice(np.flatnonzero(count == count.min())))
            entry = self.storm.entry(executor, target, entries)
            movable[executor] = False
            if isinstance(entry, Entry):
                entries.append(entry)
                place[executor] = target
        self.storm.redeploy(entries)

    def _report(self) -> None:
        self.meter.read()
        self.meter.report(TOPOLOGY)

    def _cycle(self) -> None:
        self.memory, report, _ = cycle_with_searches(self.memory, self.storm.seen(), self.config)
        self.storm.write(report)
        self.reports += report.topologies

    def _sample(self) -> None:
        self.meter.read()
        done, world = self.meter.look(), self.world
        before = self.samples[-1][1] if self.samples else 0.0
        frac = done.inter_node / done.total if done.total else before
        cores = world.hardware.cores / world.hardware.workers
        throughput = (world.done - self._done) / SAMPLE_S
        # Sentences on their way within a step are in no queue at its end; they are counted by
        # Little's law.
        pending = world.pending + throughput * world.way_s
        self.samples.append((throughput, frac, done.cpu_s / cores / SAMPLE_S, pending))
        self._done = world.done

    def _result(self) -> SimulationResult:
        throughput, frac, cpu, pending = zip(*self.samples, strict=True)
        world = self.world
        return SimulationResult(
            name=self.setting.name,
            throughput_tps=np.array(throughput),
            inter_node_frac=np.array(frac),
            cpu_frac=np.array(cpu),
            pending=np.array(pending),
            moves=tuple(self.storm.moved),
            reports=tuple(self.reports),
            emitted=world.emitted,
            done=world.done,
            queued=world.queued,
            lost=world.lost,
        )
