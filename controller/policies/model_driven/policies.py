"""Places the executors there are by the mappings of 001: workers are slots, nodes machines."""

from math import inf

import networkx as nx  # type: ignore[import-untyped]
import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.limits import Limits
from controller.errors import PolicyError
from controller.policies.component_graph import (
    acyclic,
    component_graph,
    executors_of,
    left_out,
    planned_rates,
)
from controller.policies.model_driven.mapping import (
    SLACK,
    Allocation,
    Lacking,
    Need,
    Placed,
    Slots,
    at,
    enough,
    peak,
)
from controller.policies.model_driven.mapping import dsm as map_dsm
from controller.policies.model_driven.mapping import rsm as map_rsm
from controller.policies.model_driven.mapping import sam as map_sam
from controller.policies.placement import as_decision
from controller.policies.profiles import NONE, Performance, Profiles

# Executors that are mapped together, by name.
Groups = dict[str, list[int]]


def dsm(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide for Storm's default mapping as 001 has it; it knows no load and no limits."""
    groups = executors_of(snapshot)
    workers = _machine_by_machine(cluster)
    placed = map_dsm({name: len(group) for name, group in groups.items()}, len(workers))
    why = "default Storm mapping (001)"
    return _decision(cluster, snapshot, groups, placed, workers, why=why)


def rsm(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, profiles: Profiles = NONE
) -> Decision:
    """Decide for R-Storm's mapping, which fills machines up: the limits are not used.

    All its moves; none, with what is missing, if an executor fits nowhere. A worker of the mean
    capacity is a slot of size 1. With a performance profile each executor needs what one thread
    does at its peak. Without, it needs the CPU it was measured to use and no memory, which is not
    measured.

    CPU has to fit the node, memory the worker: with unknown memory one worker of a node takes all
    that the node's CPU allows. The paper knows no pinned executors: they count as placed where they
    are, before the others.
    """
    unit_cores = float(cluster.capacity_cores.mean())
    needs = [_one_thread(snapshot, profiles, e, unit_cores) for e in range(len(snapshot.executors))]
    groups = _movable(snapshot)
    slots, workers = _open_slots(cluster, snapshot, needs, cluster.capacity_cores / unit_cores)
    placed = map_rsm({name: [needs[e] for e in group] for name, group in groups.items()}, slots)
    why = f"R-Storm mapping (001){left_out(snapshot)}"
    return _decision(cluster, snapshot, groups, placed, workers, why=why)


def sam(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, profiles: Profiles = NONE
) -> Decision:
    """Decide for the slot-aware mapping, which fills slots up: the limits are not used.

    All its moves; none, with what is missing, if a bundle or the rest of one fits nowhere. Every
    worker is a slot of size 1, as the profiles are shares of a slot. Without a rate to plan for the
    measured one counts; without either every bundle that the threads make up is a full one. Raises
    PolicyError if a component that is not a system component has movable executors and no profile.

    The paper chooses the number of threads by MBA; here it is given. With MBA's numbers the bundles
    are MBA's. Pinned executors count as placed where they are, with their measured CPU. System
    components are not in the paper: each executor alone, last.
    """
    total = executors_of(snapshot)
    rates = planned_rates(snapshot, profiles)
    known = any(rates.values())
    groups: Groups = {}
    tasks: dict[str, Allocation] = {}
    needs = [Need(float(cpu), 0.0) for cpu in snapshot.cpu_cores / cluster.capacity_cores.mean()]
    for name, group in _movable(snapshot).items():
        if name in rates:
            rate = rates[name] * len(group) / len(total[name]) if known else inf
            groups[name] = group
            tasks[name] = allocate_existing(_table(profiles, name), len(group), rate)
            continue
        for e in group:
            key = f"{name} {snapshot.executors[e]}"
            groups[key] = [e]
            tasks[key] = Allocation(0, 1, 1, needs[e].cpu_frac, 0.0)
    slots, workers = _open_slots(cluster, snapshot, needs, np.ones(len(cluster.workers)))
    placed = map_sam(tasks, slots)
    why = f"slot-aware mapping (001){left_out(snapshot)}"
    return _decision(cluster, snapshot, groups, placed, workers, why=why)


def allocate_existing(table: tuple[Performance, ...], threads: int, rate_tps: float) -> Allocation:
    """Separate full bundles from the rest, for a number of threads that is given, at least 1.

    As by MBA if there are as many threads as MBA allocates for the rate, which may be infinite.
    Threads beyond those cost nothing; if there are fewer, those there are work at their peak.
    """
    best = peak(table)
    bundles = int(min(threads // best.threads, rate_tps / best.rate_tps + SLACK))
    left = threads - bundles * best.threads
    left_tps = min(max(rate_tps - bundles * best.rate_tps, 0.0), best.rate_tps)
    if not left or left_tps <= SLACK * best.rate_tps:
        return Allocation(bundles, best.threads, left, 0.0, 0.0)
    busy = min(left, enough(table, left_tps).threads)
    rest = at(table, busy)
    used = min(left_tps / rest.rate_tps, 1.0) if busy == 1 and rest.rate_tps else 1.0
    cpu, memory = used * rest.cpu_frac, used * rest.memory_frac
    return Allocation(bundles, best.threads, left, cpu, memory)


def _table(profiles: Profiles, component: str) -> tuple[Performance, ...]:
    profile = profiles.components.get(component)
    table = profile.performance if profile else ()
    if not any(point.rate_tps for point in table):
        raise PolicyError(
            f"policy sam: component {component}: profile.performance must have a rate above 0 for "
            "some number of threads; measure it, or use rsm, which needs no profile"
        )
    return tuple(sorted(table, key=lambda point: point.threads))


def _one_thread(
    snapshot: LoadSnapshot, profiles: Profiles, executor: int, unit_cores: float
) -> Need:
    profile = profiles.components.get(snapshot.component_of[executor])
    if profile is None or not profile.performance:
        return Need(float(snapshot.cpu_cores[executor]) / unit_cores, 0.0)
    one = at(sorted(profile.performance, key=lambda point: point.threads), 1)
    return Need(one.cpu_frac, one.memory_frac)


def _movable(snapshot: LoadSnapshot) -> Groups:
    """Sort what may move by component: breadth first from the spouts, system components last."""
    graph = component_graph(snapshot)
    rank = {name: i for i, name in enumerate(graph)}
    layers = nx.topological_generations(acyclic(graph))
    order = [name for layer in layers for name in sorted(layer, key=rank.__getitem__)]
    groups = executors_of(snapshot)
    order += [name for name in groups if name not in rank]
    movable = {name: [e for e in groups[name] if snapshot.is_movable[e]] for name in order}
    return {name: group for name, group in movable.items() if group}


def _machine_by_machine(cluster: Cluster) -> Ints:
    return np.argsort(cluster.node_of, kind="stable")


def _open_slots(
    cluster: Cluster, snapshot: LoadSnapshot, needs: list[Need], size: Floats
) -> tuple[Slots, Ints]:
    """Give the slots of the open workers less what pinned executors take, and their workers."""
    cpu, memory = size.copy(), np.ones(len(size))
    for e in np.flatnonzero(~snapshot.is_movable):
        cpu[snapshot.place[e]] -= needs[e].cpu_frac
        memory[snapshot.place[e]] -= needs[e].memory_frac
    workers = _machine_by_machine(cluster)
    workers = workers[cluster.is_open[workers]]
    return Slots(cluster.node_of[workers], cpu[workers], memory[workers]), workers


def _decision(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    groups: Groups,
    placed: Placed | Lacking,
    workers: Ints,
    *,
    why: str,
) -> Decision:
    if isinstance(placed, Lacking):
        reason = (
            f"{why}: resources are missing: {placed.threads} of {placed.task} need "
            f"{placed.need.cpu_frac:.3g} of a worker's CPU and {placed.need.memory_frac:.3g} of "
            "its memory, and nowhere is so much left"
        )
        return Decision(Outcome.NO_LOW_WORKER, reason)
    place = snapshot.place.copy()
    for name, slots in placed.items():
        place[groups[name]] = workers[slots]
    return as_decision(cluster, snapshot, place, why)
