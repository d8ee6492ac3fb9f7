"""Finds workers of topologies that the hooks in Nimbus do not publish."""

from collections.abc import Iterable, Iterator

from controller.core.topology import TopologyView
from migration.model import NodeAcks, WorkerAck


def unpublished(
    views: Iterable[TopologyView], acks: Iterable[NodeAcks]
) -> Iterator[tuple[str, WorkerAck]]:
    """List such workers as the agents report them, each with its node."""
    known = {view.id for view in views}
    for one in acks:
        yield from ((one.node, worker) for worker in one.workers if worker.topology not in known)
