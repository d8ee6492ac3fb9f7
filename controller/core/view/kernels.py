"""The loops of a decision: over who talks to whom, executor by executor."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled

# Executors, workers, what each move brings inside nodes, and its score; as in `Moves`.
Table: TypeAlias = tuple[Ints, Ints, Floats, Floats]
# An index without a sign is not looked at for being negative, which counts from the end.
Rows: TypeAlias = NDArray[np.uint32]
Marks: TypeAlias = NDArray[np.bool_]
# In place of a worker.
NOT_LOOKED_AT = -2
# Scores that differ by less come out of sums in different orders.
ROUNDING = 1e-9


class KernelWorld(NamedTuple):
    """What the loops look at; contiguous arrays.

    Attributes
    ----------
    begin, peer, row : Ints
        Who talks to whom, as in `Pairs`.
    tps : Floats, shape (P,)
        How much, by row.
    place : Ints, shape (E,)
        Worker of each executor.
    cores : Floats, shape (E,)
        CPU of each executor.
    movable : array of bool, shape (E,)
        Who may move.
    node_of : Ints, shape (W,)
        Node of each worker.
    room : Floats, shape (W,)
        What a move for traffic may bring to each worker.
    roomiest : Ints, shape (N,)
        As in `View`.
    taken : Ints
        As in `View`.
    weight_node, weight_worker : float
        As in `Limits`.
    """

    begin: Ints
    peer: Rows
    row: Rows
    tps: Floats
    place: Ints
    cores: Floats
    movable: Marks
    node_of: Ints
    room: Floats
    roomiest: Ints
    taken: Ints
    weight_node: float
    weight_worker: float


class Known(NamedTuple):
    """What is known already of the executors.

    Attributes
    ----------
    to : Ints, shape (E,)
        Worker of the best move of those of `gather`, -1 without any; `NOT_LOOKED_AT` if that is
        not known.
    score : Floats, shape (E,)
        Its score.
    loudest_tps : Floats, shape (E,)
        No pair of the executor says more; may be infinite.
    """

    to: Ints
    score: Floats
    loudest_tps: Floats


class _Desk(NamedTuple):
    """Where the traffic of one executor is laid out, by worker and by node, all zero between two.

    The stamps tell which executor a worker or a node was last noted for, so one desk is for each
    executor once.
    """

    with_worker: Floats
    with_node: Floats
    workers: Ints
    worker_stamp: Ints
    nodes: Ints
    node_stamp: Ints


@compiled
def index(source: Ints, target: Ints, count: int) -> tuple[Ints, Rows, Rows]:
    """Index pairs by executor.

    Parameters
    ----------
    source, target : Ints, shape (P,)
        Executors, from 0 to `count` - 1.
    count : int
        How many there are.

    Returns
    -------
    begin, peer, row : Ints
        As in `Pairs`.
    """
    begin = np.zeros(count + 1, dtype=np.int64)
    for k in range(len(source)):
        if source[k] != target[k]:
            begin[source[k] + 1] += 1
            begin[target[k] + 1] += 1
    for e in range(count):
        begin[e + 1] += begin[e]
    free = begin[:-1].copy()
    peer = np.empty(begin[count], dtype=np.uint32)
    row = np.empty(begin[count], dtype=np.uint32)
    for one, other in ((source, target), (target, source)):
        for k in range(len(one)):
            if one[k] != other[k]:
                peer[free[one[k]]] = other[k]
                row[free[one[k]]] = k
                free[one[k]] += 1
    return begin, peer, row


@compiled
def _is_taken(world: KernelWorld, one: int, other: int) -> bool:
    code = min(one, other) * len(world.roomiest) + max(one, other)
    is_taken = False
    for i in range(len(world.taken)):
        is_taken |= world.taken[i] == code
    return is_taken


@compiled
def roomiest(room_cores: Floats, is_open: Marks, node_of: Ints, nodes: int) -> Ints:
    """Find the open worker with most room of each node, of equal ones the first.

    Parameters
    ----------
    room_cores : Floats, shape (W,)
        Room of each worker.
    is_open : array of bool, shape (W,)
        Which are.
    node_of : Ints, shape (W,)
        Where they are.
    nodes : int
        How many nodes there are.

    Returns
    -------
    Ints, shape (N,)
        Workers; -1 where none is open.
    """
    found, most = np.full(nodes, -1, dtype=np.int64), np.full(nodes, -np.inf)
    for w in range(len(node_of)):
        room = np.rint(room_cores[w] / ROUNDING)
        if is_open[w] and room > most[node_of[w]]:
            found[node_of[w]], most[node_of[w]] = w, room
    return found


@compiled
def highest(of: Ints, score: Floats, count: int) -> Floats:
    """Find the highest score of each.

    Parameters
    ----------
    of : Ints, shape (K,)
        Whose score, from 0 to `count` - 1.
    score : Floats, shape (K,)
        Any.
    count : int
        How many there are.

    Returns
    -------
    Floats, shape (count,)
        Minus infinity where there is none.
    """
    found = np.full(count, -np.inf)
    for k in range(len(of)):
        found[of[k]] = max(found[of[k]], score[k])
    return found


@compiled
def _desk(world: KernelWorld) -> _Desk:
    workers, nodes = len(world.node_of), len(world.roomiest)
    return _Desk(
        np.zeros(workers),
        np.zeros(nodes),
        np.empty(workers + 1, dtype=np.int64),
        np.full(workers, -1, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.full(nodes, -1, dtype=np.int64),
    )


@compiled
def _lay_out(world: KernelWorld, desk: _Desk, e: int) -> tuple[int, int, int]:
    """Lay out whom an executor talks to, and note where it may be worth to go.

    Returns how many workers are noted, how many of these it talks to, and how many nodes.
    """
    noted = nodes = 0
    for k in range(world.begin[e], world.begin[e + 1]):
        w, said = np.uint64(world.place[world.peer[k]]), world.tps[world.row[k]]
        n = np.uint64(world.node_of[w])
        # Without a branch, which could not be predicted.
        desk.workers[noted] = w
        noted += desk.worker_stamp[w] != e
        desk.worker_stamp[w] = e
        desk.nodes[nodes] = n
        nodes += desk.node_stamp[n] != e
        desk.node_stamp[n] = e
        desk.with_worker[w] += said
        desk.with_node[n] += said
    talked_to = noted
    # A worker where it talks to nobody is worth a look if it is the roomiest of its node.
    for i in range(nodes):
        w = world.roomiest[desk.nodes[i]]
        if w >= 0 and desk.nodes[i] != world.node_of[world.place[e]]:
            desk.workers[noted] = w
            noted += desk.worker_stamp[w] != e
    return noted, talked_to, nodes


@compiled
def _clear(desk: _Desk, talked_to: int, nodes: int) -> None:
    for i in range(talked_to):
        desk.with_worker[desk.workers[i]] = 0.0
    for i in range(nodes):
        desk.with_node[desk.nodes[i]] = 0.0


@compiled
def may_move(world: KernelWorld, e: int, w: int) -> bool:
    """Tell whether a move is one, fits, and is not between nodes that are taken.

    Parameters
    ----------
    world : KernelWorld
        What to look at.

    Returns
    -------
    bool
        Whether it is; whether the executor is movable is not looked at.
    """
    home = world.place[e]
    if w == home or not world.cores[e] <= world.room[w]:  # what is no number fits nowhere
        return False
    return not _is_taken(world, world.node_of[home], world.node_of[w])


@compiled
def _best_of(world: KernelWorld, desk: _Desk, e: int) -> tuple[int, float]:
    """Find worker and score of an executor's best move of those of `gather`; worker -1 if none.

    Of equal ones that to the first worker.
    """
    noted, talked_to, nodes = _lay_out(world, desk, e)
    at_home = desk.with_worker[world.place[e]]
    at_node = desk.with_node[world.node_of[world.place[e]]]
    best, best_score = -1, -np.inf
    for i in range(noted):
        w = desk.workers[i]
        asc = desk.with_node[world.node_of[w]] - at_node
        near = desk.with_worker[w] - at_home
        total = world.weight_node * asc + world.weight_worker * near
        if total > best_score - 2 * ROUNDING and may_move(world, e, w):
            new, old = np.rint(total / ROUNDING), np.rint(best_score / ROUNDING)
            if new > old or (new == old and w < best):
                best, best_score = w, total
    _clear(desk, talked_to, nodes)
    return best, best_score


@compiled
def score(world: KernelWorld, executors: Ints, workers: Ints) -> Table:
    """Score the moves of some executors to some workers.

    Parameters
    ----------
    world : KernelWorld
        What to look at.
    executors, workers : Ints
        All of these to all of those.

    Returns
    -------
    executors, workers, asc, score : Ints, Ints, Floats, Floats
        Executor by executor, without those that are no move or may not be.
    """
    most, count = len(executors) * len(workers), 0
    who, to = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    asc, gain = np.empty(most), np.empty(most)
    with_worker, with_node = np.zeros(len(world.node_of)), np.zeros(len(world.roomiest))
    is_any_taken = len(world.taken) > 0
    for e in executors:
        home = world.place[e]
        own = world.node_of[home]
        for k in range(world.begin[e], world.begin[e + 1]):
            w, said = world.place[world.peer[k]], world.tps[world.row[k]]
            with_worker[w] += said
            with_node[world.node_of[w]] += said
        at_home, at_node = with_worker[home], with_node[own]
        for w in workers:
            n = world.node_of[w]
            who[count], to[count], asc[count] = e, w, with_node[n] - at_node
            near = with_worker[w] - at_home
            gain[count] = world.weight_node * asc[count] + world.weight_worker * near
            # A row that does not count is written over.
            count += w != home and not (is_any_taken and _is_taken(world, own, n))
        for k in range(world.begin[e], world.begin[e + 1]):
            w = world.place[world.peer[k]]
            with_worker[w] = 0.0
            with_node[world.node_of[w]] = 0.0
    return who[:count], to[:count], asc[:count], gain[:count]


@compiled
def gather(world: KernelWorld, executors: Ints) -> Table:
    """List the moves that fit and bring an executor to somebody it talks to.

    Parameters
    ----------
    world : KernelWorld
        What to look at.

    Returns
    -------
    executors, workers, asc, score : Ints, Ints, Floats, Floats
        Executor by executor: to every worker it talks to, and to the roomiest worker of every other
        node it talks to. Of all moves that gain, the best is among these.
    """
    desk = _desk(world)
    most = count = 0
    for e in executors:
        most += 2 * (world.begin[e + 1] - world.begin[e])
    who, to = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    asc, gain = np.empty(most), np.empty(most)
    for e in executors:
        home = world.place[e]
        own = world.node_of[home]
        noted, talked_to, nodes = _lay_out(world, desk, e)
        for i in range(noted):
            w = desk.workers[i]
            if may_move(world, e, w):
                who[count], to[count] = e, w
                asc[count] = desk.with_node[world.node_of[w]] - desk.with_node[own]
                near = desk.with_worker[w] - desk.with_worker[home]
                gain[count] = world.weight_node * asc[count] + world.weight_worker * near
                count += 1
        _clear(desk, talked_to, nodes)
    return who[:count], to[:count], asc[:count], gain[:count]


@compiled
def bounds(world: KernelWorld) -> Floats:
    """Bound what executors can gain, wherever there is room.

    Parameters
    ----------
    world : KernelWorld
        What to look at.

    Returns
    -------
    Floats, shape (E,)
        What each would gain if all that it talks to on its strongest node were on one worker;
        nothing where it may not move.
    """
    bound = np.empty(len(world.place))
    _bound(world, world.node_of[world.place], np.arange(len(bound)), bound)
    return bound


@compiled
def _bound(world: KernelWorld, node: Ints, executors: Ints, bound: Floats) -> None:
    with_node = np.zeros(len(world.roomiest))
    for e in executors:
        home, begin, end = world.place[e], world.begin[e], world.begin[e + 1]
        at_home = strongest = 0.0
        for k in range(begin, end):
            p, said = world.peer[k], world.tps[world.row[k]]
            n = np.uint64(node[p])
            so_far = with_node[n] + said
            with_node[n] = so_far
            strongest = so_far if so_far > strongest else strongest
            at_home += said if world.place[p] == home else 0.0
        at_node = with_node[node[e]]
        if len(with_node) <= end - begin:
            with_node[:] = 0.0
        else:
            for k in range(begin, end):
                with_node[np.uint64(node[world.peer[k]])] = 0.0
        total = world.weight_node * (strongest - at_node)
        total += world.weight_worker * (strongest - at_home)
        bound[e] = total + ROUNDING if world.movable[e] else -np.inf


@compiled
def carry(before: KernelWorld, after: KernelWorld, moved: int, both: Floats) -> None:
    """Bring the bounds to the placement after a move, in place.

    Parameters
    ----------
    moved : int
        The executor that moved.
    both : Floats, shape (2, E)
        As `View.bounds`.
    """
    bound, anew = both
    node, node_of = after.node_of[after.place], after.node_of
    left, to = before.place[moved], after.place[moved]
    # What fits at either node differs only for executors with more CPU than `less` and at most
    # `more`; or for all.
    less, more = np.empty(2), np.empty(2)
    for i, w in enumerate((left, to)):
        less[i] = min(before.room[w], after.room[w])
        more[i] = max(before.room[w], after.room[w])
    for i, n in enumerate((node_of[left], node_of[to])):
        if before.roomiest[n] != after.roomiest[n]:
            less[i], more[i] = -np.inf, np.inf
    for e in range(len(node)):
        if bound[e] < anew[e]:
            for i, n in enumerate((node_of[left], node_of[to])):
                if less[i] < after.cores[e] <= more[i]:
                    for k in range(after.begin[e], after.begin[e + 1]):
                        if node[after.peer[k]] == n:
                            bound[e] = anew[e]
    peers = after.peer[after.begin[moved] : after.begin[moved + 1]]
    touched = np.append(peers.astype(np.int64), moved)
    _bound(after, node, touched, anew)
    bound[touched] = anew[touched]


@compiled
def best(world: KernelWorld, bound: Floats, first: int, above: float, slack: float) -> Table:
    """List the best moves of `gather`.

    Parameters
    ----------
    world : KernelWorld
        What to look at.
    bound : Floats, shape (E,)
        No move of the executor scores more. Lowered, in place, to what is found of those that are
        looked at; nobody is whose bound does not reach the best found.
    first : int
        Whom to look at first.
    above : float
        What the best must score more than.
    slack : float
        How much below the best still counts as the best; not less than what scores are rounded to.

    Returns
    -------
    executors, workers, asc, score : Ints, Ints, Floats, Floats
        All that tie for the best, executor by executor, but for some that do not score more than
        `above` themselves; none if nothing does.
    """
    desk = _desk(world)
    _, most = _best_of(world, desk, first)
    bound[first] = most + ROUNDING
    least = max(above, most - 2 * slack)
    seen, count = np.empty(len(bound), dtype=np.int64), 0
    for e in range(len(bound)):
        if bound[e] > least:
            seen[count] = e
            count += 1
            if e != first:
                _, gain = _best_of(world, desk, e)
                bound[e] = gain + ROUNDING
                if gain > most:
                    most, least = gain, max(above, gain - 2 * slack)
    seen = seen[:count]
    who, to, asc, gains = gather(world, seen[bound[seen] > least])
    most = gains.max() if len(gains) else -np.inf
    tied = (gains >= most - slack) & (most > above)
    return who[tied], to[tied], asc[tied], gains[tied]


@compiled
def open_pairs(
    world: KernelWorld, both: Floats, known: Known, least: float, must_stay: Marks
) -> list[tuple[int, int, float, float]]:
    """List pairs of executors that gain together what neither gains alone.

    Parameters
    ----------
    world : KernelWorld
        What to look at.
    both : Floats, shape (2, E)
        As `View.bounds`: the first is of the moves of `gather`, the second of all.
    known : Known
        Filled in where an executor is looked at.
    least : float
        What two moves have to gain more than the better one of them.
    must_stay : array of bool, shape (W,)
        Workers that no two executors may leave together.

    Returns
    -------
    list of (executor, worker, asc, score)
        The first moves of the pairs, each with the score of both.
    """
    found = [(0, 0, 0.0, 0.0) for _ in range(0)]  # so that its type is known
    place, node_of, desk = world.place, world.node_of, _desk(world)
    bound, anywhere = both
    a, b = world.weight_node, world.weight_worker
    for one in range(len(bound)):
        if bound[one] + 2 * (a + b) * known.loudest_tps[one] <= least:
            continue
        to, first = known.to[one], known.score[one]
        home = place[one]
        n1 = node_of[home]
        for k in range(world.begin[one], world.begin[one + 1]):
            # What the two scores miss of the traffic between the two, who go together, is at most
            # twice that, and half of that for each level, node or worker, at which they are apart;
            # and it is more than what is lacking to either of them.
            other, said = world.peer[k], world.tps[world.row[k]]
            alone = min(bound[one], anywhere[other])
            if to == -1 or alone + 2 * (a + b) * said <= least:
                continue
            here = place[other]
            n2 = node_of[here]
            if alone + said * (a * (1.0 + (n1 == n2)) + b * (1.0 + (home == here))) <= least:
                continue
            if to == NOT_LOOKED_AT:
                to, first = _best_of(world, desk, one)
                known.to[one], known.score[one] = to, first
                bound[one] = first + ROUNDING
            if to == -1 or not world.movable[other] or not may_move(world, other, to):
                continue
            missed = a * (1.0 + (n1 == n2) - (n1 == node_of[to]) - (n2 == node_of[to]))
            missed = said * (missed + b * (1.0 + (home == here)))
            both_fit = world.cores[one] + world.cores[other] <= world.room[to]
            if first + missed <= least or not both_fit:
                continue
            if home == here and must_stay[home]:
                continue
            _, second = score_of(world, other, to)
            together = first + second + missed
            if together > least + max(first, second, 0.0):
                goes = int(other) if second > first else one
                found.append((goes, int(to), score_of(world, goes, to)[0], together))
    return found


@compiled
def score_of(world: KernelWorld, e: int, worker: int) -> tuple[float, float]:
    """Compute ASC and score of one move.

    Parameters
    ----------
    world : KernelWorld
        What to look at.

    Returns
    -------
    asc, score : float, float
        Whether it may be made is not looked at.
    """
    place, node_of = world.place, world.node_of
    home, own, there = place[e], node_of[place[e]], node_of[worker]
    asc = near = 0.0
    for k in range(world.begin[e], world.begin[e + 1]):
        w, said = place[world.peer[k]], world.tps[world.row[k]]
        asc += said * (int(node_of[w] == there) - int(node_of[w] == own))
        near += said * (int(w == worker) - int(w == home))
    return asc, world.weight_node * asc + world.weight_worker * near
