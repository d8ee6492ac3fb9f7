"""Which topologies disturb each other: who is slower in the hours in which a neighbour works more.

What a topology does with its own input, a trend, and neighbours among hours are taken out. An
effect counts where chance makes it in less than 1 of 10,000 pairs. What else happens in the same
hours cannot be kept apart from it.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from controller.core.cluster import Floats
from controller.core.squares import Squares, standard
from controller.weeks.hours import Hours, Topology, added

# Fewer hours show nothing, and a smaller effect is no reason to act.
LEAST_HOURS, LEAST_TIMES = 48, 1.05
# What counts as much of a neighbour, and as little: these shares of the hours have less.
_LITTLE, _MUCH = 0.1, 0.9
# What differs by less is one value.
_ALIKE = 1e-6
MOST_FULL = 20


class Disturbed(Struct, frozen=True):
    """A topology, and the neighbour that slows it."""

    topology: str
    by: str
    what: str  # that grows
    times: float  # by what factor, in hours with much of the neighbour against those with little
    least_times: float  # it is more than this, as surely as effects count
    hours: int
    nodes: tuple[str, ...]  # that both use, those with most of the topology first


class Full(Struct, frozen=True):
    """A node that was above the limit at peaks, and who used it in its fullest hour."""

    node: str
    hours: int
    fullest_frac: float
    at_s: float  # Unix seconds
    by: tuple[tuple[str, float], ...]  # topology and cores, the largest first


def disturbed(hours: Hours) -> list[Disturbed]:
    """Compare each topology with each that shares a node with it; the largest effect first."""
    found = [one for t in range(len(hours.topologies)) for one in _of(hours, t)]
    return sorted(found, key=lambda one: -one.times)


def _of(hours: Hours, t: int) -> Iterator[Disturbed]:
    own, on = hours.topologies[t], hours.cores_on(t)
    if not on.any():
        return
    what, values = _felt(own)
    shares = hours.share_of(on / on.sum())
    for other, name in enumerate(one.name for one in hours.topologies):
        if other == t:
            continue
        known = (values > 0) & (own.input_tps > 0)
        if known.sum() < LEAST_HOURS or np.ptp(shares[other][known]) < _ALIKE:
            continue
        times, least = _times(values[known], own.input_tps[known], shares[other][known])
        if least > 1 and times >= LEAST_TIMES:
            both = np.minimum(on, hours.cores_on(other))
            nodes = [n for n in np.argsort(-on).tolist() if both[n] > 0]
            names = tuple(hours.nodes[n] for n in nodes)
            yield Disturbed(own.name, name, what, times, least, int(known.sum()), names)


def _felt(one: Topology) -> tuple[str, Floats]:
    """Take the latency where it is known, else the CPU for each tuple of input."""
    if (one.latency_p50_ms > 0).sum() >= LEAST_HOURS:
        return "median latency", one.latency_p50_ms
    with np.errstate(divide="ignore", invalid="ignore"):
        return "CPU for each tuple of input", one.cores / one.input_tps


def _times(values: Floats, input_tps: Floats, share: Floats) -> tuple[float, float]:
    """Give the factor, and what it is at least."""
    columns = [np.ones(len(values)), share, standard(np.arange(len(values), dtype=np.float64))]
    log_input = np.log(input_tps)
    if np.ptp(log_input) > _ALIKE:
        columns += [standard(log_input), standard(log_input) ** 2]
    found = Squares.of(np.log(values), np.column_stack(columns))
    little, much = np.quantile(share, (_LITTLE, _MUCH))
    middle, far = float(found.coefficients[1]), float(much - little)
    logs = middle * far, (middle - found.most_by_chance(1)) * far
    return math.exp(min(logs[0], 50.0)), math.exp(min(logs[1], 50.0))


def full(hours: Hours, high_frac: float) -> list[Full]:
    """List the nodes that were above a share of their CPU at peaks, those most hours first."""
    share = hours.used_of_node / np.maximum(hours.cores_of_node, 1e-9)
    counts = (share > high_frac).sum(axis=1)
    found = []
    for node in np.argsort(-counts, kind="stable").tolist()[:MOST_FULL]:
        if counts[node]:
            at = int(share[node].argmax())
            found.append(
                Full(
                    hours.nodes[node],
                    int(counts[node]),
                    float(share[node, at]),
                    hours.time_s(at),
                    _users(hours, node, at),
                )
            )
    return found


def _users(hours: Hours, node: int, hour: int) -> tuple[tuple[str, float], ...]:
    rows = (hours.node_of[hours.unit] == node) & (hours.hour == hour)
    cores = added(hours.topology[rows], hours.peak_cores[rows], len(hours.topologies))
    order = [t for t in np.argsort(-cores, kind="stable").tolist() if cores[t] > 0]
    return tuple((hours.topologies[t].name, float(cores[t])) for t in order)


def lines(found: Sequence[Disturbed], nodes: Sequence[Full], high_frac: float) -> list[str]:
    """Write what was found for people."""
    told = [
        f"{one.topology} is disturbed by {one.by}: its {one.what} is {one.times:.3g} times as much "
        f"in hours with much of it (at least {one.least_times:.3g}, {one.hours} hours)"
        for one in found
    ] or [f"No topology is seen to disturb another one; {LEAST_HOURS} hours are needed for that."]
    return told + [
        f"{one.node} was above {high_frac:.0%} in {one.hours} hours; in the fullest it had "
        + ", ".join(f"{name} {cores:.3g} cores" for name, cores in one.by)
        for one in nodes
    ]
