"""Brings executors that talk together, first into workers, then onto nodes (002, section 3.2).

Our copy of the paper ends in the first sentence of phase 1: the model and its constraints are in
it, the rules of the two phases are not. They come from the authors' code; what neither says is
marked as a choice.
"""

import numpy as np

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.decision import Decision, Outcome
from controller.policies.aniello.offline import executor_limit, node_target
from controller.policies.aniello.options import Aniello
from controller.policies.aniello.packing import Packing, gather, occupy
from controller.policies.placement import as_decision


def load_hz(cluster: Cluster, snapshot: LoadSnapshot) -> tuple[Floats, Floats]:
    """Measure executors, shape (E,), and nodes, shape (N,), by clock cycles/s: so unlike nodes
    compare.

    002, section 3.2.1: 10 % of 1 GHz are 100 MHz, which are 5 % of 2 GHz. An executor's load is of
    the node where it was measured; a node without workers has 0. Unless the speed of every node
    with workers is known, all count alike and both are in cores.
    """
    slots = np.bincount(cluster.node_of, minlength=len(cluster.nodes))
    cores = np.bincount(cluster.node_of, cluster.capacity_cores, minlength=len(cluster.nodes))
    machines = [cluster.machines.get(node) for node in cluster.nodes]
    speed = np.array([machine.speed_hz if machine else 0.0 for machine in machines])
    known = (speed > 0) & (cores > 0)
    if not known[slots > 0].all():
        return snapshot.cpu_cores, cores.astype(np.float64)
    clock = np.divide(speed, cores, out=np.zeros_like(speed), where=known)
    return snapshot.cpu_cores * clock[cluster.node_of[snapshot.place]], clock * cores


def share_out(load: Floats, traffic: Traffic, workers: int, options: Aniello) -> Ints | int:
    """Share executors out among the abstract workers used, min(E, W) of them (phase 1).

    Gives each executor's worker, none of them empty; or an executor that fits nowhere, which needs
    a `gamma`. Directed pairs by falling traffic. At the end each empty worker gets the executor, of
    those not alone, that costs least traffic: constraint (2) of the paper.
    """
    most = np.full(workers, executor_limit(options.alpha, len(load), workers))
    mean = float(load.sum()) / max(workers, 1)
    room = np.full(workers, np.inf if options.gamma is None else options.gamma * mean)
    packing = Packing(load, traffic, most, room)
    stuck = gather(packing)
    if stuck is not None:
        return stuck
    occupy(packing, workers)
    return packing.bin_of


def spread_out(
    load: Floats, traffic: Traffic, cluster: Cluster, room: Floats, options: Aniello
) -> Ints | int:
    """Put workers onto nodes (phase 2), the same greedy one level up.

    Gives the node of each worker; or a worker that fits no node. Traffic is between workers, both
    directions added; `room` is the capacity of each node, B of the paper, in the unit of `load`.
    Only slots and capacity bind unless `delta` or `spread` is given.
    """
    slots = np.bincount(cluster.node_of, minlength=len(cluster.nodes))
    if options.delta is not None:
        slots = np.minimum(slots, executor_limit(options.delta, len(load), int((slots > 0).sum())))
    packing = Packing(load, traffic, slots, room)
    stuck = gather(packing)
    if stuck is not None:
        return stuck
    if options.spread is not None:
        occupy(packing, node_target(cluster, len(load), options.spread))
    return packing.bin_of


def online_place(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, options: Aniello
) -> Ints | str:
    """Place by the online scheduler, on exactly min(E, W) workers; or tell what does not fit.

    The authors' code does not reschedule then, nor do we. `high_frac` of a node's speed is its
    capacity. The slots of a node are taken in the order of their ids (our choice).
    """
    load, speed = load_hz(cluster, snapshot)
    workers = min(len(snapshot.executors), len(cluster.workers))
    alone = np.arange(len(snapshot.executors))
    group = share_out(load, _between(snapshot.traffic, alone), workers, options)
    if isinstance(group, int):
        return f"{_names(snapshot, [group])} fits no worker below gamma times the mean load"
    group_load = np.bincount(group, load, minlength=workers).astype(np.float64)
    both_ways = _both_ways(_between(snapshot.traffic, group))
    node = spread_out(group_load, both_ways, cluster, limits.high_frac * speed, options)
    if isinstance(node, int):
        together = np.flatnonzero(group == node).tolist()
        what = f"the worker of {_names(snapshot, together)}"
        return f"{what} fits no node with a free slot below {limits.high_frac:g} of its CPU"
    slot_of = np.zeros(workers, dtype=np.int64)
    for n in range(len(cluster.nodes)):
        here = np.flatnonzero(node == n)
        slot_of[here] = np.flatnonzero(cluster.node_of == n)[: len(here)]
    return slot_of[group]


def _between(traffic: Traffic, group: Ints) -> Traffic:
    """Add up what goes from one group to another."""
    source, target = group[traffic.source], group[traffic.target]
    apart = source != target
    return Traffic.build(source[apart], target[apart], traffic.tps[apart])


def _both_ways(traffic: Traffic) -> Traffic:
    lower = np.minimum(traffic.source, traffic.target)
    return Traffic.build(lower, np.maximum(traffic.source, traffic.target), traffic.tps)


def _names(snapshot: LoadSnapshot, executors: list[int]) -> str:
    names = [snapshot.executors[e] for e in executors[:5]]
    more = f" and {len(executors) - 5} more" if len(executors) > 5 else ""
    return f"{', '.join(names)}{more} with {snapshot.cpu_cores[executors].sum():.3g} cores"


def aniello_online(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, options: Aniello
) -> Decision:
    """Decide for the placement of the online scheduler of 002.

    All its moves, whether they gain or not: when to follow it is the matter of `triggers`.
    NO_LOW_WORKER if the load fits no node.
    """
    place = online_place(cluster, snapshot, limits, options)
    if isinstance(place, str):
        return Decision(Outcome.NO_LOW_WORKER, f"resources are missing: {place}")
    why = f"online scheduler (002), alpha {options.alpha:g}"
    return as_decision(cluster, snapshot, place, why)
