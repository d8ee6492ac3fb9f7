"""Takes the rounds on a live cluster: Storm's placement and a policy's in turn."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from controller.config import Config
from controller.core.cluster import Cluster, LoadSnapshot
from controller.walk import WalkStep, walk
from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep, with_own_cores
from deploy.lab.figures import Figures, Meter, Tuples
from deploy.lab.ledger import SATURATE
from deploy.lab.network import machine_cores
from deploy.lab.operator import Operator, beside, kill_meters
from deploy.lab.pairing import FED_FRAC, TOPOLOGY_CONF, SlotOf, in_turn, place
from kvstore.zookeeper import Session
from migration.model import Slot
from tests.bench.frame import load_average
from tests.bench.gain.cases import Case
from tests.bench.gain.rounds import Rounds, Target, named, names_of, unnamed

# Those that need no profile of the components: single moves, then one-shot ones.
POLICIES = ("otd", "gather", "aniello-online", "aniello-offline", "lf")
TOPOLOGY = "gain"
# A switch is a round's only cost that measures nothing: let it take seconds.
CONF = {"nstorm.max.moves.per.cycle": 8, "nstorm.journal.dir": "off"}
WARM_UP_S = 40.0
LOOK_S = 12.0
# Queues have come to what a rate makes of them.
RISE_S, FALL_S = 3.0, 4.0
SATURATED_S, FED_S = 8, 6
# As in paper 004, where each value is the mean over the 5 s after a move.
CYCLE_S = 5
MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class AskedGain:
    """What to measure.

    Attributes
    ----------
    rounds : int
        The most pairs of each policy.
    own_cores : float or None
        Cores of each node, as on a cluster. Then a worker's capacity is nstorm's default, and
        policies look at the load at which they are measured. None: nodes share all cores, a worker
        has half of the machine, and policies look at `FED_FRAC` of that load.
    """

    policies: Sequence[str]
    rounds: int
    cycles: bool
    trimmed: bool
    own_cores: float | None = None
    nodes: int = 2


class _Bench:
    """One case on a lab that is up."""

    def __init__(
        self,
        lab: Lab,
        session: Session,
        operator: Operator,
        tell: Callable[[str], None],
        own_cores: float | None,
    ) -> None:
        self._own_cores = own_cores
        self._ledger = lab.ledger(TOPOLOGY)
        self._meter = Meter(lab, session, TOPOLOGY)
        self._tuples = Tuples(session, TOPOLOGY, lab.layout.options.link_bps)
        self._operator = operator
        self._tell = tell
        self.storms = operator.placement().slot_of
        self.names = names_of(self.storms)
        # Slots that were never without executors; the workers of others end and start again.
        self.kept = {str(slot) for slot in self.storms.values()}
        self._fed_tps = 0.0

    def warm_up(self) -> None:
        """Run at saturation until compiled, and learn which rate to feed."""
        self._ledger.set_rate(SATURATE)
        time.sleep(WARM_UP_S)
        self._fed_tps = FED_FRAC * self._meter.take(SATURATED_S).acked_tps
        if not self._fed_tps:
            raise LabError("nothing was acked: see the logs of the workers")

    def look(self) -> tuple[Cluster, LoadSnapshot]:
        """See Storm's placement as the policies do; `AskedGain` has the load."""
        as_on_a_cluster = self._own_cores is not None
        self._ledger.set_rate(SATURATE if as_on_a_cluster else self._fed_tps)
        time.sleep(FALL_S)
        mark = self._tuples.mark()
        time.sleep(LOOK_S)
        # Nothing holds a worker to its share of a node.
        worker_cores = None if as_on_a_cluster else machine_cores() / 2
        picture = self._tuples.picture(self._tuples.mark(mark), worker_cores)
        if picture is None:
            raise LabError("a worker has not reported its load: see the logs of the agents")
        return picture

    def go(self, goal: SlotOf) -> int:
        """Place executors, fed at the rate that leaves room."""
        made = place(self._operator, goal)
        self.kept &= {str(slot) for slot in self._operator.placement().slot_of.values()}
        return made

    def take(self) -> Figures:
        """Take the figures at saturation, but the latencies at the fed rate."""
        saturated = self.saturated(SATURATED_S)
        self._ledger.set_rate(self._fed_tps)
        time.sleep(FALL_S)
        fed = self._meter.take(FED_S)
        return replace(saturated, ack_p50_ms=fed.ack_p50_ms, ack_p99_ms=fed.ack_p99_ms)

    def saturated(self, length_s: int) -> Figures:
        """Take the figures at saturation."""
        self._ledger.set_rate(SATURATE)
        time.sleep(RISE_S)
        return self._meter.take(length_s)

    def compare(self, name: str, policy: str, target: Target, rounds: Rounds, most: int) -> None:
        """Take rounds until the ratios are known or there are enough."""
        if not rounds.lack_pairs(name, policy, most):
            return
        sides = {"a": self.storms, "b": unnamed(target.new, self.names)}
        self.go(sides["a"])
        for pair in in_turn(lambda side: self.go(sides[side]), self.take, "a"):
            rounds.add_pair(name, policy, pair, load_average())
            taken = len(rounds.pairs(name, policy))
            self._tell(
                f"{name}, {policy}, round {taken}: {pair.a.acked_tps:.0f} sentences/s at Storm's "
                f"placement, {pair.b.acked_tps:.0f} at the policy's"
            )
            if not rounds.lack_pairs(name, policy, most):
                return

    def follow(self, name: str, policy: str, target: Target, rounds: Rounds) -> None:
        """Make the moves one by one, and take the figures after each."""
        if not rounds.lack_cycles(name, policy):
            return
        self.go(self.storms)
        cycles = [{"move": "", **asdict(self.saturated(CYCLE_S))}]
        for executor, slot in target.steps:
            self.go(unnamed({executor: slot}, self.names))
            move = f"{executor} to {slot}"
            cycles.append({"move": move, **asdict(self.saturated(CYCLE_S))})
            self._tell(f"{name}, {policy}, {move}: {cycles[-1]['acked_tps']:.0f} sentences/s")
        rounds.add(name, policy, cycles=cycles)


