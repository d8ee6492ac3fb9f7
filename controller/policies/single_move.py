"""Policies that choose one move at a time: what they share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Ints
from controller.core.decision import Decision, Move, Outcome
from controller.core.limits import TIE
from controller.core.readable import readable
from controller.core.view import Moves, View, rounded


@dataclass(frozen=True, slots=True)
class Choice:
    """One move by its indices, and why; `warnings` name what placement cannot repair."""

    executor: int
    worker: int
    asc_tps: float
    why: str
    warnings: tuple[str, ...]
    for_room: bool = False  # as of a `Decision`

    def reason(self, view: View) -> str:
        """Write the reason out; most choices are looked at and not taken, and need none."""
        snapshot, workers, e = view.snapshot, view.cluster.workers, self.executor
        return (
            f"{self.why}: {snapshot.executors[e]} ({snapshot.component_of[e]}, "
            f"{view.fit.need(e)}) from {workers[snapshot.place[e]]} to "
            f"{workers[self.worker]}, {readable(self.asc_tps, '+.4g')} t/s inside nodes"
        )


Chooser = Callable[[View], Choice | Decision]


def disjoint(choose: Chooser, view: View) -> Decision:
    """Choose up to `max_moves` moves that do not touch each other, or return why there is none.

    Each move is chosen on the placement after those before it. No executor moves twice, and each
    pair of nodes is used once. Measured gains are of the placement before all of them, and two
    moves between the same nodes depend on each other most.
    """
    chosen: list[Choice] = []
    reasons: list[str] = []
    moves: list[Move] = []
    while len(chosen) < view.limits.max_moves:
        found = choose(view)
        if isinstance(found, Decision):
            if not chosen:
                return found
            break
        if found.for_room and chosen:
            break
        chosen.append(found)
        reasons.append(found.reason(view))
        moves.append(_proposal(view, found))
        if found.for_room:  # what others may fill is of the placement before it
            break
        if len(chosen) < view.limits.max_moves:
            view = view.without(found.executor, found.worker).moved(found.executor, found.worker)
    warnings = dict.fromkeys(text for choice in chosen for text in choice.warnings)
    return Decision(
        Outcome.WOULD_MOVE,
        "; then ".join(reasons),
        tuple(moves),
        tuple(warnings),
        for_room=chosen[-1].for_room,
    )


def _proposal(view: View, choice: Choice) -> Move:
    executors, workers = view.snapshot.executors, view.cluster.workers
    source = workers[view.snapshot.place[choice.executor]]
    return Move(executors[choice.executor], source, workers[choice.worker], choice.asc_tps)


def if_above_threshold(
    view: View, moves: Moves, warnings: tuple[str, ...], *, ranked: bool = False
) -> Choice | Decision:
    total = view.total_tps
    best = float(moves.score.max(initial=-np.inf))
    threshold = view.threshold_tps
    gain = view.limits.gain(best)
    # Rounding noise around zero is no gain.
    if best <= TIE * total:
        tail = f", the best by {gain}" if moves.score.size else ""
        reason = _no_way(view) or f"no move that fits brings traffic together{tail}"
        return Decision(Outcome.NOTHING_TO_GAIN, reason, (), warnings)
    if best <= threshold:
        reason = f"the best move gains {gain}, not more than the threshold {readable(threshold)}"
        return Decision(Outcome.BELOW_THRESHOLD, reason, (), warnings)
    why = f"a gain of {gain} is above the threshold {readable(threshold)}"
    return best_of(view, moves, why, warnings, ranked=ranked)


def _no_way(view: View) -> str | None:
    """Return why nothing could gain whatever the load, if it is so."""
    cluster, pinned = view.cluster, view.snapshot.pinned
    if not view.movable.any():
        return f"no executor may move, {_reasons(pinned, 'pinned')}"
    if len(cluster.workers) == 1:
        return f"there is only one worker, {cluster.workers[0]}, and nowhere to move to"
    if not cluster.is_open.any():
        return f"nothing may move to any worker, {_reasons(cluster.closed, 'closed')}"
    if not view.total_tps:
        return "there is no traffic to bring together"
    one = cluster.node_of[0]
    if (cluster.node_of == one).all() and not view.limits.weight_worker:
        return f"all workers are on one node, {cluster.nodes[one]}: no traffic leaves it"
    return None


def _reasons(reasons: tuple[str | None, ...], what: str) -> str:
    named = ", ".join(dict.fromkeys(reason for reason in reasons if reason))
    return f"all {len(reasons)} are {what}: {named}" if reasons else "there is none"


def best_of(
    view: View, moves: Moves, why: str, warnings: tuple[str, ...], *, ranked: bool = False
) -> Choice:
    """Take the best score; ties go to the first ids.

    If `ranked`, they go to the emptier target, then to what pauses least, and to the ids then.
    """
    tied = np.flatnonzero(moves.score >= moves.score.max() - slack(view))
    pick = tied[0]
    if len(tied) > 1:
        executors, workers = moves.executors[tied], moves.workers[tied]
        load = rounded(view.fit.frac[workers]) * ranked
        pause = view.snapshot.weights_of(executors) * ranked
        pick = tied[np.lexsort((workers, executors, pause, load))[0]]
    executor, target = int(moves.executors[pick]), int(moves.workers[pick])
    return Choice(executor, target, float(moves.asc_tps[pick]), why, warnings)


def slack(view: View) -> float:
    return TIE * max(view.total_tps, 1.0)


def no_low_worker(view: View, warnings: tuple[str, ...]) -> Decision:
    missing = view.reserve.what_is_missing(view.fit)
    reason = f"resources are missing: {missing}, and no worker can take any of it"
    return Decision(Outcome.NO_LOW_WORKER, reason, (), warnings)


def by_load(view: View, workers: Ints) -> list[int]:
    """Order workers by falling load, ties by id."""
    falling = np.argsort(-rounded(view.fit.frac[workers]), kind="stable")
    return [int(worker) for worker in workers[falling]]
