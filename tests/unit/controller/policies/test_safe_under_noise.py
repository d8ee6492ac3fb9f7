"""Noise in what is measured does not make executors go to and fro."""

from dataclasses import replace

import numpy as np
import pytest

from controller.config import Config, Excluded
from controller.core.choose import choose
from controller.core.cluster import Floats, LoadSnapshot, inter_node_tps
from controller.core.veto import cooldown, placement_vetoes
from controller.policies.safe import safe
from tests.bench.decide.cases import QUALITY, Case, noisy

CONFIG = Config()
CYCLES, TABU_CYCLES = 150, 20


class Meter:
    """Reads with log-normal errors, sigma 0.2 on traffic and 0.1 on CPU, and smooths them."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tps: Floats | None = None
        self.cpu_cores: Floats | None = None

    def read(self, true: LoadSnapshot) -> LoadSnapshot:
        seen = noisy(true, self.random)
        tps, cpu = seen.traffic.tps, seen.cpu_cores
        self.tps = tps if self.tps is None else CONFIG.ewma * tps + (1 - CONFIG.ewma) * self.tps
        self.cpu_cores = (
            cpu
            if self.cpu_cores is None
            else CONFIG.ewma * cpu + (1 - CONFIG.ewma) * self.cpu_cores
        )
        traffic = replace(true.traffic, tps=self.tps)
        return replace(true, cpu_cores=self.cpu_cores, traffic=traffic)


def run(case: Case, seed: int) -> tuple[LoadSnapshot, list[int], int]:
    """Live rules, a cycle each 5 s; gives the end, the cycles with a move, and the returns."""
    cluster, true = case
    meter = Meter(seed)
    moved_at: list[int] = []
    rests: dict[str, int] = {}
    left: dict[tuple[int, int], int] = {}
    returns = 0
    for cycle in range(CYCLES):
        seen = meter.read(true)
        left_s = {e: CONFIG.cooldown_s - (cycle - at) * CONFIG.cycle_s for e, at in rests.items()}
        vetoes = cooldown(left_s).joined(placement_vetoes(cluster, seen, Excluded()))
        for move in choose(safe, cluster, seen, CONFIG.limits, vetoes).moves:
            e, w = true.executors.index(move.executor), cluster.workers.index(move.target)
            before, after = int(cluster.node_of[true.place[e]]), int(cluster.node_of[w])
            back = before != after and cycle - left.get((e, after), -99) <= TABU_CYCLES
            returns += back
            left[e, before] = cycle
            rests[move.executor] = cycle
            moved_at.append(cycle)
            true = true.moved(e, w)
    return true, moved_at, returns


@pytest.mark.parametrize("name", ["wordcount-comm 2x4", "wordcount-comp 2x4", "keyed 2x4"])
def test_at_most_one_move_in_a_hundred_goes_back(name: str) -> None:
    moves = returns = 0
    for seed in range(1, 6):
        case = QUALITY[name](seed)
        end, moved_at, back = run(case, seed)
        cluster, start = case
        assert inter_node_tps(cluster, end) < inter_node_tps(cluster, start)
        moves, returns = moves + len(moved_at), returns + back
    assert moves >= 5 * 5
    assert returns <= 0.01 * moves
