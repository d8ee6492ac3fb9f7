"""The loops of a decision, over executors and their peers.

A peer of an executor sends it tuples or gets tuples from it. The traffic of an executor with a
worker or a node is that with all of its peers there, in both directions.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.core.distance import TrafficWeights, weigh
from controller.core.pairs import Rows
from controller.core.room import Marks, change, holds, near

# Executors, workers, ASC and scores, one move a row; as in `Moves`.
Table: TypeAlias = tuple[Ints, Ints, Floats, Floats]
# In place of a worker, where the best move of an executor is not known yet.
_NOT_LOOKED_AT = -2
# Scores that differ by less may be one sum, added up in two orders.
ROUNDING = 1e-9


class KernelWorld(NamedTuple):
    """The input of the loops, in contiguous arrays.

    `begin`, `peer` and `row` are as in `Pairs`; `movable`, `room`, `roomiest` and `taken` as in
    `View`, `demand`, `unit_of` and `hop` as in `Fit`. By row of the traffic: `tps`, and `hop_tps`
    as in `HopRates`; so is `hop_scale`. By executor:
    its worker in `place`, and in `doubt` by how much measured gains of its moves may be too high.
    The scores of `gather`, `best` and `open_pairs` are lower by `doubt`. By worker: `node_of`.
    """

    begin: Ints
    peer: Rows
    row: Rows
    tps: Floats
    hop_tps: Floats
    hop_scale: Floats
    place: Ints
    demand: Floats
    doubt: Floats
    movable: Marks
    node_of: Ints
    unit_of: Ints
    hop: TrafficWeights
    room: Floats
    roomiest: Ints
    taken: Ints
    weights: TrafficWeights


class _Scratch(NamedTuple):
    """Traffic of one executor with each worker and each node, all zero between two executors.

    In `hops_worker` and `hops_node` it is as hops cost it at both ends. `workers` lists those worth
    a look, and `fits` has which of them the executor may move to. A stamp is the executor that a
    worker was listed for last, so one scratch may be used only once for each executor.
    """

    with_worker: Floats
    with_node: Floats
    hops_worker: Floats
    hops_node: Floats
    workers: Ints
    fits: Marks
    stamp: Ints


@compiled
def _is_taken(world: KernelWorld, one: int, other: int) -> bool:
    code = min(one, other) * len(world.roomiest) + max(one, other)
    is_taken = False
    for i in range(len(world.taken)):
        is_taken |= world.taken[i] == code
    return is_taken


@compiled
def roomiest(room: Floats, is_open: Marks, node_of: Ints, nodes: int) -> Ints:
    """Find the open worker with most room of each node, of equal ones the first; -1 without any."""
    found, most = np.full(nodes, -1, dtype=np.int64), np.full(nodes, -np.inf)
    for w in range(len(node_of)):
        here = np.rint(room[w] / ROUNDING)
        if is_open[w] and here > most[node_of[w]]:
            found[node_of[w]], most[node_of[w]] = w, here
    return found


@compiled
def _scratch(world: KernelWorld) -> _Scratch:
    workers, nodes = len(world.node_of), len(world.roomiest)
    return _Scratch(
        np.zeros(workers),
        np.zeros(nodes),
        np.zeros(workers),
        np.zeros(nodes),
        np.empty(workers + 1, dtype=np.int64),
        np.empty(workers + 1, dtype=np.bool_),
        np.full(workers, -1, dtype=np.int64),
    )


@compiled
def _sum_by_place(world: KernelWorld, scratch: _Scratch, e: int) -> tuple[int, int]:
    """Sum up an executor's traffic by worker and by node, and list the workers worth a look.

    Returns how many workers are listed, and how many of these, the first ones, have peers.
    """
    listed = 0
    for k in range(world.begin[e], world.begin[e + 1]):
        w, tps = np.uint64(world.place[world.peer[k]]), world.tps[world.row[k]]
        # The processor could not predict a branch here, so an entry that is not new is overwritten.
        scratch.workers[listed] = w
        listed += scratch.stamp[w] != e
        scratch.stamp[w] = e
        scratch.with_worker[w] += tps
        scratch.with_node[np.uint64(world.node_of[w])] += tps
    with_peers = listed
    # A worker without peers is worth a look if it is the roomiest of a node that has some.
    for i in range(with_peers):
        n = world.node_of[scratch.workers[i]]
        w = world.roomiest[n]
        if w >= 0 and n != world.node_of[world.place[e]]:
            scratch.workers[listed] = w
            listed += scratch.stamp[w] != e
            scratch.stamp[w] = e
    return listed, with_peers


@compiled
def _clear(world: KernelWorld, scratch: _Scratch, with_peers: int) -> None:
    for i in range(with_peers):
        w = scratch.workers[i]
        scratch.with_worker[w] = scratch.with_node[world.node_of[w]] = 0.0
        scratch.hops_worker[w] = scratch.hops_node[world.node_of[w]] = 0.0


@compiled
def _fit(world: KernelWorld, scratch: _Scratch, e: int, listed: int) -> None:
    """Mark in `fits` the listed workers that an executor may move to, as `may_move` does.

    What its hops cost is summed up by worker and by node first, so no peer is looked at again.
    """
    home, need, hop = world.place[e], world.demand[e], world.hop
    room, unit_of, node_of = world.room, world.unit_of, world.node_of
    own_node, mine, own = node_of[home], world.hop_scale[e], 0.0
    if hop.worker > 0.0:
        for k in range(world.begin[e], world.begin[e + 1]):
            other, said = world.peer[k], world.hop_tps[world.row[k]]
            w = world.place[other]
            n, both = node_of[w], said * (mine + world.hop_scale[other])
            scratch.hops_worker[w] += both
            scratch.hops_node[n] += both
            own += said * weigh(hop, int(n == own_node), int(w == home))
    own *= mine
    here = weigh(hop, scratch.hops_node[own_node], scratch.hops_worker[home])
    is_any_taken = len(world.taken) > 0
    for i in range(listed):
        w = scratch.workers[i]
        n = node_of[w]
        there = weigh(hop, scratch.hops_node[n], scratch.hops_worker[w])
        stays = unit_of[w] == unit_of[home]
        fits = w != home and holds(room[w], room[home], stays, need, own, here, there)
        if fits and is_any_taken:
            fits = not _is_taken(world, own_node, n)
        scratch.fits[i] = fits


@compiled
def may_move(world: KernelWorld, e: int, w: int) -> bool:
    """Check that a move changes the worker, fits there, and is not between nodes that are taken.

    Whether the executor is movable is not looked at.
    """
    home = world.place[e]
    if w == home or _is_taken(world, world.node_of[home], world.node_of[w]):
        return False
    own, here, there = _near(world, e, w)
    stays = world.unit_of[w] == world.unit_of[home]
    return holds(world.room[w], world.room[home], stays, world.demand[e], own, here, there)


@compiled
def _near(world: KernelWorld, e: int, w: int) -> tuple[float, float, float]:
    """Compute what hops save where an executor is, and on another worker; as `near` does."""
    if world.hop.worker == 0.0:
        return 0.0, 0.0, 0.0
    links = world.begin, world.peer, world.row, world.hop_tps, world.hop_scale
    return near(*links, world.place, world.node_of, world.hop, e, w)


@compiled
def _brings(world: KernelWorld, e: int, w: int) -> float:
    """Compute how much more is used where an executor comes to."""
    own, here, there = _near(world, e, w)
    stays = world.unit_of[world.place[e]] == world.unit_of[w]
    return change(stays, world.demand[e], own, here, there)[0]


@compiled
def _best_of(world: KernelWorld, scratch: _Scratch, e: int) -> tuple[int, float]:
    """Find worker and score of the best of an executor's moves in `gather`; worker -1 if none.

    Of equal ones the first worker.
    """
    listed, with_peers = _sum_by_place(world, scratch, e)
    at_home = scratch.with_worker[world.place[e]]
    at_node = scratch.with_node[world.node_of[world.place[e]]]
    _fit(world, scratch, e, listed)
    best, best_score = -1, -np.inf
    for i in range(listed):
        w = scratch.workers[i]
        asc = scratch.with_node[world.node_of[w]] - at_node
        near = scratch.with_worker[w] - at_home
        total = weigh(world.weights, asc, near) - world.doubt[e]
        if scratch.fits[i] and total > best_score - 2 * ROUNDING:
            new, old = np.rint(total / ROUNDING), np.rint(best_score / ROUNDING)
            if new > old or (new == old and w < best):
                best, best_score = w, total
    _clear(world, scratch, with_peers)
    return best, best_score


@compiled
def score(world: KernelWorld, executors: Ints, workers: Ints) -> Table:
    """Score the moves of all these executors to all these workers, executor by executor.

    Left out are those that stay on the worker and those between nodes that are taken; whether a
    move fits is not looked at.
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
            w, tps = world.place[world.peer[k]], world.tps[world.row[k]]
            with_worker[w] += tps
            with_node[world.node_of[w]] += tps
        at_home, at_node = with_worker[home], with_node[own]
        for w in workers:
            n = world.node_of[w]
            who[count], to[count], asc[count] = e, w, with_node[n] - at_node
            near = with_worker[w] - at_home
            gain[count] = weigh(world.weights, asc[count], near)
            # The next row overwrites one that does not count.
            count += w != home and not (is_any_taken and _is_taken(world, own, n))
        for k in range(world.begin[e], world.begin[e + 1]):
            w = world.place[world.peer[k]]
            with_worker[w] = 0.0
            with_node[world.node_of[w]] = 0.0
    return who[:count], to[:count], asc[:count], gain[:count]


