"""Keeps a proposal as long as it is as good: somebody may be about to approve it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from controller.core.capacity import Spare
from controller.core.cluster import place_after
from controller.core.decision import Decision
from controller.core.distance import Distance
from controller.core.fit import NOISE_FRAC, SURE
from controller.core.policy import Case
from controller.core.reserve import Reserve
from controller.core.veto import row_of
from controller.policies.gather.goal import Target

# The executor, source and target of each move.
Proposed = tuple[tuple[str, str, str], ...]
# A decision, and the target that it leads to.
Found = tuple[Decision, Target | None]


def proposed(decision: Decision) -> Proposed:
    return tuple((move.executor, move.source, move.target) for move in decision.moves)


def steadied(
    found: Found,
    before: Proposed,
    case: Case,
    again: Callable[[Case], Found],
    is_held: Callable[[Decision], bool],
) -> Decision:
    """Keep the moves of the last decision, if they may still be made and are as good.

    `again` decides once more: with only these allowed, the rules of the policy show their worth
    now. All steps of one way are as good. But fewer moves are not, nor is an exchange, which may
    have to wait. Nor is what `is_held` does not begin yet, where the others would begin.
    """
    decision, goal = found
    if not before or not decision.moves or proposed(decision) == before:
        return decision
    alone = _with_only(before, case)
    if alone is None:
        return decision
    kept, way = again(alone)
    if proposed(kept) != before or way != goal or len(before) < len(decision.moves):
        return decision
    may_wait = kept.is_exchange and not decision.is_exchange
    if may_wait or (is_held(kept) and not is_held(decision)):
        return decision
    if goal is None and not _is_as_good(kept, decision, case):
        return decision
    return replace(kept, warnings=decision.warnings)


def _with_only(moves: Proposed, case: Case) -> Case | None:
    """Let no other executor move, and to no other worker; None where these may not all move."""
    cluster, snapshot = case.cluster, case.snapshot
    rows, workers = row_of(snapshot.executors), row_of(cluster.workers)
    spare = cluster.spare if isinstance(cluster.spare, Spare) else None
    is_moving = np.zeros(len(rows), dtype=np.bool_)
    targets = {target for _, _, target in moves}
    for executor, source, _ in moves:
        e = rows.get(executor)
        if e is None or snapshot.place[e] != workers.get(source) or not snapshot.is_movable[e]:
            return None
        is_moving[e] = True
    closed = tuple(
        why or (None if name in targets else "only what was proposed is looked at")
        for name, why in zip(cluster.workers, cluster.closed, strict=True)
    )
    spare = spare if spare is not None and spare.worker in targets else None
    cluster = replace(cluster, closed=closed, spare=spare)
    limits = replace(case.limits, explain=False)
    return replace(case, cluster=cluster, snapshot=snapshot.of_those(is_moving), limits=limits)


def _is_as_good(kept: Decision, other: Decision, case: Case) -> bool:
    """Return whether other moves bring no more than noise, and of traffic than the threshold.

    What counts is what is above the limit of the workers that either leaves, then what crosses.
    What leaves nothing that is too full is never as good as what does. The noise of its executors
    is not that of what is full.
    """
    if kept.for_room != other.for_room:
        return False
    cluster, snapshot, limits = case.cluster, case.snapshot, case.limits
    if isinstance(cluster.spare, Spare):
        cluster = cluster.with_opened(cluster.spare)
    rows, workers = row_of(snapshot.executors), row_of(cluster.workers)
    place, place_by_other = (
        place_after(snapshot.place, [(rows[m.executor], workers[m.target]) for m in decision.moves])
        for decision in (kept, other)
    )
    reserve, traffic = Reserve.of(cluster, snapshot, limits), snapshot.traffic
    fit, too_full = reserve.fit, reserve.too_full(reserve.fit)
    by_kept, by_other = ({workers[move.source] for move in one.moves} for one in (kept, other))
    if too_full & by_other and not too_full & by_kept:
        return False
    left = [*by_kept, *by_other]
    for space in dict.fromkeys(space for space, _ in reserve.full(fit)):
        most, most_by_other = (space.known_at(p)[left].max() for p in (place, place_by_other))
        if most - max(most_by_other, fit.high_share()) > NOISE_FRAC:
            return False
    is_left = np.isin(cluster.unit_of, cluster.unit_of[left])
    limit = np.where(is_left, fit.roomy if other.for_room else fit.limit, np.inf)
    if fit.surely_freed(limit, place, place_by_other):
        return False
    distance = Distance.of(cluster, limits)
    apart, apart_by_other = (
        distance.apart(p[traffic.source], p[traffic.target]) for p in (place, place_by_other)
    )
    farther = apart - apart_by_other
    doubt = 0.0 if traffic.var is None else SURE * np.sqrt((traffic.var * farther**2).sum())
    threshold_tps = limits.threshold_tps(traffic.total_tps, len(rows))
    return float((traffic.tps * farther).sum()) <= threshold_tps + float(doubt)
