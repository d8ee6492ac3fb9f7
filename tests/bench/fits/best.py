"""Searches for the placement that bears the most input, by the true costs of a simulated world."""

import math
from collections.abc import Sequence

import numpy as np

from controller.core.cluster import Ints
from deploy.sim.engine import placed
from deploy.sim.flow.room import room
from deploy.sim.flow.world import World
from deploy.sim.scenario import RunSetting

STEPS = 8000
# As shares of what a placement bears: by how much a step may be worse, at first and at last.
_HOT, _COLD = 0.03, 1e-4


def best_bears_x(setting: RunSetting, steps: int = STEPS) -> float:
    """Find how much input the best placement known bears, relative to Storm's.

    By simulated annealing over moves and exchanges of executors, in the workers that Storm uses.
    It knows the costs, which a policy does not, and counts no move. So a policy can hardly do
    better, and what is found is no bound all the same.
    """
    random, worlds = np.random.default_rng(1), placed(setting, 1)
    rates_tps = [world.rate_tps for world in worlds]
    workers = [np.unique(world.place) for world in worlds]
    storms = now = best = _bears(worlds, rates_tps)
    for step in range(steps):
        heat = _HOT * (1 - step / steps) + _COLD
        which = int(random.integers(len(worlds)))
        world = worlds[which]
        before = world.place.copy()
        for executor, worker in _step(random, world, workers[which]):
            world.move(executor, worker)
        after = _bears(worlds, rates_tps)
        if after >= now or random.random() < (after / now) ** (1 / heat):
            now, best = after, max(best, after)
        else:
            for executor in np.flatnonzero(world.place != before).tolist():
                world.move(executor, int(before[executor]))
    return best / storms


def _bears(worlds: Sequence[World], rates_tps: Sequence[float]) -> float:
    factor = room(worlds, rates_tps).input
    return math.inf if factor is None else factor


def _step(random: np.random.Generator, world: World, workers: Ints) -> list[tuple[int, int]]:
    """Draw a move, or an exchange of two executors."""
    executor = int(random.integers(len(world.place)))
    if random.random() < 0.5:
        return [(executor, int(random.choice(workers)))]
    other = int(random.integers(len(world.place)))
    return [(executor, int(world.place[other])), (other, int(world.place[executor]))]
