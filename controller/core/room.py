"""Whether there is room for a move, in loops: what it brings, with its hops, and what is left."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.core.distance import TrafficWeights, weigh
from controller.core.pairs import Rows

Marks: TypeAlias = NDArray[np.bool_]


@compiled
def sums(place: Ints, demand: Floats, places: int) -> Floats:
    """Add up what the executors of each place use."""
    used = np.zeros(places)
    for e in range(len(place)):
        used[place[e]] += demand[e]
    return used


def hold(  # noqa: PLR0917
    largest: Floats,
    unit_of: Ints,
    homes: Ints,
    workers: Ints,
    need: Floats,
    here: Floats,
    there: Floats,
) -> Marks:
    """Mark the moves that fit, (K,), each as `holds` does."""
    stays = (unit_of[homes] == unit_of[workers]) & (homes != workers)
    may_grow = np.maximum(largest, 0.0)
    within = (2 * (here - there) <= may_grow[workers]) & (largest[workers] > -np.inf)
    beyond = (need + here - 2 * there <= largest[workers]) & (here - need <= may_grow[homes])
    return np.where(stays, within, beyond)


@compiled
def holds(  # noqa: PLR0917
    largest: Floats, unit_of: Ints, home: int, worker: int, need: float, here: float, there: float
) -> bool:
    """Check whether a worker has room for an executor of another one, its hops counted.

    `largest` is as `Fit.largest` computes it; a need of NaN fits nowhere. `here` is what hops save
    where the executor is, and `there` on the worker. Its peers there save as much as it does. A
    node that is too full must not get fuller by a move away from it, nor by one within it.
    """
    if unit_of[home] == unit_of[worker] and home != worker:
        return bool(2 * (here - there) <= max(largest[worker], 0.0) and largest[worker] > -np.inf)
    return bool(
        need + here - 2 * there <= largest[worker] and here - need <= max(largest[home], 0.0)
    )


@compiled
def near_each(  # noqa: PLR0917
    begin: Ints,
    peer: Rows,
    row: Rows,
    tps: Floats,
    place: Ints,
    node_of: Ints,
    hop: TrafficWeights,
    executors: Ints,
    workers: Ints,
) -> tuple[Floats, Floats]:
    """Compute what hops save at each end where executors are, and on the worker of the same row."""
    here, there = np.zeros(len(executors)), np.zeros(len(executors))
    for i in range(len(executors)):
        e, w = executors[i], workers[i]
        here[i], there[i] = near(begin, peer, row, tps, place, node_of, hop, e, w)
    return here, there


@compiled
def near(  # noqa: PLR0917
    begin: Ints,
    peer: Rows,
    row: Rows,
    tps: Floats,
    place: Ints,
    node_of: Ints,
    hop: TrafficWeights,
    e: int,
    w: int,
) -> tuple[float, float]:
    """Compute what hops save at each end where an executor is, and on another worker."""
    home = place[e]
    own_node = own_worker = its_node = its_worker = 0.0
    for k in range(begin[e], begin[e + 1]):
        at, said = place[peer[k]], tps[row[k]]
        own_node += said * int(node_of[at] == node_of[home])
        own_worker += said * int(at == home)
        its_node += said * int(node_of[at] == node_of[w])
        its_worker += said * int(at == w)
    return weigh(hop, own_node, own_worker), weigh(hop, its_node, its_worker)


@compiled
def shift(left: Floats, source: int, target: int, came: float, went: float) -> float:
    """Take load from one place to another, and give how much more of it is too much.

    `left` is what is left in each place, negative where it is too full. `came` is what the target
    uses more, and `went` what the source uses less; of one place they are added up.
    """
    if source == target or came < 0.0 or went < 0.0:
        before = max(-left[source], 0.0) + (source != target) * max(-left[target], 0.0)
        left[source] += went
        left[target] -= came
        return float(
            max(-left[source], 0.0) + (source != target) * max(-left[target], 0.0) - before
        )
    # What is too much there from now on, less what was too much here until now.
    more = max(came - max(left[target], 0.0), 0.0) - max(min(went, -left[source]), 0.0)
    left[source] += went
    left[target] -= came
    return float(more)