@compiled
def gather(world: KernelWorld, executors: Ints) -> Table:
    """List the moves that fit and bring an executor to a worker or a node of its peers.

    Executor by executor: to every worker of its peers, and to the roomiest worker of every other
    node of its peers. Of all moves that gain, the best is among these.
    """
    scratch = _scratch(world)
    most = count = 0
    for e in executors:
        most += 2 * (world.begin[e + 1] - world.begin[e])
    who, to = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    asc, gain = np.empty(most), np.empty(most)
    for e in executors:
        home = world.place[e]
        own = world.node_of[home]
        listed, with_peers = _sum_by_place(world, scratch, e)
        _fit(world, scratch, e, listed)
        for i in range(listed):
            w = scratch.workers[i]
            if scratch.fits[i]:
                who[count], to[count] = e, w
                asc[count] = scratch.with_node[world.node_of[w]] - scratch.with_node[own]
                near = scratch.with_worker[w] - scratch.with_worker[home]
                gain[count] = weigh(world.weights, asc[count], near)
                gain[count] -= world.doubt[e]
                count += 1
        _clear(world, scratch, with_peers)
    return who[:count], to[:count], asc[:count], gain[:count]


@compiled
def doubts(source: Ints, target: Ints, var: Floats, times: float, movable: Marks) -> Floats:
    """Compute `times` the deviation of all that each movable executor sends and receives."""
    found = np.zeros(len(movable))
    for k in range(len(source)):
        if source[k] != target[k]:
            found[source[k]] += var[k]
            found[target[k]] += var[k]
    return times * np.sqrt(np.where(movable, found, 0.0))


