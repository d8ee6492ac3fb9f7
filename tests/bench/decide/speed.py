"""Times decisions and counts their memory.

Times are of the processor, not of the clock, and are compared within one run only: what else the
machine does makes all of them longer.
"""

import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.view.view import View
from controller.policies.greedy import choose_greedy, greedy
from controller.policies.otd import otd
from controller.policies.partition.problem import TargetOptions
from controller.policies.partition.search import Question
from controller.policies.single_move import Choice
from tests.bench.decide.cases import LITERAL, crowd
from tests.bench.decide.plain import plain_otd

MOST_TO_SEARCH = 10_000


def speed(executors: int, repeats: int) -> dict[str, Any]:
    """Time `greedy` on a graph as `crowd` makes it.

    Parameters
    ----------
    executors : int
        How many.
    repeats : int
        How often each is timed.

    Returns
    -------
    dict
        Milliseconds: of a decision when other executors talk than before, when they say more or
        less than before, as from one cycle to the next, and when it is asked for again; of the next
        one after a move. Seconds: of a search for a target, which runs beside the cycle; up to
        `MOST_TO_SEARCH` executors. And memory.
    """
    cluster, snapshot = crowd(executors)
    rules, traffic = Limits(gain_frac=0.0), snapshot.traffic
    chosen = np.random.default_rng(executors)

    def new_pairs() -> LoadSnapshot:
        rows = np.delete(np.arange(len(traffic.tps)), chosen.integers(len(traffic.tps)))
        fewer = Traffic(traffic.source[rows], traffic.target[rows], traffic.tps[rows])
        return replace(snapshot, traffic=fewer)

    def decide(one: LoadSnapshot) -> object:
        return greedy(cluster, one, rules)

    first = [_timed(decide, new_pairs()) for _ in range(repeats)]
    decide(snapshot)
    next_cycle = [_timed(decide, _other_volumes(snapshot, chosen)) for _ in range(repeats)]
    full = [_timed(decide, snapshot) for _ in range(repeats)]
    view = View.of(cluster, snapshot, rules)
    following = list(_walk_times(view, 10 * repeats))
    return {
        "executors": executors,
        "nodes": len(cluster.nodes),
        "workers": len(cluster.workers),
        "pairs": len(traffic.tps),
        "new_pairs_ms": _ms(first),
        "new_volumes_ms": _ms(next_cycle),
        "again_ms": _ms(full),
        "after_a_move_ms": _ms(following),
        "target_search_s": _search_s(cluster, snapshot) if executors <= MOST_TO_SEARCH else None,
        **_memory(cluster, snapshot, rules),
    }


def _other_volumes(snapshot: LoadSnapshot, chosen: np.random.Generator) -> LoadSnapshot:
    """Let the same executors say up to a tenth more or less, as from one cycle to the next."""
    traffic = snapshot.traffic
    tps = traffic.tps * chosen.uniform(0.9, 1.1, len(traffic.tps))
    return replace(snapshot, traffic=replace(traffic, tps=tps))


def _search_s(cluster: Cluster, snapshot: LoadSnapshot) -> float:
    Question(*crowd(40), Limits(), TargetOptions(), frozenset()).answer()  # compiles
    question = Question(cluster, snapshot, Limits(), TargetOptions(), frozenset())
    begin = time.thread_time()
    question.answer()
    return round(time.thread_time() - begin, 2)


def _walk_times(view: View, moves: int) -> Iterator[float]:
    """Time to carry the view over a move and to choose the next, as long as something moves."""
    chosen = choose_greedy(view)
    for _ in range(moves):
        if not isinstance(chosen, Choice):
            return
        begin = time.thread_time()
        view = view.moved(chosen.executor, chosen.worker)
        chosen = choose_greedy(view)
        yield time.thread_time() - begin


def _memory(cluster: Cluster, snapshot: LoadSnapshot, rules: Limits) -> dict[str, float]:
    traffic, view = snapshot.traffic, View.of(cluster, snapshot, rules)
    pairs, index = view.pairs, (traffic.source, traffic.target, traffic.tps)
    index_bytes = sum(array.nbytes for array in (*index, pairs.begin, pairs.peer, pairs.row))
    next_cycle = _other_volumes(snapshot, np.random.default_rng(0))
    tracemalloc.start()
    greedy(cluster, next_cycle, rules)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    carried = [view.snapshot.place, view.movable, view.room, view.roomiest, view.bounds]
    return {
        "traffic_and_index_mb": _mb(index_bytes),
        "view_mb": _mb(sum(array.nbytes for array in carried)),
        "peak_of_a_decision_mb": _mb(peak),
    }


def against_plain_python(repeats: int) -> dict[str, Any]:
    """Time one decision at 1,000 executors against OTD in plain Python, which `otd` agrees with.

    Each is of other volumes than the one before, as from one cycle to the next.

    Parameters
    ----------
    repeats : int
        How often each is timed.

    Returns
    -------
    dict
        Milliseconds, and how many times faster ours are, by the fastest of each.
    """
    cluster, snapshot = crowd(1000)
    chosen = np.random.default_rng(1000)
    policies = {"plain": plain_otd, "otd": otd, "gather": greedy}
    times_s: dict[str, list[float]] = {name: [] for name in policies}
    for _ in range(repeats):  # in turn, for a core's speed changes
        for name, policy in policies.items():
            cycle = _other_volumes(snapshot, chosen)
            times_s[name].append(_timed(partial(policy, cluster, limits=LITERAL), cycle))
    plain = times_s.pop("plain")
    walk = list(_walk_times(View.of(cluster, snapshot, LITERAL), 10 * repeats))
    ours = times_s | {"greedy after a move": walk}
    return {
        "executors": 1000,
        "plain_python_ms": _ms(plain),
        "ours_ms": {name: _ms(times) for name, times in ours.items()},
        "times_faster": {name: round(min(plain) / min(t), 1) for name, t in ours.items()},
    }


def _timed(act: Callable[[LoadSnapshot], object], snapshot: LoadSnapshot) -> float:
    begin = time.thread_time()
    act(snapshot)
    return time.thread_time() - begin


def _ms(times_s: Sequence[float]) -> Mapping[str, float]:
    return {
        "median": round(1e3 * median(times_s), 4),
        "fastest": round(1e3 * min(times_s), 4),
    }


def _mb(size_bytes: float) -> float:
    return round(size_bytes / 1e6, 2)
