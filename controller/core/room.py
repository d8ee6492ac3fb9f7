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


@compiled
def change(stays: bool, need: float, here: float, there: float) -> tuple[float, float]:
    """Compute how much more a move uses where it comes to, and where it leaves.

    `here` is what hops save where the executor is, and `there` where it comes to. Its peers there
    save as much as it does. Of a move that `stays` in its node both are the same.
    """
    if stays:
        return 2 * (here - there), 2 * (here - there)
    return need + here - 2 * there, here - need


@compiled
def holds(  # noqa: PLR0917
    largest: Floats, unit_of: Ints, home: int, worker: int, need: float, here: float, there: float
) -> bool:
    """Check whether a worker has room for an executor of another one, its hops counted.

    `largest` is as `Fit.largest` computes it; a need of NaN fits nowhere. `here` and `there` are as
    in `change`. A node that is too full must not get fuller by a move away from it, nor by one
    within it.
    """
    stays = unit_of[home] == unit_of[worker] and home != worker
    came, went = change(stays, need, here, there)
    if stays:
        return bool(came <= max(largest[worker], 0.0) and largest[worker] > -np.inf)
    return bool(came <= largest[worker] and went <= max(largest[home], 0.0))


@compiled
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
    fits = np.zeros(len(homes), np.bool_)
    for i in range(len(homes)):
        move = homes[i], workers[i], need[i], here[i], there[i]
        fits[i] = holds(largest, unit_of, *move)
    return fits


@compiled
def change_each(stays: Marks, need: Floats, here: Floats, there: Floats) -> tuple[Floats, Floats]:
    """Compute what each of some moves changes, (K,) each, as `change` does."""
    came, went = np.empty(len(stays)), np.empty(len(stays))
    for i in range(len(stays)):
        came[i], went[i] = change(stays[i], need[i], here[i], there[i])
    return came, went


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
