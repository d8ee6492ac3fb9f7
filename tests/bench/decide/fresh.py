"""Follows `gather` and `otd` over fresh random worlds, against the best that is known of each."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from controller.core.cluster import Ints, LoadSnapshot
from controller.core.fit import TOLERANCE_CORES, Fit
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.policy import Rule
from controller.policies.gather.anneal import anneal
from controller.policies.gather.problem import Problem
from controller.policies.gather.search import HOT
from controller.policies.options import Options, TargetOptions
from controller.policies.otd import otd
from controller.policies.registry import policy
from deploy.sim.remembering import Remembering
from tests.bench.decide.cases import Case
from tests.bench.decide.proof import prove
from tests.bench.decide.worlds import Kind, kinds, world
from tests.bench.frame import append, read

RULES = Limits()
# How often the yardstick anneals, and its rounds at most, for all executors together.
ANNEALINGS, ROUNDS, ROUNDS_OF_ALL = 3, 10_000, 1_600_000
# CP-SAT gets this time, for worlds with at most this number of places for all executors.
PROOF_S, MOST_TO_PROVE = 15.0, 200
MOST_DECISIONS = 3_000
# Every gain counts, moves have no price, and workers may be filled up to their limit.
FREE = TargetOptions(gain_frac=0.0, move_price_frac=0.0, fill_frac=1.0)


@dataclass(frozen=True, slots=True)
class Followed:
    """Where a policy ended: it rests there, or would go on for ever."""

    end: LoadSnapshot
    moves: int
    too_full: int  # decisions after which a worker was above its limit
    rests: bool
    reason: str  # of the last decision


def fresh(
    worlds: int,
    sizes: Sequence[int | None],
    file: Path,
    tell: Callable[[str], None],
    measure: Callable[[Kind, int], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Measure a number of worlds of each kind and size, but those that the file has already."""
    done = {(row["kind"], row["seed"]) for row in read(file)}
    for seed in range(1, worlds + 1):
        for size in sizes:
            for kind in kinds(size):
                if (kind.name, seed) not in done:
                    tell(f"{kind.name}, seed {seed}")
                    append(file, measure(kind, seed))
    return read(file)


def measured(kind: Kind, seed: int) -> dict[str, Any]:
    """Follow both policies in one world, and look for its best placement."""
    begin_s = time.process_time()
    cluster, start = world(kind, seed)
    problem = Problem.of(cluster, start, RULES, FREE)
    gather = followed(Remembering(policy("gather", Options())), (cluster, start))
    took_s = time.process_time() - begin_s
    literal = followed(otd, (cluster, start))
    places = annealed(problem, start)
    places += [one.end.place for one in (gather, literal) if problem.excess_at(one.end.place) == 0]
    best = min(places, key=problem.cost_tps)
    proof = None
    if len(start.place) * len(cluster.workers) <= MOST_TO_PROVE:
        proof = prove(problem, best, PROOF_S)
        best = min(best, proof.place, key=problem.cost_tps)
    ratio = problem.total_tps
    return {
        "kind": kind.name,
        "seed": seed,
        "executors": len(start.place),
        "workers": len(cluster.workers),
        "used_frac": round(float(start.cpu_cores.sum() / cluster.capacity_cores.sum()), 3),
        "start": problem.today_tps / ratio,
        "gather": problem.cost_tps(gather.end.place) / ratio,
        "otd": problem.cost_tps(literal.end.place) / ratio,
        "otd_excess_cores": problem.excess_at(literal.end.place),
        "otd_rests": literal.rests,
        "best": problem.cost_tps(best) / ratio,
        "is_proved": bool(proof and proof.is_best),
        "moves": gather.moves,
        "too_full": gather.too_full,
        "rests": gather.rests,
        "reason": gather.reason,
        "search_and_way_s": round(took_s, 1),
        "all_s": round(time.process_time() - begin_s, 1),
    }


def annealed(problem: Problem, start: LoadSnapshot) -> list[Ints]:
    """Look for the best placement by annealing, several times."""
    rounds = min(ROUNDS, ROUNDS_OF_ALL // len(start.place))
    return [anneal(problem, start.place, rounds, HOT, seed) for seed in range(ANNEALINGS)]


def followed(decide: Rule, case: Case) -> Followed:
    cluster, snapshot = case
    high = RULES.high_frac * cluster.capacity_cores + TOLERANCE_CORES
    moves = too_full = 0
    seen = {snapshot.place.tobytes()}
    for _ in range(MOST_DECISIONS):
        decision = decide(cluster, snapshot, RULES)
        if not decision.moves:
            return Followed(snapshot, moves, too_full, True, decision.reason)
        moves += len(decision.moves)
        snapshot = applied(decision.moves, cluster, snapshot)
        too_full += bool((Fit.of(cluster, snapshot).used > high).any())
        if snapshot.place.tobytes() in seen:
            break
        seen.add(snapshot.place.tobytes())
    return Followed(snapshot, moves, too_full, False, decision.reason)


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Sum up sizes, roomy and tight ones apart, and all."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row["kind"].split()[:2]), []).append(row)
    for words, some in [*groups.items(), (("all",), list(rows))]:
        above = [_above(row) for row in some]
        proved = [row for row in some if row["is_proved"]]
        yield {
            "worlds": " ".join(words),
            "number": len(some),
            "median": f"{median(above):.1%}",
            "worst": f"{max(above):.1%}",
            "above_5_percent": sum(one > 0.05 for one in above),
            "above_10_percent": sum(one > 0.1 for one in above),
            "above_otd": sum(_is_above_otd(row) for row in some),
            "best_is_proved": len(proved),
            "worst_of_proved": f"{max(map(_above, proved), default=0.0):.1%}",
            "decisions_with_a_full_worker": sum(row["too_full"] for row in some),
            "do_not_rest": sum(not row["rests"] for row in some),
            "moves": median(row["moves"] for row in some),
        }


def _above(row: dict[str, Any]) -> float:
    """Compute how far above the best it ended; where the best is 0, as a share of the start."""
    return float((row["gather"] - row["best"]) / (row["best"] or row["start"] or 1.0))


def _is_above_otd(row: dict[str, Any]) -> bool:
    fits = row["otd_rests"] and row["otd_excess_cores"] == 0
    return bool(fits and row["gather"] > row["otd"] + 1e-9)
