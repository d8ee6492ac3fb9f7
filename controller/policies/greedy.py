"""The policy `gather` without a target: the best single move, and it never overfills a worker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from controller.core.capacity import Spare
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, place_after
from controller.core.decision import Decision, Outcome
from controller.core.fit import NOISE_FRAC
from controller.core.limits import TIE, Limits
from controller.core.loops import moves as loops
from controller.core.shuffles import fed_at_home
from controller.core.skew import skew_of
from controller.core.spaces import SpaceUse
from controller.core.view import FILL_FRAC, Moves, View, rounded
from controller.policies.single_move import (
    Choice,
    best_of,
    by_load,
    disjoint,
    if_above_threshold,
    no_low_worker,
    slack,
)

# Of the executors that relieve a worker (nearly) as much as the best, traffic decides.
RELIEF_SLACK = 0.999
# An executor that its input follows goes first where it relieves by this share of what any does.
FOLLOWED_FRAC = 0.5
# A move that relieves may fill a link. This number is looked at, the best first, for one that does
# not.
LOOKED_AT = 8
_NONE = Moves(*np.zeros((2, 0), dtype=np.int64), *np.zeros((2, 0)))


def greedy(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Relieve full workers, else bring traffic together, never filling a worker above `high`.

    Differs from 004. A target must have room for the executor (the fit test; for traffic a little
    less than all of it, `FILL_FRAC`). The executors that remove most of the excess go first, and a
    hot worker that no move relieves is skipped. The lower limit is not used. A move to relieve
    lowers the sum of the excess. A full heap is relieved as well, and raises no such sum: what has
    least room goes first. Where nothing is hot, a move for room leaves more room on the node
    that leaves least, and no other may leave less. A move for traffic lowers the weighted cost and
    raises no excess. So on frozen traffic no placement comes back. Where no single move gains, two
    that belong together may (`opening_pairs`). Only executors that talk to each other can gain, so
    it costs O(pairs with traffic), not O(E·W).
    """
    return disjoint(choose_greedy, View.of(cluster, snapshot, limits))