def set_up(cases: Mapping[str, Case], asked: AskedGain) -> dict[str, Any]:
    """Give what rounds have to have in common to be compared."""
    return {
        "trimmed": asked.trimmed,
        "own_cores": asked.own_cores,
        "nodes": asked.nodes,
        "cases": {name: asdict(case) for name, case in cases.items()},
        "cluster": CONF,
        "topology": TOPOLOGY_CONF,
        "fed_frac": FED_FRAC,
        "seconds": [SATURATED_S, FED_S, CYCLE_S],
    }


def is_finished(cases: Iterable[str], asked: AskedGain, rounds: Rounds) -> bool:
    """Check whether there is nothing left to measure."""
    return not any(
        _lacks(name, policy, asked, rounds) for name in cases for policy in asked.policies
    )


def run_case(
    name: str, case: Case, asked: AskedGain, rounds: Rounds, tell: Callable[[str], None]
) -> None:
    """Measure one workload on a lab of its own, as far as it is not measured yet.

    Raises
    ------
    LabError
        When Storm has placed the executors otherwise than in the finished rounds.
    """
    if is_finished([name], asked, rounds):
        return
    sweep()
    planned = plan_lab(
        "bench-gain",
        nodes=asked.nodes,
        hooks_jar=HOOKS_JAR,
        conf=CONF,
        cores=asked.own_cores,
        link=case.link,
        trimmed=asked.trimmed,
    )
    with_own_cores(planned, asked.own_cores)
    for line in planned.layout.options.cannot_show:
        tell(f"cannot be shown here: {line}")
    with planned as lab:
        tell(f"{name}: {case.workload} on links of {case.link} starts")
        lab.submit(TOPOLOGY, {**TOPOLOGY_CONF, **case.conf}, workload=case.workload)
        lab.wait_ready(TOPOLOGY)
        with beside(lab, TOPOLOGY) as operator, Session(lab.storm_zookeeper) as session:
            session.connect()
            before, pids = kill_meters(lab), lab.worker_pids()
            bench = _Bench(lab, session, operator, tell, asked.own_cores)
            bench.warm_up()
            targets = _targets(bench, name, asked, rounds, tell)
            for policy, target in targets.items():
                bench.compare(name, policy, target, rounds, asked.rounds)
                if asked.cycles:
                    bench.follow(name, policy, target, rounds)
            totals = lab.ledger(TOPOLOGY).drain()
            wrong = {"failed": totals.failed, "pending": totals.pending}
            wrong |= {"restarts": sum(lab.worker_pids().get(s) != pids[s] for s in bench.kept)}
            wrong |= kill_meters(lab) - before
            rounds.add(name, "", tuples={"emitted": totals.emitted, **wrong})
            tell(
                f"{name}: {totals.emitted} sentences; "
                + ", ".join(f"{k} {n}" for k, n in wrong.items())
            )


def _lacks(name: str, policy: str, asked: AskedGain, rounds: Rounds) -> bool:
    no_cycles = asked.cycles and rounds.lack_cycles(name, policy)
    return no_cycles or rounds.lack_pairs(name, policy, asked.rounds)


def _targets(
    bench: _Bench, name: str, asked: AskedGain, rounds: Rounds, tell: Callable[[str], None]
) -> dict[str, Target]:
    """Give the placement of each policy: that of the finished rounds, or where it ends now."""
    targets = {policy: rounds.target(name, policy) for policy in asked.policies}
    storms = named(bench.storms, bench.names)
    for policy, target in targets.items():
        if target is not None and target.storm != storms:
            raise LabError(
                f"{name}, {policy}: Storm has placed the executors otherwise than in the finished "
                "rounds: remove their file"
            )
    if None in targets.values():
        picture = bench.look()
    found = {}
    for policy, target in targets.items():
        if target is None:
            target = decided(picture, policy, bench.names)  # noqa: PLW2901
            rounds.add(name, policy, target=asdict(target))
        found[policy] = target
        tell(f"{name}, {policy}: {len(target.steps)} moves, then {target.reason}")
    return found


def decided(
    picture: tuple[Cluster, LoadSnapshot], policy: str, names: Mapping[Slot, str]
) -> Target:
    """Follow a policy from Storm's placement until nothing moves.

    The traffic stands still, no executor rests, and what a live run may not do is not done.
    """
    cluster, snapshot = picture
    config = replace(Config(), policy=policy, vetoes=True, cooldown_s=0.0)
    steps: list[WalkStep] = [*walk(cluster, snapshot, config, MOST_STEPS)]
    slots = [names[Slot.parse(worker)] for worker in cluster.workers]

    def written(now: LoadSnapshot) -> dict[str, str]:
        return {e: slots[w] for e, w in zip(now.executors, now.place, strict=True)}

    last = steps[-1]
    moves = tuple(
        (move.executor, names[Slot.parse(move.target)])
        for step in steps
        for move in step.decision.moves
    )
    reason = f"{last.decision.outcome.value}: {last.decision.reason}"
    return Target(written(snapshot), written(last.after), moves, reason)
