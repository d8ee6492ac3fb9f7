"""Places executors next to those that feed them, knowing only the topology (002, section 3.1).

The text gives the idea and the formulas. How slots are filled one by one is read in the authors'
code.
"""

from collections import deque
from math import ceil, floor

import numpy as np

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision
from controller.policies.aniello.options import Aniello
from controller.policies.component_graph import (
    component_graph,
    executors_of,
    feeders,
    left_out,
    linearised,
)
from controller.policies.even import sort_slots
from controller.policies.placement import as_decision

# Shares times counts miss whole numbers in the last digits.
_SLACK = 1e-9


def limit_formula(alpha: float, executors: int, workers: int) -> float:
    """Compute M, the most executors of a worker, as the formula has it: not always a whole number.

    002, section 3: M = ⌈E/W⌉ + α·(E - W + 1 - ⌈E/W⌉), α from 0 to 1, W being the workers used,
    min(E, W).
    """
    used = max(min(executors, workers), 1)
    least, most = ceil(executors / used), executors - used + 1
    return least + alpha * (most - least)


def executor_limit(alpha: float, executors: int, workers: int) -> int:
    """Compute M as a count: the formula rounded up, as the authors' code does."""
    return ceil(limit_formula(alpha, executors, workers) - _SLACK)


def offline_groups(snapshot: LoadSnapshot, workers: int, options: Aniello) -> Ints:
    """Share executors out among abstract slots, at most one slot an executor; gives each one's
    slot.

    Neither load nor traffic counts. Components in the order of `linearised`. The executors of each
    go round robin over the slots below M that hold an executor of a component that feeds it
    straight, and when these are full over the other slots. From component i ≥ ⌊β·C⌋ on, counted
    from 0 (the paper: i > ⌊β·C⌋ from 1), the slots still empty come first. If β is so large that
    few executors are left by then, slots stay empty; the text allows it. System components are not
    in the text: they come last, as if nothing fed them.
    """
    graph, executors = component_graph(snapshot), executors_of(snapshot)
    order = linearised(graph)
    limit = executor_limit(options.alpha, len(snapshot.executors), workers)
    group = np.full(len(snapshot.executors), -1, dtype=np.int64)
    size = [0] * workers
    system = [name for name in executors if name not in graph]
    for i, name in enumerate([*order, *system]):
        sources = [e for feeder in feeders(graph, name) for e in executors[feeder]]
        below = [slot for slot in range(workers) if size[slot] < limit]
        by_force = i >= floor(options.beta * len(order) + _SLACK)
        first, then = _rings(below, set(group[sources].tolist()), size, by_force)
        for executor in executors[name]:
            ring = first or then
            group[executor] = slot = ring.popleft()
            size[slot] += 1
            if size[slot] < limit:
                ring.append(slot)
    return group


def _rings(
    below: list[int], feeding: set[int], size: list[int], by_force: bool
) -> tuple[deque[int], deque[int]]:
    """Split slots into those to fill first and those to fill then."""
    first = deque(slot for slot in below if slot in feeding)
    then = [slot for slot in below if slot not in feeding]
    if by_force:
        # One by one to the front, so the last empty slot ends up first.
        first.extendleft(slot for slot in then if not size[slot])
        then = [slot for slot in then if size[slot]]
    return first, deque(then)


def offline_place(cluster: Cluster, snapshot: LoadSnapshot, options: Aniello) -> Ints:
    """Place by the offline scheduler: the slots of `offline_groups` go to the nodes round robin."""
    used = min(len(snapshot.executors), len(cluster.workers))
    nodes = None if options.spread is None else node_target(cluster, used, options.spread)
    return sort_slots(cluster, nodes)[offline_groups(snapshot, used, options)]


def node_target(cluster: Cluster, used: int, spread: float) -> int:
    """Compute how many nodes the authors' code wants to use for the workers to place, at least 1.

    `spread` is from 0, the fewest nodes with enough slots, to 1, as many as there can be.
    """
    slots = np.bincount(cluster.node_of, minlength=len(cluster.nodes))
    fewest = int(np.searchsorted(np.cumsum(np.sort(slots)[::-1]), used)) + 1
    most = min(int((slots > 0).sum()), used)
    return fewest + ceil(spread * (most - fewest) - _SLACK)


def aniello_offline(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, options: Aniello
) -> Decision:
    """Decide for the placement of the offline scheduler of 002.

    All workers are slots the topology may use. It knows no load: the limits are not used.
    """
    place = offline_place(cluster, snapshot, options)
    why = f"offline scheduler (002), alpha {options.alpha:g}, beta {options.beta:g}"
    return as_decision(cluster, snapshot, place, f"{why}{left_out(snapshot)}")
