"""Finds when a new schedule is due: a node was hot for too long, or a period is over.

002, section 3.2.1, as a pure machine: the time is an argument, the state goes in and comes out.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from controller.core.cluster import Floats


class Trigger(StrEnum):
    """Why a new schedule is computed."""

    OVERLOAD = "OVERLOAD"
    PERIOD = "PERIOD"


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The tuning; the paper prints no values.

    Attributes
    ----------
    capacity : Floats, shape (N,)
        B of each node, in the unit of the loads.
    window_s : Floats, shape (N,)
        X of each node: how long its load must stay at B or above.
    period_s : float
        P, the time between two schedules computed for their traffic.
    gain_frac : float
        R, the share of the inter-node traffic such a schedule must save.
    """

    capacity: Floats
    window_s: Floats
    period_s: float
    gain_frac: float


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """What is remembered between two looks.

    Attributes
    ----------
    over_since_s : Floats, shape (N,)
        Since when each node is at its capacity or above; infinity where it is not.
    """

    over_since_s: Floats
    period_start_s: float


def begin(rules: Rules, time_s: float) -> Watch:
    """Start again, as after each change of the schedule."""
    return Watch(np.full(len(rules.capacity), np.inf), time_s)


def look(
    rules: Rules, watch: Watch, time_s: float, node_load: Floats
) -> tuple[Watch, Trigger | None]:
    """Take in the nodes' loads; True if a schedule is due.

    Parameters
    ----------
    node_load : Floats, shape (N,)
        In the unit of the capacities.

    Returns
    -------
    Watch
        With this look added.
    Trigger or None
        OVERLOAD: follow the new schedule in any case; PERIOD: if it is `worthwhile`.

    Notes
    -----
    "L ≥ B for more than X seconds": one look below B restarts the window. The authors' code
    differs. It waits at least 180 s after a change, and follows a schedule against overload only if
    that lowers the load of an overloaded node.
    """
    over = node_load >= rules.capacity
    since = np.where(over, np.minimum(watch.over_since_s, time_s), np.inf)
    if (time_s - since > rules.window_s).any():
        return Watch(since, watch.period_start_s), Trigger.OVERLOAD
    if time_s - watch.period_start_s >= rules.period_s:
        return Watch(since, time_s), Trigger.PERIOD
    return Watch(since, watch.period_start_s), None


def worthwhile(rules: Rules, current_tps: float, planned_tps: float) -> bool:
    """Check whether a schedule saves enough traffic between nodes.

    Returns
    -------
    bool
        True if it saves more than R; the authors' code is content with R itself, in whole tuples.
    """
    return current_tps - planned_tps > rules.gain_frac * current_tps
