"""Places a given number of instances of each component on machines that differ (000).

The CPU that they take there is predicted. Axes: C components, M machines. A placement counts the
instances of each component on each machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.view.view import rounded

# Sums of shares in another order differ in the last digits; that must decide nothing.
SLACK = 1e-9
Mask = NDArray[np.bool_]

# Placements without progress after which the search ends. With 10, one of 160 random worlds of up
# to 16 instances ended 9.5 % below the optimum; with 100, none more than 0.1 %.
PATIENCE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What instances cost, as shares of machines.

    `gain` is what a component takes in, all instances together, for one tuple into the
    topology. `cost_s` is the share of the machine times seconds that a tuple takes,
    e of equation 5; `overhead` the share that an instance takes without tuples, MET
    of it.
    """

    gain: Floats  # (C,)
    cost_s: Floats  # (C, M)
    overhead: Floats  # (C, M)

    def tcu(self, instances: Ints, rate_tps: float) -> Floats:
        """Predict the share of CPU of one instance of each component on each machine, shape (C, M).

        The component's tuples are spread over `instances`; 0 counts as 1. 000, equations 5 and 6.
        """
        each_tps = rate_tps * self.gain / np.maximum(instances, 1)
        return np.asarray(self.cost_s * each_tps[:, None] + self.overhead)

    def load(self, placement: Ints, rate_tps: float) -> Floats:
        """Predict the share of CPU in use of each machine, 1 less MAC."""
        return np.asarray((placement * self.tcu(placement.sum(axis=1), rate_tps)).sum(axis=0))

    def reachable_tps(self, placement: Ints) -> float:
        """Compute the input at which the first machine is full, with at least one instance a
        component.

        0 if overhead alone is too much, infinite if nothing costs anything.
        """
        overhead = (placement * self.overhead).sum(axis=0)
        slope = self.load(placement, 1.0) - overhead
        return max(float(np.min(full_at(1 - overhead, slope))), 0.0)


def full_at(room: Floats, used: Floats) -> Floats:
    """Tell at which rate machines are full: what is free at rate 0, over what a tuple/s takes.

    Infinite if a tuple takes nothing; below 0, by how much, where nothing is free.
    """
    room = np.where(abs(room) <= SLACK, 0.0, room)
    rate = np.divide(
        room, used, out=np.full(np.broadcast(room, used).shape, np.inf), where=used > 0
    )
    return np.where(room < 0, room, rate)


def first_assignment(model: Model, rate_tps: float, most: Ints, fixed: Ints, is_open: Mask) -> Ints:
    """Place all instances at a rate, each where it takes the least CPU of where it fits.

    Where none fits, on the machine that is least over-used with it. Gives counts of shape (C, M).
    `most`, shape (C,), is how many instances there are of each component, `fixed`, shape (C, M),
    those that are placed already; one of the machines at least is open. 000, algorithm 1
    (FirstAssignment), by the text; there it places one instance a component.
    """
    placement, tcu = fixed.copy(), model.tcu(most, rate_tps)
    load = (fixed * tcu).sum(axis=0)
    for component, left in enumerate(most - fixed.sum(axis=1)):
        for _ in range(left):
            after = load + tcu[component]
            fits = is_open & (after <= 1 + SLACK)
            cost = np.where(fits, tcu[component], np.inf) if fits.any() else after
            machine = int(np.argmin(rounded(np.where(is_open, cost, np.inf))))
            placement[component, machine] += 1
            load[machine] += tcu[component, machine]
    return placement


def replaced(model: Model, placement: Ints, fixed: Ints, is_open: Mask) -> Ints:
    """Look for the placement of the same instances that takes the most input.

    Relieves the machine that is full first: one of its instances goes to another machine, or
    changes places with one there, whichever leaves the two the most input; a worse placement too,
    but none twice. Gives the best seen. Not in 000, whose algorithms never move an instance.
    """
    each = model.cost_s * (model.gain / np.maximum(placement.sum(axis=1), 1))[:, None]
    # The last row is no instance: nothing comes back in exchange.
    slope = np.vstack([each, np.zeros(each.shape[1])])
    overhead = np.vstack([model.overhead, np.zeros(each.shape[1])])
    best, best_full, seen, left = placement, list[float](), set[bytes](), PATIENCE
    while left:
        seen.add(placement.tobytes())
        room = 1 - (placement * model.overhead).sum(axis=0)
        used = (placement * each).sum(axis=0)
        full = full_at(room, used)
        left -= 1
        if (sorted_full := np.sort(rounded(full)).tolist()) > best_full:
            best, best_full, left = placement, sorted_full, PATIENCE
        value = _exchanges(slope, overhead, (room, used), placement - fixed, is_open)
        swaps = np.argsort(-rounded(value), axis=None, kind="stable")[: len(seen) + 1]
        allowed = [swap for swap in swaps if value.flat[swap] > -np.inf]
        tries = (_exchanged(placement, full, swap, value.shape) for swap in allowed)
        unseen = next((one for one in tries if one.tobytes() not in seen), None)
        if unseen is None:
            break
        placement = unseen
    return best


def _exchanges(
    slope: Floats, overhead: Floats, state: tuple[Floats, Floats], movable: Ints, is_open: Mask
) -> Floats:
    """Tell the input at which the first of two machines is full, for each exchange between them.

    Shape (C, C + 1, M): an instance of the first component leaves the fullest machine for the third
    index, one of the second, if any, comes back. Minus infinity where that may not be.
    """
    room, used = state
    fullest = int(np.argmin(full_at(room, used)))
    more, less = slope[:-1, None], slope[None]
    more_room, less_room = overhead[:-1, None], overhead[None]
    there = full_at(room - more_room + less_room, used + more - less)
    here = full_at(
        room[fullest] + (more_room - less_room)[..., fullest],
        used[fullest] - (more - less)[..., fullest],
    )
    gives = (movable[:, fullest] > 0)[:, None, None]
    takes = np.vstack([movable > 0, is_open]) & is_open & (np.arange(len(room)) != fullest)
    differ = ~np.eye(*here.shape, dtype=np.bool_)[..., None]
    return np.where(gives & takes & differ, np.minimum(here[..., None], there), -np.inf)


def _exchanged(placement: Ints, full: Floats, swap: int, shape: tuple[int, ...]) -> Ints:
    given, taken, machine = np.unravel_index(swap, shape)
    fullest, after = np.argmin(full), placement.copy()
    after[given, fullest] -= 1
    after[given, machine] += 1
    if taken < len(placement):
        after[taken, machine] -= 1
        after[taken, fullest] += 1
    return after
