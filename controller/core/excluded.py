"""The topologies, components and hosts that settings and operators exclude."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace


def nodes_named(hosts: Mapping[str, str], named: Collection[str]) -> frozenset[str]:
    """Give the nodes that are named by their id or their host, given the host of each node."""
    return frozenset(node for node, host in hosts.items() if node in named or host in named)


@dataclass(frozen=True, slots=True)
class Excluded:
    topologies: frozenset[str] = frozenset()
    components: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()  # hosts that operators drain: nothing moves there

    def has_topology(self, topology: str, name: str) -> bool:
        """Return whether a topology is among them, by its id or its name."""
        return topology in self.topologies or name in self.topologies

    def on(self, hosts: Mapping[str, str]) -> "Excluded":
        """Put ids of nodes in place of hosts, given the host of each node."""
        closed, drained = nodes_named(hosts, self.hosts), nodes_named(hosts, self.drained)
        return replace(self, hosts=closed, drained=drained)


NOTHING_EXCLUDED = Excluded()
