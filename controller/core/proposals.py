"""The moves of a decision, each judged where those before it have put the others."""

from collections.abc import Iterable

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Move
from controller.core.pairs import Pairs


def proposals(
    cluster: Cluster, snapshot: LoadSnapshot, steps: Iterable[tuple[int, int]]
) -> tuple[Move, ...]:
    """Judge each of some moves where the ones before it have put the others.

    The snapshot has the placement before all of them.
    """
    pairs = Pairs.of(snapshot.traffic, len(snapshot.executors))
    node, workers, moves = cluster.node_of[snapshot.place], cluster.workers, []
    for executor, worker in steps:
        to = int(cluster.node_of[worker])
        asc_tps = pairs.asc_tps(snapshot.traffic.tps, node, executor, to)
        node[executor] = to
        source = workers[snapshot.place[executor]]
        moves.append(Move(snapshot.executors[executor], source, workers[worker], asc_tps))
    return tuple(moves)
