"""How a command looks at the topologies and hosts that ZooKeeper holds."""

from collections.abc import Collection, Sequence

from controller.core.topology import TopologyView
from controller.errors import CommandError
from controller.storm.collect import LiveCluster
from controller.storm.command_record import find
from kvstore.zookeeper import Session


def hosts_of(session: Session) -> dict[str, str]:
    """Name the host of each supervisor."""
    return {node.id: node.host for node in LiveCluster.of_session(session).nodes()}


def topologies(session: Session) -> list[TopologyView]:
    return list(LiveCluster.of_session(session).topologies())


def view_named(views: Sequence[TopologyView], topology: str) -> TopologyView:
    view = find(views, topology)
    if view is None:
        known = ", ".join(view.publication.name for view in views) or "none"
        raise CommandError(f"no topology {topology}: the hooks in Nimbus publish {known}")
    return view


def name_of(views: Sequence[TopologyView], topology: str, kept: Collection[str]) -> str:
    """Give the name of a topology; one that is gone may be among the names that are `kept`."""
    return topology if topology in kept else view_named(views, topology).publication.name
