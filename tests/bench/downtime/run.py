"""Runs the rounds on a cluster of its own."""

import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, with_own_cores
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.ledger import SATURATE, WRITE_DELAY_S
from deploy.lab.operator import Operator, beside
from deploy.lab.pairing import place
from migration.model import ExecutorId, Slot
from tests.bench.downtime import Asked, Load, Round, System, Way
from tests.bench.downtime.kept import Kept
from tests.bench.frame import load_average
from tests.bench.moves import WARM_UP_S, message_timeout_s

FOLDER = REPOSITORY / "build" / "bench"
TOPOLOGY = "downtime"
BOLTS = {"split": 8, "count": 12}
CLUSTER = {
    "storm.scheduler": "nstorm.workload.GivenScheduler",
    # All executors that are asked for together go together.
    "nstorm.max.moves.per.cycle": sum(BOLTS.values()),
}
CONF: Mapping[Load, Mapping[str, Any]] = {
    # As Storm has it: nothing bounds what is in flight.
    Load.STEADY: {},
    Load.SATURATED: {"topology.max.spout.pending": 1000},
}
STEADY_FRAC = 0.6
CALIBRATE_S = 10
# Until the source has come to its rate and workers that were restarted have warmed up.
SETTLE_S = 10.0
# From the begin of a round to its first redeployment.
FIRST_S = 5.0
LANDED_LIMIT_S = 150.0


def bench(asked: Asked, kept: Kept, tell: Callable[[str], None]) -> None:
    """Run the rounds that are not kept yet.

    Raises
    ------
    LabError
        If this machine cannot have the links or the nodes that were asked for.
    """
    missing = [
        (load, number, system)
        for load in asked.loads
        for number in range(1, asked.rounds + 1)
        for system in asked.systems(number)
        if not kept.has(load, number, system.name)
    ]
    if not missing:
        return
    # Trimmed on links too, so that the link is all that differs.
    lab = plan_lab(
        "bench-downtime",
        hooks_jar=HOOKS_JAR,
        conf=CLUSTER,
        cores=asked.own_cores,
        link=asked.link,
        trimmed=True,
        worker_heap_mb=768,
    )
    with_own_cores(lab, asked.own_cores)
    if lab.layout.options.cannot_show:
        raise LabError(f"not as asked for: {'; '.join(lab.layout.options.cannot_show)}")
    with lab:
        for load in asked.loads:
            rounds = [row for row in missing if row[0] is load]
            if not rounds:
                continue
            if load is Load.STEADY and kept.steady_tps is None:
                kept.set_steady(STEADY_FRAC * _saturation_tps(lab))
            rate_tps = kept.steady_tps if load is Load.STEADY else SATURATE
            assert rate_tps is not None
            with fed(lab, load, rate_tps):
                measured = Rounds(lab, load, rate_tps, asked)
                for _, number, system in rounds:
                    finished = measured.run(number, system)
                    kept.add(finished)
                    tell(_line(finished))


def _line(finished: Round) -> str:
    acked = sum(map(sum, finished.acked_10ms))
    return (
        f"{finished.load} {finished.number}, {finished.system}: {acked} acked, "
        f"{finished.failed} failed, {finished.lost} lost, {finished.restarts} restarts, "
        f"{finished.moved} moved, load {finished.load_average:.1f}"
    )


@contextmanager
def fed(lab: Lab, load: Load, rate_tps: float) -> Iterator[None]:
    """Let the topology run, warm, inside the block."""
    shape = {f"workload.{component}s": count for component, count in BOLTS.items()}
    # The optimising compiler works for minutes, again in each worker that is restarted.
    compiler = {"topology.worker.childopts": "-XX:TieredStopAtLevel=1"}
    lab.submit(TOPOLOGY, {**CONF[load], **shape, **compiler}, rate_tps)
    lab.wait_ready(TOPOLOGY)
    time.sleep(WARM_UP_S)
    yield
    lab.kill_topology(TOPOLOGY)


