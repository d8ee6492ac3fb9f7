"""What a host less would mean: how full the others would be at the highest hour of the log."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from controller.core.peaks import HOURS_OF_DAY
from controller.tune.sure import LEAST_DAYS, student
from controller.weeks.hours import Hours
from controller.weeks.need import Between, need_of_all

# What differs by less may be the work of the tuples there.
LEAST_TIMES = 1.2


class HostLess(Struct, frozen=True):
    """The cluster without one host."""

    node: str
    capacity_cores: float
    peak_cores: float  # what topologies use of it at their peaks, at most
    # How full all others would be together, in their fullest hour; None where they have no CPU.
    rest_frac: float | None
    at_s: float  # when that was, Unix seconds
    next_month_frac: Between | None  # the same next month; None where the log is too short


def without_each(hours: Hours) -> list[HostLess]:
    """Leave each host of the last hour out, the one that would be missed most first.

    All of the CPU is added up. Whether executors can be divided so, and what else runs on hosts, is
    not looked at.
    """
    there = np.unique(hours.node_of[hours.unit[hours.hour == hours.count - 1]])
    cores_of = hours.cores_of_node[:, -1]
    used = hours.used_of_node.sum(axis=0)
    at, to_come, found = int(used.argmax()), need_of_all(hours), []
    for node in there.tolist():
        own = float(cores_of[node])
        rest = float(np.delete(cores_of, node).sum())
        next_month = None
        if to_come is not None and rest > 0:
            low, middle, high = (cores / rest for cores in to_come.cores)
            next_month = low, middle, high
        one = HostLess(
            hours.nodes[node],
            own,
            float(hours.used_of_node[node].max()),
            float(used[at]) / rest if rest > 0 else None,
            hours.time_s(at),
            next_month,
        )
        found.append(one)
    return sorted(found, key=_missed)


def _missed(one: HostLess) -> tuple[float, float]:
    return -math.inf if one.rest_frac is None else -one.rest_frac, -one.peak_cores


class SlowHost(Struct, frozen=True):
    """A host that takes more CPU than the others for the same tuples."""

    node: str
    times: Between  # by what factor, over the days
    days: int


def slow(hours: Hours) -> list[SlowHost]:
    """Compare each host with the others by what bolts of one component take for a tuple.

    Hops are taken out, as far as they cost what they do in the lab.
    """
    known = ~np.isnan(hours.own_core_s)
    node, day = hours.node_of[hours.unit[known]], (hours.first + hours.hour[known]) // HOURS_OF_DAY
    day -= int(hours.days[0])
    sums = np.zeros((2, len(hours.nodes), len(hours.days)))
    np.add.at(sums[0], (node, day), hours.own_core_s[known])
    np.add.at(sums[1], (node, day), hours.usual_core_s[known])
    found = []
    for name, own, usual in zip(hours.nodes, *sums, strict=True):
        logs = np.log(own[(own > 0) & (usual > 0)] / usual[(own > 0) & (usual > 0)])
        if len(logs) < LEAST_DAYS:
            continue
        middle = float(logs.mean())
        far = student(len(logs) - 1) * float(logs.std(ddof=1)) / len(logs) ** 0.5
        if middle - far > np.log(LEAST_TIMES):
            low, mid, high = np.exp([middle - far, middle, middle + far]).tolist()
            found.append(SlowHost(name, (low, mid, high), len(logs)))
    return sorted(found, key=lambda one: -one.times[1])


def slow_line(one: SlowHost) -> str:
    """Write it as a sentence."""
    low, middle, high = one.times
    return (
        f"{one.node} takes {middle:.3g} times the CPU of the other hosts for the same tuples "
        f"({low:.3g} to {high:.3g}, {one.days} days)."
    )


def line(found: Sequence[HostLess], high_frac: float) -> str:
    """Answer in a sentence; `high_frac` is `load.high`."""
    if len(found) < 2:
        return "There is one host: without it nothing runs."
    worst = found[0]
    if worst.rest_frac is None:
        return f"Without {worst.node} no CPU is left."
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
