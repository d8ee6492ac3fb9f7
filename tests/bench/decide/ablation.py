"""Follows `gather` with one of its parts left out at a time: what each brings in fresh worlds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any
from unittest.mock import patch

from controller.core.policy import Rule
from controller.policies import greedy
from controller.policies.gather import anneal as annealing
from controller.policies.gather import evaluate, route
from controller.policies.gather.problem import Problem
from deploy.sim.remembering import gather
from tests.bench.decide.fresh import FREE, RULES, annealed, followed, fresh
from tests.bench.decide.worlds import Kind, world

WHOLE = "nothing"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of `gather`, by what stands for it once it is left out.

    Attributes
    ----------
    patches : mapping of (module, str) to Any
        Values of names in modules.
    searches : bool
        Whether it searches for targets at all.
    """

    name: str
    patches: Mapping[tuple[ModuleType, str], Any] = field(default_factory=dict)
    searches: bool = True


PARTS = (
    Part(WHOLE),
    Part("the search for a target", searches=False),
    Part("where single moves end, as a start", {(evaluate, "_end_of_greedy"): lambda *_: ()}),
    Part("pairs of single moves", {(greedy, "_opening"): lambda *_: None}),
    Part("groups in annealing", {(annealing, "TOGETHER"): 0.0}),
    Part("exchanges in annealing", {(annealing, "BACK"): 0.0}),
    Part("strays in annealing", {(annealing, "STRAY"): 0.0}),
    Part("chains in a way", {(route, "CHAIN"): 1}),
    Part("exchanges in a way", {(route, "_exchange"): lambda *_: ()}),
    Part("a way cut where it is best", {(evaluate, "CUTS"): 1}),
)


def ablation(
    worlds: int, sizes: Sequence[int | None], file: Path, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure a number of worlds of each kind and size, but those that the file has already."""
    policies = {part.name: _patched(part) for part in PARTS}
    return fresh(worlds, sizes, file, tell, lambda kind, seed: _measured(kind, seed, policies))


def _patched(part: Part) -> Callable[[], tuple[ExitStack, Rule]]:
    def begin() -> tuple[ExitStack, Rule]:
        stack = ExitStack()
        for (module, name), value in part.patches.items():
            stack.enter_context(patch.object(module, name, value))
        return stack, gather() if part.searches else gather(search=lambda question: question.failed)

    return begin


def _measured(
    kind: Kind, seed: int, policies: Mapping[str, Callable[[], tuple[ExitStack, Rule]]]
) -> dict[str, Any]:
    cluster, start = world(kind, seed)
    problem = Problem.of(cluster, start, RULES, FREE)
    costs = [problem.cost_tps(place) for place in annealed(problem, start)]
    ends = {}
    for name, begin in policies.items():
        begin_s = time.process_time()
        stack, decide = begin()
        with stack:
            end = followed(decide, (cluster, start))
        cost = problem.cost_tps(end.end.place)
        if problem.excess_at(end.end.place) == 0:
            costs.append(cost)
        ends[name] = {
            "cost": cost / problem.total_tps,
            "moves": end.moves,
            "rests": end.rests,
            "cpu_s": round(time.process_time() - begin_s, 1),
        }
    best, today = min(costs) / problem.total_tps, problem.today_tps / problem.total_tps
    return {"kind": kind.name, "seed": seed, "best": best, "start": today, "ends": ends}


def ablated(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Sum up by the part that was left out."""
    for name in rows[0]["ends"] if rows else ():
        above = [(row["ends"][name]["cost"] - row["best"]) / _unit(row) for row in rows]
        worse = [
            (row["ends"][name]["cost"] - row["ends"][WHOLE]["cost"]) / _unit(row) for row in rows
        ]
        yield {
            "left_out": name,
            "worlds": len(rows),
            "median_above_best": f"{median(above):.1%}",
            "worst": f"{max(above):.1%}",
            "above_5_percent": sum(one > 0.05 for one in above),
            "worse_than_whole": sum(one > 0.001 for one in worse),
            "better": sum(one < -0.001 for one in worse),
            "mean_loss": f"{sum(worse) / len(worse):.2%}",
            "moves": median(row["ends"][name]["moves"] for row in rows),
            "do_not_rest": sum(not row["ends"][name]["rests"] for row in rows),
            "cpu_s": f"{sum(row['ends'][name]['cpu_s'] for row in rows) / len(rows):.1f}",
        }


def _unit(row: dict[str, Any]) -> float:
    """Give what differences are shares of: the best cost, or today's where the best is 0."""
    return float(row["best"] or row["start"] or 1.0)
