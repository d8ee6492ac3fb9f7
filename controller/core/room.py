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
def change(stays: bool, need: float, own: float, here: float, there: float) -> tuple[float, float]:
    """Compute how much more a move uses where it comes to, and where it leaves.

    `here` is what hops save where the executor is, at both their ends, and `there` where it comes
    to. The executor's own part of `here` is `own`, and the rest its peers'. Of a move that `stays`
    in its node both are the same.
    """
    if stays:
        return here - there, here - there
    return need + own - there, here - own - need


@compiled
def holds(  # noqa: PLR0917
    largest: float,
    largest_home: float,
    stays: bool,
    need: float,
    own: float,
    here: float,
    there: float,
) -> bool:
    """Check whether a worker has room for an executor of another one, its hops counted.

    `largest` is as `Fit.largest` computes it, of the worker and of the one that is left; a need of
    NaN fits nowhere. `stays`, `own`, `here` and `there` are as in `change`. A node that is too full
    must not get fuller by a move away from it, nor by one within it.
    """
    came, went = change(stays, need, own, here, there)
    if stays:
        return bool(came <= max(largest, 0.0) and largest > -np.inf)
    return bool(came <= largest and went <= max(largest_home, 0.0))


@compiled
def hold(  # noqa: PLR0917
    largest: Floats, unit_of: Ints, homes: Ints, workers: Ints, need: Floats, saved: Floats
) -> Marks:
    """Mark the moves that fit, (K,), each as `holds` does; `saved` is as in `near_each`."""
    fits = np.zeros(len(homes), np.bool_)
    for i in range(len(homes)):
        home, w = homes[i], workers[i]
        stays = unit_of[home] == unit_of[w] and home != w
        own, here, there = saved[0, i], saved[1, i], saved[2, i]
        fits[i] = holds(largest[w], largest[home], stays, need[i], own, here, there)
    return fits


@compiled
def change_each(stays: Marks, need: Floats, saved: Floats) -> tuple[Floats, Floats]:
    """Compute what each of some moves changes, (K,) each; `saved` is as in `near_each`."""
    came, went = np.empty(len(stays)), np.empty(len(stays))
    for i in range(len(stays)):
        came[i], went[i] = change(stays[i], need[i], saved[0, i], saved[1, i], saved[2, i])
    return came, went


@compiled
def near_each(  # noqa: PLR0917
    begin: Ints,
    peer: Rows,
    row: Rows,
    tps: Floats,
    scale: Floats,
    place: Ints,
    node_of: Ints,
    hop: TrafficWeights,
    executors: Ints,
    workers: Ints,
) -> Floats:
    """Compute `near` of executors, each with the worker of the same row: (3, K)."""
    found = np.zeros((3, len(executors)))
    for i in range(len(executors)):
        e, w = executors[i], workers[i]
        own, here, there = near(begin, peer, row, tps, scale, place, node_of, hop, e, w)
        found[0, i], found[1, i], found[2, i] = own, here, there
    return found


@compiled
def near(  # noqa: PLR0917
    begin: Ints,
    peer: Rows,
    row: Rows,
    tps: Floats,
    scale: Floats,
    place: Ints,
    node_of: Ints,
    hop: TrafficWeights,
    e: int,
    w: int,
) -> tuple[float, float, float]:
    """Compute what hops save where an executor is, and on another worker, as in `change`."""
    home, mine = place[e], scale[e]
    own = here = there = 0.0
    for k in range(begin[e], begin[e + 1]):
        at, said = place[peer[k]], tps[row[k]]
        node, both = node_of[at], said * (mine + scale[peer[k]])
        at_home = weigh(hop, int(node == node_of[home]), int(at == home))
        own += said * at_home
        here += both * at_home
        there += both * weigh(hop, int(node == node_of[w]), int(at == w))
    return mine * own, here, there


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
