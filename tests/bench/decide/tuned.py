"""Gives the older schedulers, where their papers leave a value open, the one that serves them best.

Neither paper prints its tuning. So each is asked with several values, and the answer counts that
ends best by the measure of the comparison: a choice that no operator could make beforehand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from controller.core.classify import TOLERANCE_CORES, Limits
from controller.core.cluster import Cluster, LoadSnapshot, Performance, Profile
from controller.core.decision import Decision, Rule
from controller.policies.aniello import aniello_online
from controller.policies.model_driven.policies import rsm
from controller.policies.registry import Aniello
from tests.bench.decide.measures import cpu_use, weighted_cost_tps

# From as many executors in each worker to nearly all in one.
ALPHAS = (0.0, 0.5, 1.0)
# Room that a worker's memory leaves above the mean executor's share of its CPU.
MEMORY_RESERVES = (1.0, 1.15, 1.3)


def best_aniello(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide as the online scheduler of 002, tuned for this case.

    Parameters
    ----------
    cluster, snapshot, limits : Cluster, LoadSnapshot, Limits
        As for every policy.

    Returns
    -------
    Decision
        The best of all `ALPHAS`, with the authors' load cap gamma off, at the mean, at the upper
        threshold and half way.
    """
    used_frac = cpu_use(cluster, snapshot).mean_frac
    most = max(limits.high_frac / used_frac, 1.0) if used_frac else 1.0
    caps = (None, 1.0, (1.0 + most) / 2, most)
    tunings = (Aniello(alpha=alpha, gamma=cap) for alpha, cap in product(ALPHAS, caps))
    policies = [partial(aniello_online, options=tuning) for tuning in tunings]
    return _best(policies, cluster, snapshot, limits)


def best_rsm(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide as R-Storm, with the profile of memory that serves it best, or none.

    Parameters
    ----------
    cluster, snapshot, limits : Cluster, LoadSnapshot, Limits
        As for every policy.

    Returns
    -------
    Decision
        R-Storm fits CPU to nodes only; memory, which it fits to workers, keeps it from filling one
        worker of a node with everything. It goes with the CPU or is the same for all.
    """
    policies: list[Rule] = [rsm]
    for reserve, alike in product(MEMORY_RESERVES, (False, True)):
        policies.append(partial(_with_memory, reserve=reserve, alike=alike))
    return _best(policies, cluster, snapshot, limits)


def _with_memory(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, reserve: float, *, alike: bool
) -> Decision:
    profiles = dict(_profiles(cluster, snapshot, reserve / limits.high_frac, alike=alike))
    return rsm(cluster, replace(snapshot, profiles=profiles), limits)


def _profiles(
    cluster: Cluster, snapshot: LoadSnapshot, memory_per_cpu: float, *, alike: bool
) -> Iterator[tuple[str, Profile]]:
    """Profile each component by the mean of its executors, as an operator declares it."""
    components = np.array(snapshot.component_of)
    shares = snapshot.cpu_cores / cluster.capacity_cores.mean()
    for name in dict.fromkeys(snapshot.component_of):
        cpu_frac = float(shares[components == name].mean())
        memory_frac = memory_per_cpu * (float(shares.mean()) if alike else cpu_frac)
        yield name, Profile(performance=(Performance(1, 0.0, cpu_frac, min(memory_frac, 1.0)),))


def _best(
    policies: Sequence[Rule], cluster: Cluster, snapshot: LoadSnapshot, limits: Limits
) -> Decision:
    decisions = [policy(cluster, snapshot, limits) for policy in policies]
    return min(decisions, key=partial(_end, cluster, snapshot, limits))


def _end(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, decision: Decision
) -> tuple[float, float]:
    """Judge the placement a decision leads to: first what is above `high`, then the cost."""
    end = decision.applied(cluster, snapshot)
    over = cpu_use(cluster, end).max_frac - limits.high_frac
    return max(over, TOLERANCE_CORES), weighted_cost_tps(cluster, end, limits)
