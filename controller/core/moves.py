"""Lists the moves a decision may choose from, and what each of them gains."""

import numpy as np

from controller.core.classify import TOLERANCE_CORES
from controller.core.cluster import Floats, Ints
from controller.core.view.neighbours import firsts, run_sums, sums
from controller.core.view.view import FILL_FRAC, Moves, View, joined, product, rounded

__all__ = [
    "FILL_FRAC",
    "Moves",
    "View",
    "best_gathering",
    "gathering",
    "opening_pairs",
    "product",
    "relieving",
    "rounded",
]

# Of the executors that relieve a hot worker (nearly) as much as the best, traffic decides.
RELIEF_SLACK = 0.999


def relieving(view: View, hot: int) -> Moves:
    """List the moves off a hot worker that fit and remove most of its excess.

    Parameters
    ----------
    view : View
        The world.
    hot : int
        A worker above the upper threshold.

    Returns
    -------
    Moves
        None if nobody can relieve it.
    """
    everywhere = np.arange(len(view.cluster.workers))
    executors, workers = product(view.movable_on(hot), everywhere)
    keep = view.may(executors, workers) & view.fits(executors, workers, fill=1.0)
    executors, workers = executors[keep], workers[keep]
    relief = np.minimum(view.snapshot.cpu_cores[executors], -view.classes.room_cores[hot])
    best = relief.max(initial=0.0)
    most = (relief > TOLERANCE_CORES) & (relief >= RELIEF_SLACK * best)
    return view.score(executors[most], workers[most])


