"""Places the executors there are by the rules of 000: nodes are machines."""

from dataclasses import replace
from math import inf

import numpy as np

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.view.view import rounded
from controller.errors import PolicyError
from controller.policies.component_graph import (
    component_graph,
    executors_of,
    left_out,
    planned_rates,
    spouts,
)
from controller.policies.heterogeneity.placing import SLACK, Mask, Model, first_assignment, replaced
from controller.policies.placement import as_decision


def heterogeneity(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide for the scheduler that knows what each machine can do.

    All its moves, with the rate that the placement reaches by the profiles; none, with what is
    missing, if the rate to plan for, else the measured, does not fit. 000 fills machines up: the
    limits are not used. A cost profile is found by a node's kind of machine; raises PolicyError if
    a component has costs, but none for a node's kind. The cost of a component without any profile
    is its measured CPU over its input, the same on every machine, without overhead; one without
    input has all its CPU as overhead, and so have all where the spouts emit nothing.

    The paper chooses the numbers of instances, by its algorithm 2. Here they are given: algorithm 1
    places them all at that rate, and a search of ours goes on to the placement that takes the most.
    The paper has one worker on a machine: executors go to the worker of the node that has least CPU
    in use. Pinned executors count as placed where they are.
    """
    why = f"heterogeneity-aware scheduler (000){left_out(snapshot)}"
    names = [name for name, group in executors_of(snapshot).items() if group]
    rate_tps, gain = _input(snapshot, names)
    model = _model(cluster, snapshot, names, gain, is_driven=rate_tps > 0)
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
    place = _executors(cluster, snapshot, names, counts, model.tcu(most, rate_tps))
    reaches = "nothing limits the rate" if reached_tps == inf else f"reaches {reached_tps:.6g} t/s"
    return as_decision(cluster, snapshot, place, f"{why}, {reaches}")


def _input(snapshot: LoadSnapshot, names: list[str]) -> tuple[float, Floats]:
    """Give the topology's input, and what each component takes in for one tuple of it."""
    rates = planned_rates(snapshot)
    graph = component_graph(snapshot)
    rate_tps = sum(rates[name] for name in spouts(graph))
    taken = np.array([rates.get(name, 0.0) for name in names])
    return rate_tps, taken / (rate_tps or 1.0)


def _model(
    cluster: Cluster, snapshot: LoadSnapshot, names: list[str], gain: Floats, *, is_driven: bool
) -> Model:
    """Give the costs; without an input rate that drives it, all measured CPU is overhead."""
    measured_tps = planned_rates(replace(snapshot, rate_tps=None))
    cores = np.bincount(
        cluster.node_of, weights=cluster.capacity_cores, minlength=len(cluster.nodes)
    )
    cores = np.maximum(cores, SLACK)  # a node without workers is closed, but must not divide by 0
    cost, overhead = np.zeros((2, len(names), len(cluster.nodes)))
    for c, name in enumerate(names):
        profile = snapshot.profiles.get(name)
        if profile and profile.costs:
            by_kind = {row.machine: row for row in profile.costs}
            for n, node in enumerate(cluster.nodes):
                machine = cluster.machines.get(node)
                row = by_kind.get(machine.kind if machine else "")
                if row is None:
                    raise PolicyError(_no_cost(name, node, machine.kind if machine else ""))
                cost[c, n] = row.ms_per_tuple / 1000 / cores[n]
                overhead[c, n] = row.overhead_frac
            continue
        members = np.array(snapshot.component_of) == name
        used = float(snapshot.cpu_cores[members].sum())
        input_tps = measured_tps.get(name, 0.0)
        if is_driven and input_tps > 0:
            cost[c] = used / input_tps / cores
        else:
            overhead[c] = used / members.sum() / cores
    return Model(gain, cost, overhead)


def _no_cost(component: str, node: str, kind: str) -> str:
    return (
        f"policy heterogeneity: component {component}: profile.costs has no machine {kind!r}, "
        f"which node {node} is; add it, or leave all costs away to plan with the measured CPU"
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
    cluster: Cluster, snapshot: LoadSnapshot, names: list[str], counts: Ints, tcu: Floats
) -> Ints:
    """Choose which executor goes where: those that may stay on their node do."""
    place = snapshot.place.copy()
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
            place[e] = workers[np.argmin(rounded(in_use / cluster.capacity_cores)[workers])]
            in_use[place[e]] += tcu[c, n]
    return place


def _take(free: Ints, node: int) -> bool:
    taken = bool(free[node] > 0)
    free[node] -= taken
    return taken