@compiled
def loudest(source: Ints, target: Ints, tps: Floats, begin: Ints) -> Floats:
    """Find the most that each executor sends to one other or gets from it, (E,).

    `begin` is as in `Pairs`.
    """
    found = np.zeros(len(begin) - 1)
    for k in range(len(source)):
        if source[k] != target[k]:
            found[source[k]] = max(found[source[k]], tps[k])
            found[target[k]] = max(found[target[k]], tps[k])
    return found


@compiled
def bounds(world: KernelWorld) -> tuple[Floats, Floats]:
    """Bound what each executor can gain within its node, and elsewhere, (E,) each.

    It is what it would gain if there were room everywhere; minus infinity where it may not move.
    """
    within, elsewhere = np.full(len(world.place), -np.inf), np.full(len(world.place), -np.inf)
    scratch = _scratch(world)
    for e in range(len(world.place)):
        if not world.movable[e]:
            continue
        _, with_peers = _sum_by_place(world, scratch, e)
        home, own = world.place[e], world.node_of[world.place[e]]
        at_home, at_node = scratch.with_worker[home], scratch.with_node[own]
        # At first where it has no peer.
        near = weigh(world.weights, 0.0, -at_home)
        far = weigh(world.weights, -at_node, -at_home)
        for i in range(with_peers):
            w = scratch.workers[i]
            n = world.node_of[w]
            asc = scratch.with_node[n] - at_node if n != own else 0.0
            total = weigh(world.weights, asc, scratch.with_worker[w] - at_home)
            if n != own:
                far = total if total > far else far
            elif w != home and total > near:
                near = total
        _clear(world, scratch, with_peers)
        within[e] = near - world.doubt[e] + ROUNDING
        elsewhere[e] = far - world.doubt[e] + ROUNDING
    return within, elsewhere