def greedy_opening(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide as `greedy` does, and open the spare slot where no worker has room."""
    return or_open(greedy(cluster, snapshot, limits), cluster, snapshot, limits)


def or_open(short: Decision, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Open the spare slot for an executor of a hot worker where a decision found no room for it.

    That lowers the excess, as any relief does, so on frozen traffic no placement comes back.
    """
    spare = cluster.spare
    if spare is None or short.outcome is not Outcome.NO_LOW_WORKER:
        return short
    if isinstance(spare, str):
        return replace(short, reason=f"{short.reason}; no slot is opened: {spare}")
    view = View.of(cluster.with_opened(spare), snapshot, replace(limits, max_moves=1))
    found = disjoint(choose_greedy, view)
    full = {view.cluster.workers[w] for w in view.reserve.too_full(view.fit)}
    if found.moves and found.moves[0].source in full:
        return replace(found, reason=f"no worker has room, so a slot is opened: {found.reason}")
    room = view.fit.shown_room(view.cluster.workers.index(spare.worker))
    why = f"no slot is opened: {spare.worker}, with {room}, would relieve none"
    return replace(short, reason=f"{short.reason}; {why}")


def choose_greedy(view: View) -> Choice | Decision:
    """Choose one move as `greedy` does, or return why there is none.

    A view that was `moved` saves most of the work.
    """
    warnings: dict[str, None] = {}  # of workers of one full node, all read the same
    full: list[tuple[SpaceUse, int]] = []  # that cannot be relieved, the fullest first
    for worker, space in _fullest_first(view):
        so_far = (*warnings, *_cannot_empty(view, full))
        if space is not None:
            relief = _emptying(view, space, worker, so_far)
            full += [] if relief else [(space, worker)]
        else:
            relief = _relief(view, worker, so_far)
            warnings |= {} if relief else {_cannot_relieve(view, worker): None}
        if relief is not None:
            return relief
    stuck = _cannot_empty(view, full)
    if isinstance(view.cluster.spare, Spare) and (
        (warnings and _a_slot_has_cpu(view)) or (full and _a_slot_empties(view))
    ):
        return no_low_worker(view, (*warnings, *stuck))  # a slot is opened before traffic counts
    if not warnings and (roomier := _for_room(view)) is not None:
        return roomier
    behind = view.reserve.behind_links(view.fit).tolist()
    stay = dict.fromkeys(_behind_a_link(view, worker) for worker in behind)
    found = _gathering(view, (*(stay | warnings), *stuck))
    if warnings and isinstance(found, Decision):
        return no_low_worker(view, (*warnings, *stuck))
    return found


def _fullest_first(view: View) -> list[tuple[int, SpaceUse | None]]:
    """List the workers to relieve, each with a space that is full, or None for its CPU.

    What has least room comes first.
    """
    fit, full = view.fit, view.reserve.full(view.fit)
    hot = view.reserve.hot(fit)
    found: list[tuple[int, SpaceUse | None]] = [(w, None) for w in by_load(view, hot)]
    if not full:
        return found
    found += [(worker, one) for one, worker in full]
    shares = [float(fit.frac[w] if one is None else one.share_at(fit.place)[w]) for w, one in found]
    return [found[n] for n in np.argsort(-rounded(np.array(shares)), kind="stable")]


def _relief(view: View, hottest: int, warnings: tuple[str, ...]) -> Choice | None:
    """Choose the best move off a hot worker that fills no link too much."""
    why = view.fit.how_high(hottest)
    return _first(view, lambda left: relieving(left, hottest), why, warnings, View.overfills_a_link)


def _emptying(view: View, space: SpaceUse, worker: int, warnings: tuple[str, ...]) -> Choice | None:
    """Choose the best move off a worker whose space is full that fills no link too much."""
    why = _how_full(view, space, worker)
    made = partial(emptying, space=space, worker=worker)
    found = _first(view, made, why, warnings, View.overfills_a_link)
    if found is None:
        return None
    share = space.held[found.executor] / space.level.most[worker]
    return replace(found, why=f"{why}, some {share:.2g} by what leaves", for_room=True)


def _a_slot_has_cpu(view: View) -> bool:
    """Check whether the spare slot brings more CPU: its node has no other worker in use."""
    cluster = view.cluster
    assert isinstance(cluster.spare, Spare)
    if cluster.node_cores is None:
        return True
    used = np.unique(cluster.node_of[view.snapshot.place]).tolist()
    return cluster.spare.node not in {cluster.nodes[n] for n in used}


def _a_slot_empties(view: View) -> bool:
    """Check whether something leaves a space that is full once the spare slot is opened."""
    assert isinstance(view.cluster.spare, Spare)
    opened = View.of(view.cluster.with_opened(view.cluster.spare), view.snapshot, view.limits)
    return empties(opened)


def empties(view: View) -> bool:
    """Check whether something may leave a space that is full."""
    full = view.reserve.full(view.fit)
    return any(emptying(view, one, worker).executors.size for one, worker in full)


def _for_room(view: View) -> Choice | None:
    """Choose the best move off the node that leaves too little room, if it leaves more by some."""
    fit = view.fit
    for short in view.reserve.short(fit).tolist():
        least, below = fit.excess_of(short, fit.roomier), fit.at_most(fit.roomier)
        made = partial(relieving, worker=short, above=fit.roomy, below=below, least=least)
        if (found := _first(view, made, fit.how_short(short), (), View.narrows)) is not None:
            return replace(found, for_room=True)
    return None


def _first(
    view: View,
    made: Callable[[View], Moves],
    why: str,
    warnings: tuple[str, ...],
    is_barred: Callable[[View, int, int], bool],
) -> Choice | None:
    """Choose the best move that is not barred, with one executor fewer each time."""
    for _ in range(LOOKED_AT):
        moves = made(view)
        if not moves.executors.size:
            return None
        found = best_of(view, moves, why, warnings, ranked=True)
        if not is_barred(view, found.executor, found.worker):
            return found
        view = view.holding(found.executor)
    return None


def _gathering(view: View, warnings: tuple[str, ...]) -> Choice | Decision:
    threshold, tie = view.threshold_tps, TIE * view.total_tps
    best = best_gathering(view, max(threshold, tie), slack(view))
    if best.executors.size:
        return if_above_threshold(view, best, warnings, ranked=True)
    if (opening := _opening(view, threshold + tie, warnings)) is not None:
        return opening
    if view.limits.explain:
        if (barred := _all_barred(view, max(threshold, tie), warnings)) is not None:
            return barred
        best = best_gathering(view, -np.inf, slack(view))
    return if_above_threshold(view, best, warnings, ranked=True)


def _opening(view: View, threshold_tps: float, warnings: tuple[str, ...]) -> Choice | None:
    """Choose the first move of the best pair whose second may follow."""
    pairs, seconds = opening_pairs(view, threshold_tps)
    for _ in range(LOOKED_AT):
        if not pairs.executors.size:
            return None
        both = f"{view.limits.gain(pairs.score.max())} by both"
        why = f"opens the way for a second move, {both}"
        found = best_of(view, pairs, why, warnings, ranked=True)
        same = (pairs.executors == found.executor) & (pairs.workers == found.worker)
        if _may_follow(view, found, seconds[same]):
            return found
        pairs, seconds = pairs.only(~same), seconds[~same]
    return None


def _may_follow(view: View, first: Choice, seconds: Ints) -> bool:
    """Check that one of some executors may follow a first move, whatever that takes along.

    What an executor keeps in its worker is not known. It may be an even share, or nothing: then
    each of those that it leaves keeps more.
    """
    cluster, worker = view.cluster, first.worker
    moved = view.moved(first.executor, worker)
    # Not by `predicted`: a view that was moved has CPU that was measured in another placement.
    demand = None if cluster.node_cores is None else moved.fit.demand
    remade = View.of(cluster, moved.snapshot.placed(moved.snapshot.place, demand), view.limits)
    worlds = moved.world, remade.world
    return any(
        all(loops.may_move(w, e, worker) and not loops.is_barred(w, e, worker) for w in worlds)
        for e in seconds.tolist()
    )


def _all_barred(view: View, above: float, warnings: tuple[str, ...]) -> Decision | None:
    """Explain that moves score more than `above`, but are barred; None where there is none."""
    if not loops.has_barred(view.world) and view.fit.memory is None:
        return None
    bound = np.maximum(*view.bounds[1:])
    free = replace(view, fit=replace(view.fit, memory=None), is_barring=False).world
    moved, to, _, scores = loops.best(free, bound, int(bound.argmax()), above, slack(view))
    if not scores.size:
        return None
    first = int(scores.argmax())
    executor, worker = int(moved[first]), int(to[first])
    named = f"{view.snapshot.executors[executor]} to {view.cluster.workers[worker]}"
    gain = view.limits.gain(scores[first])
    after = place_after(view.snapshot.place, [(executor, worker)])
    filled = view.reserve.why_refused(after) or "something too much"
    reason = (
        "each move that gains more than the threshold fills something too much: the best, "
        f"{named} with {gain}, fills {filled}"
    )
    return Decision(Outcome.NOTHING_TO_GAIN, reason, (), warnings, fills=filled)


def _behind_a_link(view: View, worker: int) -> str:
    binding = view.reserve.links.binding
    return f"{view.fit.how_high(worker)}, and not relieved: the link of {binding} is full first"


def _how_full(view: View, space: SpaceUse, worker: int) -> str:
    share, high = space.share_at(view.fit.place)[worker], f"{view.fit.high_share():g}"
    return f"{view.cluster.workers[worker]} fills {share:.3g} of {space.space.shown}, above {high}"


def _cannot_empty(view: View, full: Sequence[tuple[SpaceUse, int]]) -> tuple[str, ...]:
    """Name the first of the spaces that cannot be relieved, and how many more there are."""
    if not full:
        return ()
    why = f"{_how_full(view, *full[0])}, and cannot be relieved"
    more = f"; nor can {len(full) - 1} more that are full" if len(full) > 1 else ""
    return (f"{why}: nothing movable on it fits on another worker{more}",)


def _cannot_relieve(view: View, hottest: int) -> str:
    snapshot = view.snapshot
    on_it = np.flatnonzero(snapshot.place == hottest)
    biggest = int(on_it[np.argmax(view.fit.demand[on_it])])
    text = f"{view.fit.how_high(hottest)} and cannot be relieved"
    if (too_large := view.fit.too_large(biggest)) is None:
        return f"{text}: no movable executor on it fits on another worker"
    name = f"{snapshot.executors[biggest]} ({snapshot.component_of[biggest]})"
    skew = skew_of(snapshot, biggest)
    return f"{text}: {name} {too_large}" + (f"; {skew}" if skew else "")


def relieving(
    view: View,
    worker: int,
    above: Floats | None = None,
    below: Floats | None = None,
    least: float = 0.0,
) -> Moves:
    """List the moves off a worker that fit and remove most of what is above a limit; perhaps none.

    The input of an executor that is `fed_at_home` stays behind, so others go first.

    Each removes `least`, in cores. `above` is the limit, (W,), and `below` up to where workers may
    be filled. By default that is until they are high.
    """
    fit, ends = view.fit, np.arange(len(view.cluster.workers))
    if below is not None:
        ends = np.flatnonzero(fit.largest(below) > 0)
    moves = view.score(view.movable_on(worker), ends)
    moves = view.below(fit.may_fill if below is None else below, moves)
    limit = fit.limit if above is None else above
    relief = fit.relief(moves.executors, moves.workers, worker, limit)
    followed = np.where(fed_at_home(view.snapshot)[moves.executors], 0.0, relief)
    enough = max(least, FOLLOWED_FRAC * relief.max(initial=0.0))
    if followed.max(initial=0.0) >= enough:
        relief = followed
    most = RELIEF_SLACK * relief.max(initial=0.0)
    return moves.only((relief > 0) & (relief >= max(least, most)))


def emptying(view: View, space: SpaceUse, worker: int) -> Moves:
    """List the moves off a worker that free most of a space that is full; perhaps none.

    Nothing goes that keeps less than what is there in the mean: what it keeps is an estimate.
    The space comes to what a move for traffic may fill, and so may that of another worker. Where
    workers leave as much room as is wanted, those only. No CPU gets too full, and nothing goes
    where it is not known how full the space is.
    """
    fit, place, most = view.fit, view.fit.place, view.fit.high_share(FILL_FRAC)
    moves = view.score(view.movable_on(worker), np.arange(len(view.cluster.workers)))
    moves = view.below(fit.may_fill, moves)
    stays = fit.more(moves.executors, moves.workers)[1] <= fit.left(fit.limit)[worker]
    held, here = space.held[moves.executors], space.held[place == worker]
    fits = held <= space.left_below(place, most)[moves.workers]
    moves = moves.only(stays & fits & (held >= RELIEF_SLACK * here.mean()))
    excess = -space.left_below(place, most)[worker]
    freed = np.minimum(space.held[moves.executors], excess)
    found = moves.only(freed > max(RELIEF_SLACK * freed.max(initial=0.0), NOISE_FRAC * excess))
    left = space.left_below(place, space.wanted(fit))[found.workers]
    roomy = view.below(fit.at_most(fit.roomy), found.only(space.held[found.executors] <= left))
    return roomy if roomy.executors.size else found


def best_gathering(view: View, above: float, slack: float) -> Moves:
    """List the best moves that fit and bring an executor to one it talks to.

    The best must score more than `above`; what is at most `slack` below it ties with it. `slack` is
    not less than what scores are rounded to. There are none if nothing scores more than `above`.
    """
    bound = view.bounds[0]
    first = int(bound.argmax()) if len(bound) else -1
    if first < 0 or not bound[first] > above:
        return _NONE
    return Moves(*loops.best(view.world, bound, first, above, slack))


def opening_pairs(view: View, threshold_tps: float) -> tuple[Moves, Ints]:
    """List first moves that gain little or nothing, but open the way for a second that does.

    Also the executor that goes second, of each. Whether something bars it is not looked at.

    Asked where no move alone gains more than the threshold; two have to gain twice as much. The
    score of a first move is the gain of both.

    Two halves that each keep their own spout, split and counts are stable under single moves though
    they exchange half of all tuples. A pair is two executors that talk to each other and go to the
    same worker, the best one of either. Once the first is there, the second is the best single move
    and gains more than was lost, so this brings no placement back either.
    """
    known = view.movable, *view.bounds, view.loudest
    found = loops.open_pairs(view.world, *known, 2 * threshold_tps)
    rows = np.array(found, dtype=np.float64).reshape(-1, 5)
    ends = rows[:, [0, 1, 4]].astype(np.int64)
    return Moves(ends[:, 0], ends[:, 1], rows[:, 2], rows[:, 3]), ends[:, 2]
