"""Turns a whole placement, as the older schedulers make it, into the moves that lead there."""

import numpy as np

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.proposals import proposals


def as_decision(cluster: Cluster, snapshot: LoadSnapshot, place: Ints, why: str) -> Decision:
    """List the moves from today's placement to `place`, the worker of each executor.

    Every move that is allowed, in the order of the executors' ids: pinned executors stay, and
    nothing moves to a closed worker. NOTHING_TO_GAIN if nothing has to move. The reason begins with
    `why`, how the placement was made. O(E + pairs with traffic).
    """
    wanted = np.flatnonzero(place != snapshot.place)
    allowed = wanted[snapshot.is_movable[wanted] & cluster.is_open[place[wanted]]]
    if not allowed.size:
        left = f", but {wanted.size} that should move may not" if wanted.size else ""
        return Decision(Outcome.NOTHING_TO_GAIN, f"{why}: nothing to move{left}")
    steps = zip(allowed.tolist(), place[allowed].tolist(), strict=True)
    moves = proposals(cluster, snapshot, steps)
    stay = f", {wanted.size - allowed.size} more may not" if wanted.size > allowed.size else ""
    reason = f"{why}: {allowed.size} of {len(snapshot.executors)} executors move{stay}"
    return Decision(Outcome.WOULD_MOVE, reason, moves)
