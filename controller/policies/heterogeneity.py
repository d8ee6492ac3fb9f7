"""Places the executors there are by the rules of 000, on machines that differ: nodes are machines.

The CPU that instances take there is predicted. Axes: C components, M machines. A placement counts
the instances of each component on each machine.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.view import rounded
from controller.errors import PolicyError
from controller.policies.component_graph import (
    component_graph,
    executors_of,
    left_out,
    planned_rates,
    spouts,
)
from controller.policies.placement import as_decision
from controller.policies.profiles import NONE, Profiles

# Sums of shares in another order differ in the last digits; that must decide nothing.
SLACK = 1e-9
Mask = NDArray[np.bool_]

# Placements without progress after which the search ends. With 10, one of 160 random worlds of up
# to 16 instances ended 9.5 % below the optimum; with 100, none more than 0.1 %.
PATIENCE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The costs of instances, as shares of machines.

    `gain` is what a component takes in, all instances together, for one tuple into the topology.
    `cost_s` is the share of the machine times seconds that a tuple takes, e of equation 5.
    `overhead` is the share that an instance takes without tuples, MET of it.
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
    """Return at which rate machines are full: what is free at rate 0, over what a tuple/s takes.

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
    `most`, shape (C,), is how many instances there are of each component. `fixed`, shape (C, M),
    are those that are placed already. One of the machines at least is open. 000, algorithm 1
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

    Relieves the machine that is full first. One of its instances goes to another machine, or
    changes places with one there, whichever leaves the two the most input. A worse placement may
    follow, but none twice. Gives the best seen. Not in 000, whose algorithms never move an
    instance.
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
    """Return the input at which the first of two machines is full, for each exchange between them.

    Shape (C, C + 1, M): an instance of the first component leaves the fullest machine for the third
    index. One of the second, if any, comes back. Minus infinity where that may not be.
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


def heterogeneity(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, profiles: Profiles = NONE
) -> Decision:
    """Decide for the scheduler that knows what each machine can do.

    All its moves, with the rate that the placement reaches by the profiles. None, with what is
    missing, if the rate to plan for, else the measured, does not fit. 000 fills machines up: the
    limits are not used. A cost profile is found by a node's kind of machine; raises PolicyError if
    a component has costs, but none for a node's kind. The cost of a component without any profile
    is its measured CPU over its input, the same on every machine, without overhead. One without
    input has all its CPU as overhead, and so have all where the spouts emit nothing.

    The paper chooses the numbers of instances, by its algorithm 2. Here they are given. Algorithm 1
    places them all at that rate, and a search of ours goes on to the placement that takes the most.
    The paper has one worker on a machine: executors go to the worker of the node that has least CPU
    in use. Pinned executors count as placed where they are.
    """
    why = f"heterogeneity-aware scheduler (000){left_out(snapshot)}"
    names = [name for name, group in executors_of(snapshot).items() if group]
    rate_tps, gain = _input(snapshot, profiles, names)
    loads = Fit.of(cluster, snapshot)
    model = _model(loads, snapshot, profiles, names, gain, is_driven=rate_tps > 0)
    fixed = _count(cluster, snapshot, names, ~snapshot.is_movable)
    is_open = np.bincount(cluster.node_of[cluster.is_open], minlength=len(cluster.nodes)) > 0
    most = _count(cluster, snapshot, names).sum(axis=1)
    if not is_open.any():
        return Decision(Outcome.NO_LOW_WORKER, f"{why}: resources are missing: no node is open")
    first = first_assignment(model, rate_tps, most, fixed, is_open)
    counts = replaced(model, first, fixed, is_open)
    reached_tps = model.reachable_tps(counts)
    load = model.load(counts, rate_tps)
    if load.max() > 1 + SLACK:
        fullest = int(np.argmax(load))
        fit = f"{reached_tps:.6g} of {rate_tps:.6g} t/s fit, " if rate_tps else ""
        reason = (
            f"{why}: resources are missing: {fit}"
            f"{cluster.nodes[fullest]} would need {load[fullest]:.3g} of its CPU"
        )
        return Decision(Outcome.NO_LOW_WORKER, reason)
    place = _executors(loads, snapshot, names, counts, model.tcu(most, rate_tps))
    reaches = "nothing limits the rate" if reached_tps == inf else f"reaches {reached_tps:.6g} t/s"
    return as_decision(cluster, snapshot, place, f"{why}, {reaches}")


def _input(snapshot: LoadSnapshot, profiles: Profiles, names: list[str]) -> tuple[float, Floats]:
    """Give the topology's input, and what each component takes in for one tuple of it."""
    rates = planned_rates(snapshot, profiles)
    graph = component_graph(snapshot)
    rate_tps = sum(rates[name] for name in spouts(graph))
    taken = np.array([rates.get(name, 0.0) for name in names])
    return rate_tps, taken / (rate_tps or 1.0)