def gathering(view: View, executors: Ints) -> Moves:
    """List the moves that fit and bring an executor to somebody it talks to.

    Parameters
    ----------
    view : View
        The world.
    executors : Ints
        Movable executors to look at, rising.

    Returns
    -------
    Moves
        To every worker it talks to, and to the roomiest worker of every other node it talks to: of
        all moves that gain, the best is among these.
    """
    cluster, held = view.cluster, view.ties
    nodes, workers = len(cluster.nodes), len(cluster.workers)
    which, peer, tps = view.neighbours.rows(executors)
    at = view.snapshot.place.take(peer)
    # With the node in front, the runs of workers follow each other in the runs of nodes.
    codes = (which * nodes + cluster.node_of.take(at)) * workers + at
    codes, worker_tps = sums(codes, tps)
    of_node = codes // workers
    first = firsts(of_node)
    run = np.zeros(len(codes), dtype=np.int64)
    run[first[1:]] = 1
    run = run.cumsum()
    node_tps = run_sums(worker_tps, first)
    e, w = executors.take(of_node // nodes), codes % workers
    to_node, n = executors.take(of_node.take(first) // nodes), of_node.take(first) % nodes
    roomiest = view.roomiest.take(n)
    # A roomiest worker that the executor talks to is among the others.
    new = (roomiest >= 0) & (view.node.take(to_node) != n)
    new[run[w == roomiest.take(run)]] = False
    new = new.nonzero()[0]
    run, e = np.concatenate([run, new]), np.concatenate([e, to_node.take(new)])
    w = np.concatenate([w, roomiest.take(new)])
    worker_tps = np.concatenate([worker_tps, np.zeros(len(new))])
    keep = (view.may(e, w) & view.fits(e, w)).nonzero()[0]
    e, w, run, worker_tps = e.take(keep), w.take(keep), run.take(keep), worker_tps.take(keep)
    asc = node_tps.take(run) - held.node_tps.take(e)
    return view.weighed(e, w, asc, worker_tps - held.worker_tps.take(e))


def best_gathering(view: View, above: float, slack: float) -> tuple[Moves, Moves]:
    """List the best of `gathering` without looking at all of them.

    Parameters
    ----------
    view : View
        The world.
    above : float
        What the best must score more than.
    slack : float
        How much below the best still counts as the best.

    Returns
    -------
    best : Moves
        All that tie for the best; none if nothing scores more than `above`.
    seen : Moves
        All of those that were looked at.

    Notes
    -----
    Looks at executors by falling bound until no bound reaches the best found. A bound comes from
    the traffic alone, so many executors that want to a full worker cost one look each; what that
    look finds is kept as their bound as long as it holds.
    """
    best, found, share = -np.inf, [], 0.1
    ahead = view.bound.copy()
    known = np.where(ahead < view.most, ahead, -np.inf).max(initial=-np.inf)
    while (top := ahead.max(initial=-np.inf)) > above and top >= best - slack:
        # Wider with every look, for the bounds may be far above what fits; but not below what an
        # earlier decision found, which is still there unless its worker has filled up.
        least = max(best, top - share * abs(top), known if known <= top else -np.inf)
        executors = (ahead >= least - slack).nonzero()[0]
        share = min(4 * share, 1.0)
        moves = gathering(view, executors)
        ahead[executors] = -np.inf
        view.bound[executors] = -np.inf
        np.maximum.at(view.bound, moves.executors, moves.score)
        best = max(best, float(moves.score.max(initial=-np.inf)))
        found.append(moves)
    seen = found[0] if len(found) == 1 else joined(found)
    return seen.only((seen.score >= best - slack) & (best > above)), seen


def opening_pairs(view: View, threshold_tps: float, seen: Moves) -> Moves:
    """List first moves that gain little or nothing, but open the way for a second that does.

    Parameters
    ----------
    view : View
        The world, in which no move by itself gains more than the threshold.
    threshold_tps : float
        What one move has to gain; two have to gain twice as much.
    seen : Moves
        What `best_gathering` has looked at in this view.

    Returns
    -------
    Moves
        First moves; their score is the gain of both.

    Notes
    -----
    Two halves that each keep their own spout, split and counts are stable under single moves
    though they exchange half of all tuples. A pair is two executors that talk to each other and
    go to the same worker, the best one of either. Once the first is there, the second is the best
    single move and gains more than was lost, so this brings no placement back either.
    """
    traffic, snapshot = view.snapshot.traffic, view.snapshot
    source, target = traffic.source, traffic.target
    talks = view.movable.take(source) & view.movable.take(target) & (source != target)
    # Both gain what each would alone and what is counted wrongly between the two, which is at most
    # twice what they exchange; and that is more than what the leader alone gains.
    least = (2 - 1e-6) * threshold_tps
    weight = view.limits.weight_node + view.limits.weight_worker
    lacking = least - 2 * weight * traffic.tps
    sends, receives = (
        (talks & (view.bound.take(end) > lacking)).nonzero()[0] for end in (source, target)
    )
    one = np.concatenate([source.take(sends), target.take(receives)])
    other = np.concatenate([target.take(sends), source.take(receives)])
    tps = np.concatenate([traffic.tps.take(sends), traffic.tps.take(receives)])
    worth = view.bound.take(one) > least - _counted_wrongly(view, one, other) * tps
    one, other, tps = one[worth], other[worth], tps[worth]
    unseen = np.zeros(len(view.node), dtype=np.bool_)
    unseen[one] = True
    unseen[seen.executors] = False
    moves = joined([seen, gathering(view, unseen.nonzero()[0])])
    best, score = _best_of_each_executor(view, moves)
    to = best.take(one)
    worth = score.take(one) > least - _counted_wrongly(view, one, other, to) * tps
    one, other, tps, to = one[worth], other[worth], tps[worth], to[worth]
    need = snapshot.cpu_cores[one] + snapshot.cpu_cores[other]
    fits = need <= view.room[to]
    fits &= view.may(one, to) & view.may(other, to)
    if view.limits.keep_workers:
        # The second of the two would have to stay, and the first would go back to it, for ever.
        place = snapshot.place
        held = np.bincount(place, minlength=len(view.cluster.workers))
        fits &= (place[one] != place[other]) | (held[place[one]] > 2)
    one, other, to, tps = one[fits], other[fits], to[fits], tps[fits]
    first, second = view.score(one, to), view.score(other, to)
    both = first.score + second.score + _counted_wrongly(view, one, other, to) * tps
    swap = second.score > first.score
    lead = Moves(
        np.where(swap, other, one), to, np.where(swap, second.asc_tps, first.asc_tps), both
    )
    single = np.maximum(np.maximum(first.score, second.score), 0.0)
    return lead.only(both > 2 * threshold_tps + single)


def _counted_wrongly(view: View, one: Ints, other: Ints, to: Ints | None = None) -> Floats:
    """Weigh what two single gains miss of the traffic between the two that move together.

    The most that it can be where `to` is not known yet.
    """
    place = view.snapshot.place
    n1, n2 = view.node.take(one), view.node.take(other)
    node = 1.0 + (n1 == n2)
    if to is not None:
        n = view.cluster.node_of.take(to)
        node = node - (n1 == n) - (n2 == n)
    worker = 1.0 + (place.take(one) == place.take(other))
    return np.asarray(view.limits.weight_node * node + view.limits.weight_worker * worker)


def _best_of_each_executor(view: View, moves: Moves) -> tuple[Ints, Floats]:
    """Worker and score by executor; -1 and nothing to gain where there is no candidate."""
    best = np.full(len(view.node), -1, dtype=np.int64)
    score = np.full(len(view.node), -np.inf)
    rising = np.lexsort((-moves.workers, rounded(moves.score)))
    best[moves.executors[rising]] = moves.workers[rising]
    score[moves.executors[rising]] = moves.score[rising]
    return best, score
