"""Follows policies side by side on frozen traffic, to see where they end and how soon."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from types import MappingProxyType
from typing import Any

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Rule
from controller.policies.gather.anneal import anneal
from controller.policies.gather.problem import Problem, TargetOptions
from controller.policies.gather.search import HOT
from controller.policies.greedy import greedy
from controller.policies.registry import Options, policy
from deploy.sim.remembering import Remembering
from deploy.sim.yardstick import NodeMove, ping_pongs
from tests.bench.decide.cases import LITERAL, QUALITY, Case
from tests.bench.decide.measures import cpu_use, weighted_cost_tps
from tests.bench.decide.tuned import best_aniello, best_rsm

# Made anew for each course: `gather` remembers what is under way.
COMPARED: Mapping[str, Callable[[], Rule]] = MappingProxyType(
    {
        "otd": lambda: Remembering(policy("otd", Options())),
        "gather": lambda: Remembering(policy("gather", Options())),
        "aniello-online, best tuning": lambda: best_aniello,
        "rsm, best profile": lambda: best_rsm,
    }
)
PING_PONG_CYCLES = 20
# The long search: its rounds, at most and for all executors together, and how often it begins anew.
LONG_ROUNDS, LONG_ROUNDS_OF_ALL, LONG_TIMES = 10_000, 1_600_000, 5


@dataclass(frozen=True, slots=True)
class Course:
    """How a policy fared on one case.

    Attributes
    ----------
    ratios : tuple of float
        Share of the traffic between nodes, and of that between workers, by their weights; at the
        start and after each cycle with moves.
    fits : tuple of bool
        Whether then no worker was above `load.high`, or where `greedy` cannot relieve them all,
        above the fullest that it leaves.
    moves, ping_pongs : int
        All moves, and those back to a node left at most twenty cycles ago.
    cycling : bool
        Whether a placement came back, so that it would go on for ever.
    """

    ratios: tuple[float, ...]
    fits: tuple[bool, ...]
    moves: int
    ping_pongs: int
    cycling: bool

    @property
    def best_ratio(self) -> float:
        """The least ratio of a placement that fits; infinite if none does."""
        ratios = (ratio for ratio, fits in zip(self.ratios, self.fits, strict=True) if fits)
        return min(ratios, default=math.inf)

    def cycles_to(self, ratio: float) -> int | None:
        """Count the cycles until the ratio is reached by a placement that fits.

        Parameters
        ----------
        ratio : float
            As in `ratios`.

        Returns
        -------
        int or None
            None if it never is.
        """
        ends = enumerate(zip(self.ratios, self.fits, strict=True))
        return next((i for i, (at, fits) in ends if fits and at <= ratio + 1e-12), None)


def follow(decide: Rule, case: Case, rules: Limits, cycles: int = 2000) -> Course:
    """Follow a policy on frozen traffic until it rests, cycles, or the cycles are over.

    Parameters
    ----------
    decide : Rule
        The policy.
    case : Case
        Where it starts.
    rules : Limits
        Thresholds.
    cycles : int
        At most this number.

    Returns
    -------
    Course
        What came of it.
    """
    cluster, snapshot = case
    index = {name: e for e, name in enumerate(snapshot.executors)}
    worker = {name: w for w, name in enumerate(cluster.workers)}
    relieved = _relieved(cluster, snapshot, rules)
    full = max(rules.high_frac, cpu_use(cluster, relieved).max_frac) + 1e-9
    ratios, seen = [_ratio(cluster, snapshot, rules)], {snapshot.place.tobytes()}
    fits = [cpu_use(cluster, snapshot).max_frac <= full]
    moves: list[NodeMove] = []
    cycling = False
    for cycle in range(cycles):
        proposed = decide(cluster, snapshot, rules).moves
        if not proposed:
            break
        for move in proposed:
            e, w = index[move.executor], worker[move.target]
            node = (cluster.nodes[cluster.node_of[at]] for at in (snapshot.place[e], w))
            moves.append(NodeMove(cycle, move.executor, *node))
            snapshot = snapshot.moved(e, w)
        ratios.append(_ratio(cluster, snapshot, rules))
        fits.append(cpu_use(cluster, snapshot).max_frac <= full)
        if snapshot.place.tobytes() in seen:
            cycling = True
            break
        seen.add(snapshot.place.tobytes())
    returns = ping_pongs(moves, PING_PONG_CYCLES)
    return Course(tuple(ratios), tuple(fits), len(moves), returns, cycling)


def long_search(cluster: Cluster, snapshot: LoadSnapshot, rules: Limits) -> float:
    """Anneal for long, as if moves had no price and could all be made at once.

    It begins where no worker is too full any more, for annealing leaves as full what was so.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Where it starts.
    rules : Limits
        Weights and the upper threshold.

    Returns
    -------
    float
        The ratio of the best placement met.
    """
    free = TargetOptions(gain_frac=0.0, move_price_frac=0.0, fill_frac=1.0)
    snapshot = _relieved(cluster, snapshot, rules)
    problem = Problem.of(cluster, snapshot, rules, free)
    rounds = min(LONG_ROUNDS, LONG_ROUNDS_OF_ALL // len(snapshot.place))
    places = (anneal(problem, snapshot.place, rounds, HOT, seed) for seed in range(LONG_TIMES))
    return min(map(problem.cost_tps, places)) / problem.total_tps


def _relieved(cluster: Cluster, snapshot: LoadSnapshot, rules: Limits) -> LoadSnapshot:
    """Follow `greedy` until no worker is above `load.high`, or it moves none."""
    while cpu_use(cluster, snapshot).max_frac > rules.high_frac + 1e-9:
        if not (decision := greedy(cluster, snapshot, rules)).moves:
            break
        snapshot = decision.applied(cluster, snapshot)
    return snapshot


def _ratio(cluster: Cluster, snapshot: LoadSnapshot, rules: Limits) -> float:
    return weighted_cost_tps(cluster, snapshot, rules) / snapshot.traffic.total_tps


def quality(
    seeds: int,
    tell: Callable[[str], None],
    cases: Mapping[str, Callable[[int], Case]] = QUALITY,
    policies: Sequence[str] = tuple(COMPARED),
) -> list[dict[str, Any]]:
    """Compare policies side by side, from the same starts.

    Parameters
    ----------
    seeds : int
        How many starts a case.
    tell : callable
        Told what comes next.
    cases : mapping
        What makes a start of each case from a seed.
    policies : sequence of str
        Names of `COMPARED`.

    Returns
    -------
    list of dict
        One a case, weights of nodes and workers, and policy, with medians over the seeds.
    """
    rows = []
    for case, rules in product(cases, (LITERAL, Limits(gain_frac=0.0))):
        courses: dict[str, list[Course]] = {name: [] for name in policies}
        best = []
        weights = f"{rules.weight_node:g} {rules.weight_worker:g}"
        for seed in range(1, seeds + 1):
            tell(f"{case}, weights {weights}, seed {seed}")
            world = cases[case](seed)
            for name in policies:
                courses[name].append(follow(COMPARED[name](), world, rules))
            others = [courses[name][-1].best_ratio for name in policies]
            best.append(min(long_search(*world, rules), *others))
        about = {"case": case, "weights": weights}
        rows += [about | _row(name, courses[name], best) for name in policies]
    return rows


def _row(name: str, courses: Sequence[Course], best: Sequence[float]) -> dict[str, Any]:
    """Sum up one policy, measured by the best that any policy or a long search found."""
    goals = [c.ratios[0] - 0.95 * (c.ratios[0] - b) for c, b in zip(courses, best, strict=True)]
    reached = [c.cycles_to(goal) for c, goal in zip(courses, goals, strict=True)]
    done = [cycles for cycles in reached if cycles is not None]
    return {
        "policy": name,
        "seeds": len(courses),
        "start_ratio": round(median(c.ratios[0] for c in courses), 4),
        "end_ratio": round(median(c.ratios[-1] for c in courses), 4),
        "ends_that_fit": sum(c.fits[-1] for c in courses),
        "best_known_ratio": round(median(best), 4),
        "above_best_known": _shares(
            [c.ratios[-1] / b - 1 if b else 0.0 for c, b in zip(courses, best, strict=True)]
        ),
        "reach_95_percent": len(done),
        "cycles_to_95_percent": median(done) if done else None,
        "moves": median(c.moves for c in courses),
        "ping_pongs": sum(c.ping_pongs for c in courses),
        "cycling": sum(c.cycling for c in courses),
    }


def _shares(values: Sequence[float]) -> str:
    return f"{median(values):.1%}, at most {max(values):.1%}"
