"""Noise in what is measured does not make executors go back and forth."""

from dataclasses import replace
from itertools import product

import numpy as np

from controller.config import Config
from controller.core import policy
from controller.core.choose import decide
from controller.core.cluster import Floats, LoadSnapshot
from controller.core.decision import first_of
from controller.core.distance import inter_node_tps
from controller.core.excluded import Excluded
from controller.core.fit import Fit
from controller.core.policy import Stateless
from controller.core.veto import cooldown, placement_vetoes
from controller.policies.greedy import greedy
from tests.bench.decide.cases import CASES, Case

CONFIG = Config()


class Meter:
    """Reads with log-normal errors, sigma 0.2 on traffic and 0.1 on CPU, and smooths them.

    It knows how well it measures, or gives nothing about that.
    """

    def __init__(self, seed: int, *, knows: bool) -> None:
        self.random, self.knows = np.random.default_rng(seed), knows
        self.tps: Floats | None = None
        self.cpu_cores: Floats | None = None

    def read(self, true: LoadSnapshot) -> LoadSnapshot:
        ewma = CONFIG.ewma
        tps = true.traffic.tps * self.random.lognormal(0, 0.2, len(true.traffic.tps))
        cpu = true.cpu_cores * self.random.lognormal(0, 0.1, len(true.cpu_cores))
        self.tps = tps if self.tps is None else ewma * tps + (1 - ewma) * self.tps
        self.cpu_cores = cpu if self.cpu_cores is None else ewma * cpu + (1 - ewma) * self.cpu_cores
        left = ewma / (2 - ewma) if self.knows else 0.0
        var, cpu_var = left * (0.2 * true.traffic.tps) ** 2, left * (0.1 * true.cpu_cores) ** 2
        traffic = replace(true.traffic, tps=self.tps, var=var)
        return replace(true, cpu_cores=self.cpu_cores, cpu_var=cpu_var, traffic=traffic)


def run(
    case: Case, seed: int, cycles: int, *, knows: bool = True
) -> tuple[LoadSnapshot, list[int], int]:
    """Live rules, a cycle each 5 s; gives the end, the cycles with a move, and the returns."""
    cluster, true = case
    meter = Meter(seed, knows=knows)
    moved_at: list[int] = []
    rests: dict[str, int] = {}
    left: set[tuple[int, int]] = set()
    returns = 0
    for cycle in range(cycles):
        seen = meter.read(true)
        left_s = {e: CONFIG.cooldown_s - (cycle - at) * CONFIG.cycle_s for e, at in rests.items()}
        vetoes = first_of(cooldown(left_s), placement_vetoes(cluster, seen, Excluded()))
        asked = policy.Case(cluster, seen, CONFIG.limits)
        for move in decide(Stateless(greedy), asked, vetoes).decision.moves:
            e, w = true.executors.index(move.executor), cluster.workers.index(move.target)
            before, after = int(cluster.node_of[true.place[e]]), int(cluster.node_of[w])
            returns += before != after and (e, after) in left
            left.add((e, before))
            rests[move.executor] = cycle
            moved_at.append(cycle)
            true = true.moved(e, w)
    return true, moved_at, returns


def test_at_most_one_move_in_a_hundred_goes_back() -> None:
    moves = returns = 0
    for name, seed in product(("wordcount-comm 2x4", "wordcount-comp 2x4", "keyed 2x4"), (1, 2, 3)):
        case = CASES[name](seed)
        end, moved_at, back = run(case, seed, 150)
        cluster, start = case
        assert inter_node_tps(cluster, end) < inter_node_tps(cluster, start)
        moves, returns = moves + len(moved_at), returns + back
    assert moves >= 9 * 5
    assert returns <= 0.01 * moves


def test_once_all_is_gained_it_rests_for_an_hour() -> None:
    """And would not if it did not know how well it measures."""
    case = CASES["wordcount-comm 2x4"](1)
    for knows in (True, False):
        _, moved_at, _ = run(case, 1, 720, knows=knows)
        late = sum(cycle >= 150 for cycle in moved_at)
        assert (late == 0) if knows else (late > 5)


def test_a_worker_that_may_not_be_too_hot_is_left_alone() -> None:
    cluster, snapshot = CASES["wordcount-comm 2x4"](1)
    used = Fit.of(cluster, snapshot).used / cluster.capacity_cores
    limits = replace(CONFIG.limits, high_frac=0.99 * float(used.max()), gain_tps=np.inf)
    assert greedy(cluster, snapshot, limits).moves
    doubtful = replace(snapshot, cpu_var=(0.2 * snapshot.cpu_cores) ** 2)
    assert not greedy(cluster, doubtful, limits).moves
