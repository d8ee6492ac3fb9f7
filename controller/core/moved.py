"""The load after moves."""

from collections.abc import Iterable

from controller.core.cluster import Cluster, LoadSnapshot, place_after
from controller.core.decision import Move
from controller.core.fit import predicted


def applied(moves: Iterable[Move], cluster: Cluster, snapshot: LoadSnapshot) -> LoadSnapshot:
    """Make the moves: the same load on the placement after them, but for what hops use."""
    executors, workers = snapshot.executors, cluster.workers
    steps = ((executors.index(move.executor), workers.index(move.target)) for move in moves)
    return predicted(cluster, snapshot, place_after(snapshot.place, steps))
