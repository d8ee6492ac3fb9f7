"""Follows tuples from the spouts through the graph of components."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from controller.core.cluster import LoadSnapshot
from controller.policies.component_graph import (
    acyclic,
    component_graph,
    consumers,
    executors_of,
    feeders,
    linearised,
)


def input_rates(graph: Any, selectivity: Mapping[str, float], rate_tps: float) -> dict[str, float]:
    """Compute how many tuples/s each component has to take in, upstream first.

    `rate_tps` comes into every component that nothing feeds. A component's `selectivity` is tuples
    out for one in, 1 where it is not given. Edges that lead back do not count.

    GetRate of 001, with one selectivity for all out-edges of a component. 000, equation 6, with the
    instances of a component added up; its authors' code splits the output between the downstream
    components, Storm gives each of them all of it.
    """
    forward = acyclic(graph)
    rates: dict[str, float] = {}
    for name in linearised(forward):
        sources = feeders(forward, name)
        rates[name] = 0.0 if sources else rate_tps
        for source in sources:
            rates[name] += rates[source] * selectivity.get(source, 1.0)
    return rates


def spouts(graph: Any) -> list[str]:
    """List the components that nothing feeds, in the order of the graph: one or more if it has any.

    Edges that lead back do not count.
    """
    forward = acyclic(graph)
    return [name for name in graph if not feeders(forward, name)]


def planned_rates(snapshot: LoadSnapshot) -> dict[str, float]:
    """Tell what each component has to take in: as the snapshot asks for, else as it was measured.

    The snapshot's `rate_tps` is shared evenly by the spouts. Measured is what a component received
    from others; of one that received nothing, what it sent, once for all its consumers.
    """
    graph = component_graph(snapshot)
    if snapshot.rate_tps is None:
        return {name: _measured_tps(snapshot, graph, name) for name in graph}
    selectivity = {name: profile.selectivity for name, profile in snapshot.profiles.items()}
    each = snapshot.rate_tps / max(len(spouts(graph)), 1)
    return input_rates(graph, selectivity, each)


def _measured_tps(snapshot: LoadSnapshot, graph: Any, name: str) -> float:
    traffic, executors = snapshot.traffic, executors_of(snapshot)

    def between(sources: list[str], targets: list[str]) -> float:
        source = np.isin(traffic.source, [e for s in sources for e in executors[s]])
        target = np.isin(traffic.target, [e for t in targets for e in executors[t]])
        return float(traffic.tps[source & target].sum())

    received = between([other for other in graph if other != name], [name])
    fed = consumers(graph, name)
    return received or between([name], fed) / max(len(fed), 1)
