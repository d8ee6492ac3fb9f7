"""The load after moves."""

from collections.abc import Iterable

from controller.core.cluster import Cluster, LoadSnapshot, place_after
from controller.core.decision import Move
from controller.core.fit import predicted
from controller.core.spaces import uses_of


def applied(moves: Iterable[Move], cluster: Cluster, snapshot: LoadSnapshot) -> LoadSnapshot:
    """Make the moves: the same load on the placement after them, but for what hops use.

    Executors take along what they keep in the spaces of their workers.
    """
    executors, workers = snapshot.executors, cluster.workers
    steps = ((executors.index(move.executor), workers.index(move.target)) for move in moves)
    kept = {one.space.name: one.held for one in uses_of(cluster, snapshot)}
    return predicted(cluster, snapshot, place_after(snapshot.place, steps)).keeping(kept)
