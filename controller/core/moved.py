"""The load after moves."""

from collections.abc import Iterable

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Move
from controller.core.fit import predicted


def applied(moves: Iterable[Move], cluster: Cluster, snapshot: LoadSnapshot) -> LoadSnapshot:
    """Make the moves: the same load on the placement after them, but for what hops use."""
    place = snapshot.place.copy()
    for move in moves:
        executor = snapshot.executors.index(move.executor)
        place[executor] = cluster.workers.index(move.target)
    return predicted(cluster, snapshot, place)
