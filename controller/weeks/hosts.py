"""What a host less would mean: how full the others would be at the highest hour of the log."""

import numpy as np
from msgspec import Struct

from controller.core.peaks import HOURS_OF_DAY
from controller.weeks.hours import Hours
from controller.weeks.need import Between, need_of_all


class HostLess(Struct, frozen=True):
    """The cluster without one host."""

    node: str
    capacity_cores: float
    peak_cores: float  # what topologies use of it at their peaks, at most
    rest_frac: float  # how full all others would be together, in their fullest hour
    at_s: float  # when that was, Unix seconds
    next_month_frac: Between | None  # the same next month; None where the log is too short


def without_each(hours: Hours) -> list[HostLess]:
    """Leave each host of the last day out, the one that would be missed most first.

    All of the CPU is added up. Whether executors can be divided so, and what else runs on hosts, is
    not looked at.
    """
    recent = hours.hour >= hours.count - HOURS_OF_DAY
    there = np.unique(hours.node_of[hours.unit[recent]])
    whole = float(hours.node_cores[there].sum())
    used = hours.used_of_node.sum(axis=0)
    at, to_come, found = int(used.argmax()), need_of_all(hours), []
    for node in there.tolist():
        own = float(hours.node_cores[node])
        rest = max(whole - own, 1e-9)
        next_month = None
        if to_come is not None:
            low, middle, high = (cores / rest for cores in to_come.cores)
            next_month = low, middle, high
        one = HostLess(
            hours.nodes[node],
            own,
            float(hours.used_of_node[node].max()),
            float(used[at]) / rest,
            hours.time_s(at),
            next_month,
        )
        found.append(one)
    return sorted(found, key=lambda one: (-one.rest_frac, -one.peak_cores))


def line(found: list[HostLess], high_frac: float) -> str:
    """Answer in a sentence; `high_frac` is `load.high`."""
    if len(found) < 2:
        return "There is one host: without it nothing runs."
    worst = found[0]
    others = "other host" if len(found) == 2 else f"other {len(found) - 1}"
    fits = "below" if worst.rest_frac <= high_frac else "above"
    text = (
        f"Without {worst.node} the {others} would be {worst.rest_frac:.0%} full in "
        f"the busiest hour, {fits} load.high ({high_frac:.0%})."
    )
    if worst.next_month_frac is None:
        return f"{text} For the next month the log is too short."
    low, middle, high = worst.next_month_frac
    return f"{text} Next month it is {middle:.0%} ({low:.0%} to {high:.0%})."