@compiled
def best(world: KernelWorld, bound: Floats, first: int, above: float, slack: float) -> Table:
    """List the moves of `gather` that tie for the best, if that scores more than `above`.

    Executor by executor. Some that do not score more than `above` themselves may be missing.

    No move of an executor scores more than its `bound`, shape (E,). The loop lowers it, in place,
    to the score of each executor that it looks at. It skips an executor whose bound does not reach
    the best so far. The better the best move of the executor to look at `first`, the more others
    are skipped. `slack` is how much below the best still counts as the best, not less than what
    scores are rounded to.
    """
    scratch = _scratch(world)
    _, most = _best_of(world, scratch, first)
    bound[first] = most + ROUNDING
    least = max(above, most - 2 * slack)
    seen, count = np.empty(len(bound), dtype=np.int64), 0
    for e in range(len(bound)):
        if bound[e] > least:
            seen[count] = e
            count += 1
            if e != first:
                _, gain = _best_of(world, scratch, e)
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
    world: KernelWorld, bounds: tuple[Floats, Floats, Floats], loudest: Floats, least: float
) -> list[tuple[int, int, float, float]]:
    """List pairs of executors that gain together what neither gains alone.

    Each is the first move of the pair (executor, worker, ASC) and the score of both moves.

    `bounds` is as `View.bounds`: of the moves of `gather`, of all within the node, and of all to
    other nodes. An executor that may not move may have any. `loudest` is (E,), as the
    function of that name finds it. `least` is what two moves have to gain more than the better one
    of them.
    """
    found = [(0, 0, 0.0, 0.0) for _ in range(0)]  # so that its type is known
    place, node_of, scratch = world.place, world.node_of, _scratch(world)
    bound, near, far = bounds
    most_missed = weigh(world.weights, 2.0, 2.0)
    for one in range(len(bound)):
        if not world.movable[one] or bound[one] + most_missed * loudest[one] <= least:
            continue
        to, first = _NOT_LOOKED_AT, 0.0
        home_one = place[one]
        node_one = node_of[home_one]
        for k in range(world.begin[one], world.begin[one + 1]):
            # Both would go to one worker. Either score counts their own traffic as if the other
            # one stayed, and so the two together miss some of it. For nodes as for workers, they
            # miss at most twice that traffic where both are together now, else at most once. The
            # lower score and what is missed must exceed `least`, or else one move does as well.
            other, tps = world.peer[k], world.tps[world.row[k]]
            if to == -1 or bound[one] + most_missed * tps <= least:
                continue
            home_other = place[other]
            node_other = node_of[home_other]
            at_workers = 1.0 + (home_one == home_other)
            if node_one == node_other:
                # Nothing is missed of nodes where they stay on theirs, and all of it else.
                missable = tps * weigh(world.weights, 0.0, at_workers)
                stay = min(bound[one], near[one], near[other]) + missable
                missable = tps * weigh(world.weights, 2.0, at_workers)
                go = min(bound[one], far[one], far[other]) + missable
                most = max(stay, go)
            else:
                missable = tps * weigh(world.weights, 1.0, at_workers)
                most = min(bound[one], max(near[other], far[other])) + missable
            if most <= least:
                continue
            if to == _NOT_LOOKED_AT:
                to, first = _best_of(world, scratch, one)
                bound[one] = first + ROUNDING
            if to == -1 or not world.movable[other]:
                continue
            there = node_of[to]
            at_nodes = 1.0 + (node_one == node_other) - (node_one == there) - (node_other == there)
            missed = tps * weigh(world.weights, at_nodes, at_workers)
            second = near[other] if node_other == there else far[other]  # at most
            if min(first, second, first + second) + missed <= least:
                continue
            second = score_of(world, other, to)[1] - world.doubt[other]
            together = first + second + missed
            if together <= least + max(first, second, 0.0) or not may_move(world, other, to):
                continue
            if _brings(world, one, to) + _brings(world, other, to) <= world.room[to]:
                goes = int(other) if second > first else one
                found.append((goes, int(to), score_of(world, goes, to)[0], together))
    return found


@compiled
def score_of(world: KernelWorld, e: int, worker: int) -> tuple[float, float]:
    """Compute ASC and score of one move; whether it may be made is not looked at."""
    place, node_of = world.place, world.node_of
    home, own, there = place[e], node_of[place[e]], node_of[worker]
    asc = near = 0.0
    for k in range(world.begin[e], world.begin[e + 1]):
        w, tps = place[world.peer[k]], world.tps[world.row[k]]
        asc += tps * (int(node_of[w] == there) - int(node_of[w] == own))
        near += tps * (int(w == worker) - int(w == home))
    return asc, weigh(world.weights, asc, near)
