"""Grows a topology over machines until nothing more fits (000, algorithms 1 and 2)."""

from math import inf

import numpy as np

from controller.core.cluster import Ints
from controller.core.view import rounded
from controller.policies.heterogeneity import SLACK, Mask, Model


def first_assignment(model: Model, rate_tps: float, fixed: Ints, is_open: Mask) -> Ints | int:
    """Place one instance of each component on the machine where it takes the least CPU.

    Gives the placement, shape (C, M), or the first component that fits nowhere. `rate_tps` is the
    input to begin with, R0; `fixed`, shape (C, M), the instances that are there already; machines
    that are open take more. 000, algorithm 1 (FirstAssignment), by the text; the listing is an
    image.
    """
    placement = fixed.copy()
    for component in np.flatnonzero(fixed.sum(axis=1) == 0):
        grown = add_instances(model, placement, int(component), rate_tps, is_open)
        if grown is None:
            return int(component)
        placement = grown
    return placement


def add_instances(
    model: Model, placement: Ints, component: int, rate_tps: float, is_open: Mask, *, count: int = 1
) -> Ints | None:
    """Place more instances of a component, each where it takes the least CPU of where it fits.

    Gives the larger placement, shape (C, M); None if one of them fits nowhere. Every instance takes
    its smaller share of the input before it is looked whether one more fits.
    """
    instances = placement.sum(axis=1)
    instances[component] += count
    tcu = model.tcu(instances, rate_tps)
    room = 1 + SLACK - (placement * tcu).sum(axis=0)
    grown = placement.copy()
    # Each fills up the machine where it takes least, then the next.
    for machine in np.argsort(rounded(tcu[component]), kind="stable"):
        need = tcu[component, machine]
        if count and is_open[machine] and need <= room[machine]:
            fit = int(min(count, room[machine] / need if need > 0 else count))
            grown[component, machine] += fit
            count -= fit
    if count:
        return None
    return grown


def maximize_throughput(
    model: Model,
    placement: Ints,
    rate_tps: float,
    *,
    most: Ints | None = None,  # of each component, shape (C,); None: as many as fit
    is_open: Mask,  # machines that take more, shape (M,)
    at_once: int = 1,  # most new instances that are tried together where fewer do not fit
    most_scale: float = inf,  # the step is not made smaller than the input over this
) -> tuple[Ints, float]:
    """Raise the input, and add instances where a machine is over-used, until neither works.

    Begins with what FirstAssignment gave and the input R0, above 0; gives the last stable
    placement, shape (C, M), and its input.

    000, algorithm 2 (MaximizeThroughput), by the text; the listing is an image. "Most suitable" is
    where the new instance takes the least CPU. The authors' simulator
    (github.com/h-nasiri/Scheduling-Simulator) has 199 for `at_once`, since an even split leaves
    weak machines out otherwise, and 2048 for `most_scale`; the text has neither. It ends: every
    instance adds its overhead, every failed raise halves the step.
    """
    final, scale = (placement, rate_tps), 1
    while True:
        load = model.load(placement, rate_tps)
        over = np.flatnonzero(load > 1 + SLACK)
        if not over.size:
            final = placement, rate_tps
            raised_tps = rate_tps + rate_tps / scale
            # Above 2^53 t/s the step may be too small to change the number.
            if model.reachable_tps(placement) == inf or raised_tps == rate_tps:
                return final
            rate_tps = raised_tps
            continue
        tcu = model.tcu(placement.sum(axis=1), rate_tps)[:, over[0]]
        hottest = int(np.argmax(np.where(placement[:, over[0]] > 0, rounded(tcu), -1.0)))
        left = at_once if most is None else most[hottest] - placement[hottest].sum()
        tries = (
            add_instances(model, placement, hottest, rate_tps, is_open, count=count)
            for count in range(1, min(at_once, left) + 1)
        )
        grown = next((grown for grown in tries if grown is not None), None)
        if grown is not None:
            placement = grown
        elif rate_tps <= scale or scale >= most_scale:
            return final
        else:
            scale *= 2
            placement, rate_tps = final