def _model(
    loads: Fit,
    snapshot: LoadSnapshot,
    profiles: Profiles,
    names: list[str],
    gain: Floats,
    *,
    is_driven: bool,
) -> Model:
    """Give the costs; without an input rate that drives it, all measured CPU is overhead."""
    cluster, measured_tps = loads.cluster, planned_rates(snapshot)
    _, cores = loads.by(cluster.node_of, len(cluster.nodes))
    cores = np.maximum(cores, SLACK)  # a node without workers is closed, but must not divide by 0
    cost, overhead = np.zeros((2, len(names), len(cluster.nodes)))
    for c, name in enumerate(names):
        profile = profiles.components.get(name)
        if profile and profile.costs:
            by_kind = {row.machine: row for row in profile.costs}
            for n, node in enumerate(cluster.nodes):
                machine = profiles.machines.get(node)
                row = by_kind.get(machine.kind if machine else "")
                if row is None:
                    raise PolicyError(_no_cost(name, node, machine.kind if machine else ""))
                cost[c, n] = row.ms_per_tuple / 1000 / cores[n]
                overhead[c, n] = row.overhead_frac
            continue
        members = np.array(snapshot.component_of) == name
        used = float(loads.demand[members].sum())
        input_tps = measured_tps.get(name, 0.0)
        if is_driven and input_tps > 0:
            cost[c] = used / input_tps / cores
        else:
            overhead[c] = used / members.sum() / cores
    return Model(gain, cost, overhead)


def _no_cost(component: str, node: str, kind: str) -> str:
    return (
        f"policy heterogeneity: component {component}: profile.costs has no machine {kind!r}, "
        f"which node {node} is. Add it, or leave all costs away to plan with the measured CPU"
    )


def _count(
    cluster: Cluster, snapshot: LoadSnapshot, names: list[str], which: Mask | None = None
) -> Ints:
    index = {name: c for c, name in enumerate(names)}
    counts = np.zeros((len(names), len(cluster.nodes)), dtype=np.int64)
    for e, name in enumerate(snapshot.component_of):
        if which is None or which[e]:
            counts[index[name], cluster.node_of[snapshot.place[e]]] += 1
    return counts


def _executors(
    loads: Fit, snapshot: LoadSnapshot, names: list[str], counts: Ints, tcu: Floats
) -> Ints:
    """Choose which executor goes where: those that may stay on their node do."""
    cluster, place = loads.cluster, snapshot.place.copy()
    node = cluster.node_of[place]
    members = np.array(snapshot.component_of)
    in_use = np.zeros(len(cluster.workers))
    index = {name: c for c, name in enumerate(names)}
    for e in np.flatnonzero(~snapshot.is_movable):
        in_use[place[e]] += tcu[index[members[e]], node[e]]
    for c in np.argsort(-rounded(tcu.max(axis=1)), kind="stable"):
        group = np.flatnonzero((members == names[c]) & snapshot.is_movable)
        pinned = np.flatnonzero((members == names[c]) & ~snapshot.is_movable)
        free = counts[c] - np.bincount(node[pinned], minlength=len(cluster.nodes))
        stays = [e for e in group if _take(free, node[e])]
        goes = [e for e in group if e not in stays]
        targets = np.repeat(np.arange(len(free)), free)
        for e, n in [*((e, node[e]) for e in stays), *zip(goes, targets, strict=True)]:
            workers = np.flatnonzero((cluster.node_of == n) & cluster.is_open)
            place[e] = workers[np.argmin(rounded(in_use / loads.capacity)[workers])]
            in_use[place[e]] += tcu[c, n]
    return place


def _take(free: Ints, node: int) -> bool:
    taken = bool(free[node] > 0)
    free[node] -= taken
    return taken