def _saturation_tps(lab: Lab) -> float:
    with fed(lab, Load.SATURATED, SATURATE):
        began_s = time.time()
        time.sleep(CALIBRATE_S)
        windows = lab.ledger(TOPOLOGY).windows(began_s)
    return sum(window.acked for window in windows) / len(windows)


@dataclass(frozen=True, slots=True)
class Redeployment:
    """Executors that were asked to go elsewhere.

    Attributes
    ----------
    workers : mapping of str to int
        Process ids by slot, before.
    restarting : frozenset of str
        Slots whose workers Storm restarts.
    """

    began_s: float
    targets: Mapping[ExecutorId, Slot]
    workers: Mapping[str, int]
    restarting: frozenset[str]
    paths: tuple[str, ...]


class Rounds:
    """Makes rounds with the topology that runs."""

    def __init__(self, lab: Lab, load: Load, rate_tps: float, asked: Asked) -> None:
        self._lab = lab
        self._load = load
        self._rate_tps = rate_tps
        self._asked = asked
        self._ledger = lab.ledger(TOPOLOGY)
        self._given = lab.layout.run_dir / "placements" / f"{TOPOLOGY}.json"
        # Where Storm has put the bolts; each round begins there.
        self._bolts = {
            ExecutorId(*placed.executor): Slot.parse(placed.slot)
            for placed in lab.assignment(TOPOLOGY)
            if placed.component in BOLTS
        }

    def run(self, number: int, system: System) -> Round:
        """Measure a system, and wait until all it began has ended."""
        self._set_lazy_kill(system.lazy_kill)
        # The same draws for every system.
        chosen = random.Random(number)
        with beside(self._lab, TOPOLOGY) as operator:
            self._lab.wait_ready(TOPOLOGY)
            self._rest()
            place(operator, self._bolts)
            self._lab.wait_until("moves have ended", lambda: operator.entries() == 0)
            before = self._ledger.totals()
            workers = self._lab.worker_pids()
            seen = set(workers.items())
            self._ledger.set_rate(self._rate_tps)
            time.sleep(SETTLE_S)
            began_s = math.ceil(time.time())
            ended_s = began_s + self._asked.duration_s
            made: list[Redeployment] = []
            due_s = began_s + FIRST_S
            while system.way is not Way.NONE and due_s < ended_s:
                _sleep_until(due_s)
                if not made or self._landed(operator, made[-1]):
                    made.append(self._redeploy(system, operator, chosen))
                    seen |= made[-1].workers.items()
                due_s += self._asked.every_s
            _sleep_until(ended_s + 2 * WRITE_DELAY_S)  # a busy machine writes late
            ended_load = load_average()
            windows = self._ledger.windows(began_s, ended_s)
            acked_10ms = self._ledger.acked_10ms(began_s, ended_s)
            self._rest()
            if made:
                landed = partial(self._landed, operator, made[-1])
                self._lab.wait_until("the last redeployment has ended", landed, LANDED_LIMIT_S)
            self._given.unlink(missing_ok=True)
            paths = [path for redeployment in made for path in redeployment.paths]
            ends = [operator.follow(path, lambda now: now.ended) for path in paths]
            seen |= self._lab.worker_pids().items()
        after = self._ledger.totals()
        latency = sum((window.latency for window in windows), Counter[int]())
        return Round(
            load=self._load.value,
            number=number,
            system=system.name,
            redeployed_s=[round(one.began_s - began_s, 2) for one in made],
            moved=sum(len(one.targets) for one in made) - sum(e.state != "MOVED" for e in ends),
            refused=[f"{end.state}: {end.reason}" for end in ends if end.state != "MOVED"],
            acked_10ms=acked_10ms.tolist(),
            latency=sorted(latency.items()),
            max_ms=max(window.max_ms for window in windows),
            emitted=after.emitted - before.emitted,
            failed=after.failed - before.failed,
            lost=after.pending - before.pending,
            double_acked=after.double_acked - before.double_acked,
            restarts=len(seen - workers.items()),
            load_average=ended_load,
        )

    def _set_lazy_kill(self, lazy_kill: bool) -> None:
        """Write it where the next controller reads it."""
        file = self._lab.layout.storm_yaml
        conf = yaml.safe_load(file.read_text())
        conf.pop("nstorm.lazy.kill.ms", None)
        if not lazy_kill:
            conf["nstorm.lazy.kill.ms"] = 0
        file.write_text(yaml.safe_dump(conf))

    def _redeploy(self, system: System, operator: Operator, chosen: random.Random) -> Redeployment:
        placement = operator.placement()
        free = sorted(self._bolts.keys() & set(placement.free))
        targets = redeploy(placement.slot_of, free, system.together, chosen)
        workers = self._lab.worker_pids()
        began_s = time.time()
        if system.way is Way.MOVE:
            paths = [operator.ask(executor, slot) for executor, slot in targets.items()]
            return Redeployment(began_s, targets, workers, frozenset(), tuple(paths))
        self._give({**placement.slot_of, **targets}, running=system.way is Way.RESTART)
        if system.way is Way.REBALANCE:
            # What Storm waits if no time is given.
            self._lab.rebalance(TOPOLOGY, wait_secs=round(message_timeout_s(self._lab)))
        elif system.way is Way.REBALANCE_NOW:
            self._lab.rebalance(TOPOLOGY, wait_secs=0)
        ends = {*targets.values(), *(placement.slot_of[executor] for executor in targets)}
        return Redeployment(began_s, targets, workers, frozenset(map(str, ends)), ())

    def _landed(self, operator: Operator, redeployment: Redeployment) -> bool:
        """Check whether all of a redeployment has ended, so that another may begin."""
        now = self._lab.worker_pids()
        return (
            all(
                now.get(slot) not in (None, redeployment.workers[slot])
                for slot in redeployment.restarting
            )
            and self._lab.topologies()[self._lab.topology_id(TOPOLOGY)] == "ACTIVE"
            and operator.ready()
            and operator.entries() == 0
        )

    def _give(self, slot_of: Mapping[ExecutorId, Slot], *, running: bool) -> None:
        """Write for the scheduler in Nimbus where executors are to be; it reads the file whole."""
        given = {str(executor): str(slot) for executor, slot in slot_of.items()}
        self._given.parent.mkdir(exist_ok=True)
        draft = self._given.with_suffix(".partial")
        draft.write_text(json.dumps({"slot_of": given, "running": running}))
        draft.rename(self._given)

    def _rest(self) -> None:
        """Pause the source and wait until every sentence has met its fate, or should have."""
        self._ledger.set_rate(0)
        # A sentence that was lost fails after up to two timeouts.
        deadline_s = time.time() + 2 * message_timeout_s(self._lab) + WRITE_DELAY_S
        time.sleep(WRITE_DELAY_S)
        while self._ledger.in_flight() and time.time() < deadline_s:
            time.sleep(0.2)
        time.sleep(WRITE_DELAY_S)


def redeploy(
    slot_of: Mapping[ExecutorId, Slot],
    free: Sequence[ExecutorId],
    together: int,
    chosen: random.Random,
) -> dict[ExecutorId, Slot]:
    """Choose executors and where they go, so that workers stay even.

    Returns
    -------
    dict of ExecutorId to Slot
        Targets. Each goes from one of the fullest workers to one of the emptiest. They are fewer
        than `together` where fewer are free, or where a worker would keep none.
    """
    held = Counter(slot_of.values())
    targets: dict[ExecutorId, Slot] = {}
    for _ in range(together):
        may = [e for e in free if e not in targets and held[slot_of[e]] > 1]
        if not may or len(held) < 2:
            break
        most = max(held[slot_of[e]] for e in may)
        executor = chosen.choice([e for e in may if held[slot_of[e]] == most])
        others = sorted(held.keys() - {slot_of[executor]})
        fewest = min(held[slot] for slot in others)
        targets[executor] = chosen.choice([slot for slot in others if held[slot] == fewest])
        held[slot_of[executor]] -= 1
        held[targets[executor]] += 1
    return targets


def _sleep_until(unix_s: float) -> None:
    time.sleep(max(0.0, unix_s - time.time()))
