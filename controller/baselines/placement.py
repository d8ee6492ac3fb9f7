"""Turns a whole placement, as the older schedulers make it, into the moves that lead there."""

import numpy as np

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decide import Decision, Outcome, Proposal
from controller.core.view.pairs import Pairs


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
        nothing moves to a closed worker. NOTHING_TO_GAIN if nothing has to move. O(E + pairs with
        traffic).
    """
    wanted = np.flatnonzero(place != snapshot.place)
    allowed = wanted[snapshot.is_movable[wanted] & cluster.is_open[place[wanted]]]
    if not allowed.size:
        left = f", but {wanted.size} that should move may not" if wanted.size else ""
        return Decision(Outcome.NOTHING_TO_GAIN, f"{why}: nothing to move{left}")
    moves = _in_turn(cluster, snapshot, place, allowed)
    stay = f", {wanted.size - allowed.size} more may not" if wanted.size > allowed.size else ""
    reason = f"{why}: {allowed.size} of {len(snapshot.executors)} executors move{stay}"
    return Decision(Outcome.WOULD_MOVE, reason, moves)


def _in_turn(
    cluster: Cluster, snapshot: LoadSnapshot, place: Ints, moving: Ints
) -> tuple[Proposal, ...]:
    """Judge each move where the ones before it have put the others."""
    pairs = Pairs.of(snapshot.traffic, len(snapshot.executors))
    node = cluster.node_of[snapshot.place]
    moves = []
    for e in moving:
        to = int(cluster.node_of[place[e]])
        asc_tps = pairs.asc_tps(snapshot.traffic.tps, node, e, to)
        node[e] = to
        source, target = cluster.workers[snapshot.place[e]], cluster.workers[place[e]]
        moves.append(Proposal(snapshot.executors[e], source, target, asc_tps))
    return tuple(moves)
