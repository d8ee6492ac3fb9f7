"""Turns a whole placement, as the older schedulers make it, into the moves that lead there."""

from controller.core.cluster import Cluster, Ints, LoadSnapshot, inter_node_tps
from controller.core.decide import Decision, Outcome, Proposal


def as_decision(cluster: Cluster, snapshot: LoadSnapshot, place: Ints, why: str) -> Decision:
    """List the moves from today's placement to another one.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Today's placement and traffic.
    place : Ints, shape (E,)
        Index of the worker each executor should be on.
    why : str
        How the placement was made, for the reason.

    Returns
    -------
    Decision
        Every move that is allowed, in the order of the executors' ids; pinned executors stay, and
        nothing moves to a closed worker. NOTHING_TO_GAIN if nothing has to move.
    """
    wanted = [e for e in range(len(snapshot.executors)) if place[e] != snapshot.place[e]]
    allowed = [e for e in wanted if snapshot.is_movable[e] and cluster.is_open[place[e]]]
    if not allowed:
        left = f", but {len(wanted)} that should move may not" if wanted else ""
        return Decision(Outcome.NOTHING_TO_GAIN, f"{why}: nothing to move{left}")
    moves = []
    after = snapshot
    for e in allowed:
        # Each move is judged where the ones before it have put the others.
        asc_tps = inter_node_tps(cluster, after)
        after = after.moved(e, int(place[e]))
        asc_tps -= inter_node_tps(cluster, after)
        source, target = cluster.workers[snapshot.place[e]], cluster.workers[place[e]]
        moves.append(Proposal(snapshot.executors[e], source, target, asc_tps))
    stay = f", {len(wanted) - len(allowed)} more may not" if len(wanted) > len(allowed) else ""
    reason = f"{why}: {len(allowed)} of {len(snapshot.executors)} executors move{stay}"
    return Decision(Outcome.WOULD_MOVE, reason, tuple(moves))
