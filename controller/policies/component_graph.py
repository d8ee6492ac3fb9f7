"""The graph of a topology's components, in the order the older schedulers walk it.

Tuples are followed from the spouts through it. networkx has no types.
"""

from collections.abc import Mapping

import networkx as nx  # type: ignore[import-untyped]
import numpy as np

from controller.core.cluster import LoadSnapshot
from controller.policies.profiles import NONE, Profiles


def component_graph(snapshot: LoadSnapshot) -> nx.DiGraph:
    """Build the graph of components as submitted, cycles and all.

    Components are in the order of the snapshot, neighbours too, however the edges are ordered.
    Several streams between two components are one edge. System components (ackers, metrics
    consumers) and their streams are left out; a component without executors is a node like any.
    """
    rank = {c.id: i for i, c in enumerate(snapshot.components) if c.kind != "system"}
    pairs = {(edge.source, edge.target) for edge in snapshot.edges}
    inside = [pair for pair in pairs if pair[0] in rank and pair[1] in rank]
    graph = nx.DiGraph()
    graph.add_nodes_from(rank)
    graph.add_edges_from(sorted(inside, key=lambda pair: (rank[pair[0]], rank[pair[1]])))
    return graph


def acyclic(graph: nx.DiGraph) -> nx.DiGraph:
    """Drop the edges that lead back.

    No paper has a rule for a cycle. An edge leads back if its target finishes after its source in a
    depth first search. The search starts from the components that nothing feeds (the spouts), then
    from the others, each in the order of the graph.
    """
    sources_first = nx.DiGraph()
    sources_first.add_nodes_from(sorted(graph, key=lambda name: graph.in_degree(name) > 0))
    sources_first.add_edges_from(graph.edges)
    finish = {name: i for i, name in enumerate(nx.dfs_postorder_nodes(sources_first))}
    forward = nx.DiGraph()
    forward.add_nodes_from(graph)
    forward.add_edges_from(pair for pair in graph.edges if finish[pair[0]] > finish[pair[1]])
    return forward


def left_out(snapshot: LoadSnapshot) -> str:
    """Name for a reason the edges of a cyclic topology that do not count; nothing of an acyclic
    one.
    """
    graph = component_graph(snapshot)
    back = [f"{a} -> {b}" for a, b in graph.edges - acyclic(graph).edges]
    return f" (left out, found depth first: {', '.join(sorted(back))})" if back else ""


def linearised(graph: nx.DiGraph) -> list[str]:
    """Order components such that each comes after those that feed it.

    Edges that lead back do not count. Where the edges leave it open, the order of the graph
    decides.
    """
    rank = {name: i for i, name in enumerate(graph)}
    return list(nx.lexicographical_topological_sort(acyclic(graph), key=rank.__getitem__))


def feeders(graph: nx.DiGraph, component: str) -> list[str]:
    """List the components that send straight to one, in the order of the graph."""
    return [name for name in graph if graph.has_edge(name, component)]


def consumers(graph: nx.DiGraph, component: str) -> list[str]:
    """List the components that one sends straight to, in the order of the graph."""
    return [name for name in graph if graph.has_edge(component, name)]


def executors_of(snapshot: LoadSnapshot) -> dict[str, list[int]]:
    """Sort executors by component, their indices rising.

    Components are in the order of the snapshot, system components last; a component without
    executors has an empty list.
    """
    last = sorted(snapshot.components, key=lambda component: component.kind == "system")
    found: dict[str, list[int]] = {component.id: [] for component in last}
    for executor, component in enumerate(snapshot.component_of):
        found[component].append(executor)
    return found


def input_rates(
    graph: nx.DiGraph, selectivity: Mapping[str, float], rate_tps: float
) -> dict[str, float]:
    """Compute how many tuples/s each component has to take in, upstream first.

    `rate_tps` comes into every component that nothing feeds. A component's `selectivity` is tuples
    out for one in, 1 where it is not given. Edges that lead back do not count.

    GetRate of 001, with one selectivity for all out-edges of a component. 000, equation 6, with the
    instances of a component added up. Its authors' code splits the output between the downstream
    components. Storm gives each of them all of it.
    """
    forward = acyclic(graph)
    rates: dict[str, float] = {}
    for name in linearised(forward):
        sources = feeders(forward, name)
        rates[name] = 0.0 if sources else rate_tps
        for source in sources:
            rates[name] += rates[source] * selectivity.get(source, 1.0)
    return rates


def spouts(graph: nx.DiGraph) -> list[str]:
    """List the components that nothing feeds, in the order of the graph: one or more if it has any.

    Edges that lead back do not count.
    """
    forward = acyclic(graph)
    return [name for name in graph if not feeders(forward, name)]


def planned_rates(snapshot: LoadSnapshot, profiles: Profiles = NONE) -> dict[str, float]:
    """Return what each component has to take in: as the profiles ask for, else as it was measured.

    The `rate_tps` to plan for is shared evenly by the spouts. Measured is what a component received
    from others; of one that received nothing, what it sent, once for all its consumers.
    """
    graph = component_graph(snapshot)
    if profiles.rate_tps is None:
        return {name: _measured_tps(snapshot, graph, name) for name in graph}
    selectivity = {name: profile.selectivity for name, profile in profiles.components.items()}
    each = profiles.rate_tps / max(len(spouts(graph)), 1)
    return input_rates(graph, selectivity, each)


def _measured_tps(snapshot: LoadSnapshot, graph: nx.DiGraph, name: str) -> float:
    traffic, executors = snapshot.traffic, executors_of(snapshot)

    def between(sources: list[str], targets: list[str]) -> float:
        source = np.isin(traffic.source, [e for s in sources for e in executors[s]])
        target = np.isin(traffic.target, [e for t in targets for e in executors[t]])
        return float(traffic.tps[source & target].sum())

    received = between([other for other in graph if other != name], [name])
    fed = consumers(graph, name)
    return received or between([name], fed) / max(len(fed), 1)
