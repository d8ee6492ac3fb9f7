"""Builds three small worlds that show what OTD does."""

from controller.core.cluster import Cluster, LoadSnapshot
from tests.snapshots import cluster, topology


def hand_graph() -> tuple[Cluster, LoadSnapshot]:
    """Build a graph small enough to follow by hand.

    Returns
    -------
    Cluster
        Two nodes of two workers.
    LoadSnapshot
        Six executors of 0.2 cores, 32 tuples per second, of which 24 go between the nodes.
    """
    talk = [(0, 1, 8.0), (0, 2, 2.0), (1, 3, 5.0), (2, 4, 7.0), (3, 5, 4.0), (4, 5, 6.0)]
    snapshot = topology(
        {f"c{i}": 1 for i in range(6)},
        [(f"c{a}", f"c{b}") for a, b, _ in talk],
        place=[0, 2, 1, 0, 3, 2],
        cpu_cores=[0.2] * 6,
        talk=talk,
    )
    return cluster([2, 2]), snapshot


def saddle() -> tuple[Cluster, LoadSnapshot]:
    """Build a placement that no single move improves.

    Returns
    -------
    Cluster
        Two nodes of one worker.
    LoadSnapshot
        Two executors of one component talk to two of another, one of each on each node.
    """
    snapshot = topology(
        {"bolt1": 2, "bolt2": 2},
        [("bolt1", "bolt2")],
        place=[0, 1, 0, 1],
        cpu_cores=[0.2] * 4,
        talk=[(0, 2, 10.0), (0, 3, 10.0), (1, 2, 10.0), (1, 3, 10.0)],
    )
    return cluster([1, 1]), snapshot


def ping_pong() -> tuple[Cluster, LoadSnapshot]:
    """Build a placement to which the literal OTD comes back.

    Returns
    -------
    Cluster
        Two nodes of one worker.
    LoadSnapshot
        Two executors that talk, both on the first worker, which they overload.
    """
    snapshot = topology(
        {"bolt1": 1, "bolt2": 1},
        [("bolt1", "bolt2")],
        cpu_cores=[0.5, 0.4],
        talk=[(0, 1, 10.0)],
    )
    return cluster([1, 1]), snapshot
