"""Measures what a placement costs, and how full its workers are."""

from dataclasses import dataclass

from controller.core.classify import Limits, worker_cpu_cores
from controller.core.cluster import Cluster, LoadSnapshot, inter_node_tps


@dataclass(frozen=True, slots=True)
class CpuUse:
    """How much of the CPU is used: of all workers together, and of the fullest one."""

    mean_frac: float
    max_frac: float


def weighted_cost_tps(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> float:
    """Compute what `gather` lowers.

    Tuples per second between nodes times `weight_node`, plus those between workers, which include
    them, times `weight_worker`.
    """
    traffic, place = snapshot.traffic, snapshot.place
    between_workers = traffic.tps[place[traffic.source] != place[traffic.target]]
    between_nodes = limits.weight_node * inter_node_tps(cluster, snapshot)
    return between_nodes + limits.weight_worker * float(between_workers.sum())


def cpu_use(cluster: Cluster, snapshot: LoadSnapshot) -> CpuUse:
    """Measure the CPU use of one worker or more; above 1 where more is asked for than there is."""
    load, capacity = worker_cpu_cores(cluster, snapshot), cluster.capacity_cores
    return CpuUse(float(load.sum() / capacity.sum()), float((load / capacity).max()))
