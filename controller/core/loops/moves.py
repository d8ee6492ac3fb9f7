"""The loops of a decision, over executors and their peers.

A peer of an executor sends it tuples or gets tuples from it. The traffic of an executor with a
worker or a node is that with all of its peers there, in both directions.
"""

from typing import TypeAlias

import numpy as np

from controller.core.cluster import Floats, Ints, Marks, Rows
from controller.core.distance import TrafficWeights
from controller.core.loops import require

# Executors, workers, ASC and scores, one move a row; as in `Moves`.
Table: TypeAlias = tuple[Ints, Ints, Floats, Floats]
# An executor, a worker, ASC, the score of two moves, and the executor that goes second.
Opening: TypeAlias = tuple[int, int, float, float, int]
# In place of a worker, where the best move of an executor is not known yet.
_NOT_LOOKED_AT = -2
# Scores that differ by less may be one sum, added up in two orders.
ROUNDING = 1e-9
_NO_SCORE = -np.inf
# From here on numbers of 64 bits have no fraction.
_ALL_WHOLE = 2.0**52


class World:
    """The input of the loops.

    `begin`, `peer` and `row` are as in `Pairs`; `room`, `roomiest` and `taken` as in `View`,
    `demand`, `unit_of` and `hop` as in `Fit`. By row of the traffic: `tps`, and `hop_tps` as in
    `HopRates`; so is `hop_scale`. By executor: its worker in `place`, and in `doubt` by how much
    measured gains of its moves may be too high. The scores of `gather`, `best` and `open_pairs` are
    lower by `doubt`. By worker: `node_of`. `memory` is what each executor declares, and
    `memory_left` what may still come to each node; both are empty where nothing counts it. What
    `bars` bar is no move of `best` and `open_pairs`.
    """

    def __init__(
        self,
        *,
        begin: Ints,
        peer: Rows,
        row: Rows,
        tps: Floats,
        hop_tps: Floats,
        hop_scale: Floats,
        place: Ints,
        demand: Floats,
        doubt: Floats,
        node_of: Ints,
        unit_of: Ints,
        room: Floats,
        roomiest: Ints,
        taken: Ints,
        memory: Floats,
        memory_left: Floats,
        hop: TrafficWeights,
        weights: TrafficWeights,
        bars: "Bars | None" = None,
    ) -> None:
        contiguous = np.ascontiguousarray
        self.begin, self.peer, self.row = contiguous(begin), contiguous(peer), contiguous(row)
        self.tps, self.hop_tps = contiguous(tps), contiguous(hop_tps)
        self.hop_scale, self.place = contiguous(hop_scale), contiguous(place)
        self.demand, self.doubt = contiguous(demand), contiguous(doubt)
        self.node_of, self.unit_of = contiguous(node_of), contiguous(unit_of)
        self.room, self.roomiest, self.taken = (
            contiguous(room),
            contiguous(roomiest),
            contiguous(taken),
        )
        self.hop_node, self.hop_worker = hop
        self.weight_node, self.weight_worker = weights
        self.is_any_taken = len(taken) > 0
        self.memory, self.memory_left = contiguous(memory), contiguous(memory_left)
        self.counts_memory = len(memory) > 0
        self.bars = bars
        count = len(self.place)
        require(count == len(self.demand) == len(self.doubt) == len(self.hop_scale))
        require(count + 1 == len(self.begin) and len(self.peer) == len(self.row))
        require(len(self.node_of) == len(self.unit_of) == len(self.room))
        if self.counts_memory:
            require(len(self.memory) == count and len(self.memory_left) == len(self.roomiest))
        if self.bars is not None:
            require(len(self.bars.rate) == len(self.tps) and self.bars.kept.shape[1] == count)
            require(self.bars.sent.shape[2] == len(self.roomiest))
            require(self.bars.filled.shape[1] == len(self.room))


class Bars:
    """What a move must not fill: the links more than today's placement does, a space too much.

    By row of the traffic: `sender`, and as in `Links` its `rate` and its `group`. By group,
    direction and node: what is `sent` in the placement, and its `limit`, (G, 2, N). By space and
    executor: what is `kept`, (K, E). By space and worker: how far it is `filled`, and up to where
    it `may` be, (K, W). A worker without executors `is_bare`, (W,), and has `bare` in it, (K,).
    """

    def __init__(
        self,
        *,
        sender: Ints,
        rate: Floats,
        group: Ints,
        sent: Floats,
        limit: Floats,
        kept: Floats,
        filled: Floats,
        may: Floats,
        bare: Floats,
        is_bare: Marks,
    ) -> None:
        contiguous = np.ascontiguousarray
        self.sender, self.rate, self.group = contiguous(sender), contiguous(rate), contiguous(group)
        self.sent, self.limit = contiguous(sent), contiguous(limit)
        self.kept, self.filled, self.may = contiguous(kept), contiguous(filled), contiguous(may)
        self.bare, self.is_bare = contiguous(bare), contiguous(is_bare)
        # Of the two nodes of a move, by group and direction; all zero between two moves.
        self.change = np.zeros((len(sent), 2, 2))
        self.has_barred = False  # a move that would gain enough
        require(len(self.sender) == len(self.rate) == len(self.group))
        require(sent.shape[0] == limit.shape[0] and sent.shape[1] == limit.shape[1] == 2)
        require(sent.shape[2] == limit.shape[2])
        require(filled.shape[0] == may.shape[0] == kept.shape[0] == len(bare))
        require(filled.shape[1] == may.shape[1] == len(is_bare))


class _Scratch:
    """Traffic of one executor with each worker and each node, all zero between two executors.

    In `hops_worker` and `hops_node` it is as hops cost it at both ends. `workers` lists those worth
    a look, and `fits` has which of them the executor may move to. A stamp is the executor that a
    worker was listed for last, so one scratch may be used only once for each executor.
    """

    def __init__(self, workers: int, nodes: int) -> None:
        self.with_worker = np.zeros(workers)
        self.with_node = np.zeros(nodes)
        self.hops_worker = np.zeros(workers)
        self.hops_node = np.zeros(nodes)
        self.workers = np.empty(workers + 1, dtype=np.int64)
        self.fits = np.empty(workers + 1, dtype=np.bool_)
        self.stamp = np.full(workers, -1, dtype=np.int64)


def _one_if(is_true: bool) -> float:
    """Give 1 or 0."""
    return 1.0 if is_true else 0.0


def weigh(node: float, worker: float, between_nodes: float, between_workers: float) -> float:
    """Compute as `weighed` does, of two weights."""
    return node * between_nodes + worker * between_workers


def _rounded(value: float) -> float:
    """Round to a whole number, and halves to an even one; infinities and NaN stay."""
    if value >= 0.0:
        return value if value >= _ALL_WHOLE else (value + _ALL_WHOLE) - _ALL_WHOLE
    return value if value <= -_ALL_WHOLE else (value - _ALL_WHOLE) + _ALL_WHOLE


def _change(stays: bool, need: float, own: float, here: float, there: float) -> tuple[float, float]:
    """Compute how much more a move uses where it comes to, and where it leaves.

    `here` is what hops save where the executor is, at both their ends, and `there` where it comes
    to. The executor's own part of `here` is `own`, and the rest its peers'. Of a move that `stays`
    in its node both are the same.
    """
    if stays:
        return here - there, here - there
    return need + own - there, here - own - need


def _holds(  # noqa: PLR0917
    largest: float,
    largest_home: float,
    stays: bool,
    need: float,
    own: float,
    here: float,
    there: float,
) -> bool:
    """Check whether a worker has room for an executor of another one, its hops counted.

    `largest` is as `Fit.largest` computes it, of the worker and of the one that is left; a need of
    NaN fits nowhere. `stays`, `own`, `here` and `there` are as in `_change`. A node that is too
    full must not get fuller by a move away from it, nor by one within it.
    """
    came, went = _change(stays, need, own, here, there)
    if stays:
        return bool(came <= max(largest, 0.0) and largest > _NO_SCORE)
    return bool(came <= largest and went <= max(largest_home, 0.0))


def _near(  # noqa: PLR0917
    begin: Ints,
    peer: Rows,
    row: Rows,
    tps: Floats,
    scale: Floats,
    place: Ints,
    node_of: Ints,
    hop_node: float,
    hop_worker: float,
    e: int,
    w: int,
) -> tuple[float, float, float]:
    """Compute what hops save where an executor is, and on another worker, as in `_change`."""
    home, mine = place[e], scale[e]
    own = here = there = 0.0
    for k in range(begin[e], begin[e + 1]):
        at, said = place[peer[k]], tps[row[k]]
        node, both = node_of[at], said * (mine + scale[peer[k]])
        at_home = weigh(hop_node, hop_worker, _one_if(node == node_of[home]), _one_if(at == home))
        own += said * at_home
        here += both * at_home
        there += both * weigh(hop_node, hop_worker, _one_if(node == node_of[w]), _one_if(at == w))
    return mine * own, here, there


def sums(place: Ints, demand: Floats, places: int) -> Floats:
    """Add up what the executors of each place use."""
    require(len(place) == len(demand))
    used = np.zeros(places)
    for e in range(len(place)):
        used[place[e]] += demand[e]
    return np.asarray(used)


def hold(  # noqa: PLR0917
    largest: Floats, unit_of: Ints, homes: Ints, workers: Ints, need: Floats, saved: Floats
) -> Marks:
    """Mark the moves that fit, (K,), each as `_holds` does; `saved` is as in `near_each`."""
    require(len(homes) == len(workers) == len(need) == saved.shape[1])
    require(len(largest) == len(unit_of) and len(saved) == 3)
    fits = np.zeros(len(homes), np.bool_)
    for i in range(len(homes)):
        home, w = homes[i], workers[i]
        stays = unit_of[home] == unit_of[w] and home != w
        own, here, there = saved[0, i], saved[1, i], saved[2, i]
        fits[i] = _holds(largest[w], largest[home], stays, need[i], own, here, there)
    return np.asarray(fits)


def change_each(stays: Marks, need: Floats, saved: Floats) -> tuple[Floats, Floats]:
    """Compute what each of some moves changes, (K,) each; `saved` is as in `near_each`."""
    require(len(stays) == len(need) == saved.shape[1] and len(saved) == 3)
    came, went = np.empty(len(stays)), np.empty(len(stays))
    for i in range(len(stays)):
        came[i], went[i] = _change(stays[i], need[i], saved[0, i], saved[1, i], saved[2, i])
    return np.asarray(came), np.asarray(went)


def near_each(  # noqa: PLR0917
    begin: Ints,
    peer: Rows,
    row: Rows,
    tps: Floats,
    scale: Floats,
    place: Ints,
    node_of: Ints,
    hop: TrafficWeights,
    executors: Ints,
    workers: Ints,
) -> Floats:
    """Compute what hops save before each of some moves, and after it, (3, K), as in `_change`.

    In rows: the executor's own part of what is saved before, that, and what is saved after.
    """
    require(len(executors) == len(workers) and len(peer) == len(row))
    require(len(begin) == len(place) + 1 and len(place) == len(scale))
    hop_node, hop_worker = hop
    found = np.zeros((3, len(executors)))
    for i in range(len(executors)):
        e, w = executors[i], workers[i]
        own, here, there = _near(
            begin, peer, row, tps, scale, place, node_of, hop_node, hop_worker, e, w
        )
        found[0, i], found[1, i], found[2, i] = own, here, there
    return np.asarray(found)


def _is_taken(world: World, one: int, other: int) -> bool:
    code = min(one, other) * len(world.roomiest) + max(one, other)
    for i in range(len(world.taken)):  # noqa: SIM110  # a generator is no loop
        if world.taken[i] == code:
            return True
    return False


def _brings_memory(world: World, e: int, w: int) -> float:
    """Compute how much declared memory a move brings to the node of a worker."""
    is_other = world.node_of[world.place[e]] != world.node_of[w]
    return world.memory[e] if is_other else 0.0


def roomiest(room: Floats, is_open: Marks, node_of: Ints, nodes: int) -> Ints:
    """Find the open worker with most room of each node, of equal ones the first; -1 without any."""
    require(len(node_of) == len(room) == len(is_open))
    found, most = np.full(nodes, -1, dtype=np.int64), np.full(nodes, -np.inf)
    for w in range(len(node_of)):
        here = _rounded(room[w] / ROUNDING)
        if is_open[w] and here > most[node_of[w]]:
            found[node_of[w]], most[node_of[w]] = w, here
    return np.asarray(found)


def _sum_by_place(world: World, scratch: _Scratch, e: int) -> int:
    """Sum up an executor's traffic by worker and by node, and list the workers of its peers.

    Returns how many these are.
    """
    listed = 0
    for k in range(world.begin[e], world.begin[e + 1]):
        w = world.place[world.peer[k]]
        # The processor could not predict a branch here, so an entry that is not new is overwritten.
        scratch.workers[listed] = w
        listed += scratch.stamp[w] != e
        scratch.stamp[w] = e
        scratch.with_worker[w] += world.tps[world.row[k]]
    for i in range(listed):
        w = scratch.workers[i]
        scratch.with_node[world.node_of[w]] += scratch.with_worker[w]
    return listed


def _with_roomiest(world: World, scratch: _Scratch, e: int, with_peers: int) -> int:
    """List also the roomiest worker of each other node that has peers; returns how many are listed.

    Without peers a worker is worth a look if it is that.
    """
    listed = with_peers
    for i in range(with_peers):
        n = world.node_of[scratch.workers[i]]
        w = world.roomiest[n]
        if w >= 0 and n != world.node_of[world.place[e]]:
            scratch.workers[listed] = w
            listed += scratch.stamp[w] != e
            scratch.stamp[w] = e
    return listed


def _clear(world: World, scratch: _Scratch, with_peers: int) -> None:
    for i in range(with_peers):
        w = scratch.workers[i]
        n = world.node_of[w]
        scratch.with_worker[w] = 0.0
        scratch.with_node[n] = 0.0
        scratch.hops_worker[w] = 0.0
        scratch.hops_node[n] = 0.0


def _fit(world: World, scratch: _Scratch, e: int, with_peers: int) -> int:
    """Mark in `fits` the workers worth a look that an executor may move to, as `may_move` does.

    These are listed: those of its peers, and those `_with_roomiest`. Returns how many there are.
    What its hops cost is summed up by worker and by node first, so no peer is looked at again.
    """
    home, need = world.place[e], world.demand[e]
    hop_node, hop_worker = world.hop_node, world.hop_worker
    own_node, mine, own = world.node_of[home], world.hop_scale[e], 0.0
    if hop_worker > 0.0:
        for k in range(world.begin[e], world.begin[e + 1]):
            other, said = world.peer[k], world.hop_tps[world.row[k]]
            w = world.place[other]
            n, both = world.node_of[w], said * (mine + world.hop_scale[other])
            scratch.hops_worker[w] += both
            own += said * weigh(hop_node, hop_worker, _one_if(n == own_node), _one_if(w == home))
        for i in range(with_peers):
            w = scratch.workers[i]
            scratch.hops_node[world.node_of[w]] += scratch.hops_worker[w]
    own *= mine
    listed = _with_roomiest(world, scratch, e, with_peers)
    here = weigh(hop_node, hop_worker, scratch.hops_node[own_node], scratch.hops_worker[home])
    for i in range(listed):
        w = scratch.workers[i]
        n = world.node_of[w]
        there = weigh(hop_node, hop_worker, scratch.hops_node[n], scratch.hops_worker[w])
        stays = world.unit_of[w] == world.unit_of[home]
        fits = w != home and _holds(world.room[w], world.room[home], stays, need, own, here, there)
        if fits and world.is_any_taken:
            fits = not _is_taken(world, own_node, n)
        if fits and world.counts_memory:
            fits = _brings_memory(world, e, w) <= world.memory_left[n]
        scratch.fits[i] = fits
    return listed


def may_move(world: World, e: int, w: int) -> bool:
    """Check that a move changes the worker, fits there, and is not between nodes that are taken.

    Whether the executor is movable is not looked at.
    """
    require(world is not None)
    home = world.place[e]
    if world.counts_memory and _brings_memory(world, e, w) > world.memory_left[world.node_of[w]]:
        return False
    if w == home or _is_taken(world, world.node_of[home], world.node_of[w]):
        return False
    own, here, there = _near_in(world, e, w)
    stays = world.unit_of[w] == world.unit_of[home]
    return _holds(world.room[w], world.room[home], stays, world.demand[e], own, here, there)


def _near_in(world: World, e: int, w: int) -> tuple[float, float, float]:
    """Compute what hops save where an executor is, and on another worker."""
    if world.hop_worker == 0.0:
        return 0.0, 0.0, 0.0
    return _near(
        world.begin,
        world.peer,
        world.row,
        world.hop_tps,
        world.hop_scale,
        world.place,
        world.node_of,
        world.hop_node,
        world.hop_worker,
        e,
        w,
    )


def _brings(world: World, e: int, w: int) -> float:
    """Compute how much more is used where an executor comes to."""
    own, here, there = _near_in(world, e, w)
    stays = world.unit_of[world.place[e]] == world.unit_of[w]
    return _change(stays, world.demand[e], own, here, there)[0]


def _takes_both(world: World, one: int, other: int, w: int) -> bool:
    """Check that a worker has room for two executors together, and its node the memory."""
    comes = _brings(world, one, w) + _brings(world, other, w)
    if not world.counts_memory:
        return bool(comes <= world.room[w])
    memory = _brings_memory(world, one, w) + _brings_memory(world, other, w)
    return bool(comes <= world.room[w] and memory <= world.memory_left[world.node_of[w]])


def is_barred(world: World, e: int, w: int) -> bool:
    """Check whether a move fills a link more than today's placement, or a space too much."""
    require(world is not None and 0 <= e < len(world.place) and 0 <= w < len(world.room))
    return world.bars is not None and _is_barred(world, world.bars, e, w)


def has_barred(world: World) -> bool:
    """Check whether `best` has passed over a move that is barred."""
    require(world is not None)
    return world.bars is not None and world.bars.has_barred


def _is_barred(world: World, bars: Bars, e: int, w: int) -> bool:
    if w == world.place[e]:
        return False
    for k in range(len(bars.bare)):
        after = bars.filled[k, w] + bars.kept[k, e] + bars.bare[k] * _one_if(bars.is_bare[w])
        if after > bars.may[k, w]:
            return True
    one, other = world.node_of[world.place[e]], world.node_of[w]
    return one != other and _fills_a_link(world, bars, e, one, other)


def _fills_a_link(world: World, bars: Bars, e: int, one: int, other: int) -> bool:
    """Check whether a link is above its limit that gets fuller; only those of both nodes change."""
    for k in range(world.begin[e], world.begin[e + 1]):
        at, row = world.node_of[world.place[world.peer[k]]], world.row[k]
        rate, g = bars.rate[row], bars.group[row]
        own = 0 if bars.sender[row] == e else 1
        if at == one:
            bars.change[g, 1 - own, 0] += rate
        else:
            bars.change[g, own, 0] -= rate
        if at == other:
            bars.change[g, 1 - own, 1] -= rate
        else:
            bars.change[g, own, 1] += rate
    is_fuller = False
    for k in range(world.begin[e], world.begin[e + 1]):
        g = bars.group[world.row[k]]
        for d in range(4):
            n = one if d < 2 else other
            more, bars.change[g, d % 2, d // 2] = bars.change[g, d % 2, d // 2], 0.0
            if more > 0.0 and bars.sent[g, d % 2, n] + more > bars.limit[g, d % 2, n]:
                is_fuller = True
    return is_fuller


def _best_of(world: World, scratch: _Scratch, e: int, above: float) -> tuple[int, float]:
    """Find worker and score of the best of an executor's moves in `gather`; worker -1 if none.

    Of equal ones the first worker. Of what scores more than `above` none is barred.
    """
    with_peers = _sum_by_place(world, scratch, e)
    at_home = scratch.with_worker[world.place[e]]
    at_node = scratch.with_node[world.node_of[world.place[e]]]
    listed = _fit(world, scratch, e, with_peers)
    best, best_score = -1, _NO_SCORE
    for i in range(listed):
        w = scratch.workers[i]
        asc = scratch.with_node[world.node_of[w]] - at_node
        near = scratch.with_worker[w] - at_home
        total = weigh(world.weight_node, world.weight_worker, asc, near) - world.doubt[e]
        if scratch.fits[i] and total > best_score - 2 * ROUNDING:
            new, old = _rounded(total / ROUNDING), _rounded(best_score / ROUNDING)
            if new > old or (new == old and w < best):
                bars = world.bars if total > above else None
                if bars is None or not _is_barred(world, bars, e, w):
                    best, best_score = w, total
                else:
                    bars.has_barred = True
    _clear(world, scratch, with_peers)
    return best, best_score


def score(world: World, executors: Ints, workers: Ints) -> Table:
    """Score the moves of all these executors to all these workers, executor by executor.

    Left out are those that stay on the worker and those between nodes that are taken; whether a
    move fits is not looked at.
    """
    require(world is not None)
    most, count = len(executors) * len(workers), 0
    who, to = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    asc, gain = np.empty(most), np.empty(most)
    with_worker, with_node = np.zeros(len(world.node_of)), np.zeros(len(world.roomiest))
    # The next row overwrites one that does not count, and there may be none after the last.
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
            nearer = with_node[n] - at_node
            near = with_worker[w] - at_home
            who[count], to[count], asc[count] = e, w, nearer
            gain[count] = weigh(world.weight_node, world.weight_worker, nearer, near)
            count += w != home and not (world.is_any_taken and _is_taken(world, own, n))
        for k in range(world.begin[e], world.begin[e + 1]):
            w = world.place[world.peer[k]]
            with_worker[w] = 0.0
            with_node[world.node_of[w]] = 0.0
    return _rows(who, to, asc, gain, count)


def gather(world: World, executors: Ints) -> Table:
    """List the moves that fit and bring an executor to a worker or a node of its peers.

    Executor by executor: to every worker of its peers, and to the roomiest worker of every other
    node of its peers. Of all moves that gain, the best is among these.
    """
    require(world is not None)
    scratch = _Scratch(len(world.node_of), len(world.roomiest))
    most = count = 0
    for e in executors:
        most += 2 * (world.begin[e + 1] - world.begin[e])
    who, to = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    asc, gain = np.empty(most), np.empty(most)
    for e in executors:
        home = world.place[e]
        own = world.node_of[home]
        with_peers = _sum_by_place(world, scratch, e)
        listed = _fit(world, scratch, e, with_peers)
        for i in range(listed):
            w = scratch.workers[i]
            if scratch.fits[i]:
                nearer = scratch.with_node[world.node_of[w]] - scratch.with_node[own]
                near = scratch.with_worker[w] - scratch.with_worker[home]
                total = weigh(world.weight_node, world.weight_worker, nearer, near)
                who[count], to[count], asc[count] = e, w, nearer
                gain[count] = total - world.doubt[e]
                count += 1
        _clear(world, scratch, with_peers)
    return _rows(who, to, asc, gain, count)


def _rows(who: Ints, to: Ints, asc: Floats, gain: Floats, count: int) -> Table:
    """Give the first rows of a table."""
    columns = np.asarray(who), np.asarray(to), np.asarray(asc), np.asarray(gain)
    return columns[0][:count], columns[1][:count], columns[2][:count], columns[3][:count]


def doubts(source: Ints, target: Ints, var: Floats, times: float, movable: Marks) -> Floats:
    """Compute `times` the deviation of all that each movable executor sends and receives."""
    require(len(source) == len(target) == len(var))
    found = np.zeros(len(movable))
    for k in range(len(source)):
        if source[k] != target[k]:
            found[source[k]] += var[k]
            found[target[k]] += var[k]
    for e in range(len(movable)):
        if not movable[e]:
            found[e] = 0.0
    deviations: Floats = times * np.sqrt(found)
    return deviations


def loudest(source: Ints, target: Ints, tps: Floats, begin: Ints) -> Floats:
    """Find the most that each executor sends to one other or gets from it, (E,).

    `begin` is as in `Pairs`.
    """
    require(len(source) == len(target) == len(tps))
    found = np.zeros(len(begin) - 1)
    for k in range(len(source)):
        if source[k] != target[k]:
            found[source[k]] = max(found[source[k]], tps[k])
            found[target[k]] = max(found[target[k]], tps[k])
    return np.asarray(found)


def bounds(world: World, movable: Marks) -> tuple[Floats, Floats]:
    """Bound what each executor can gain within its node, and elsewhere, (E,) each.

    It is what it would gain if there were room everywhere; minus infinity where it may not move.
    """
    require(world is not None and len(movable) == len(world.place))
    count = len(movable)
    within, elsewhere = np.full(count, -np.inf), np.full(count, -np.inf)
    scratch = _Scratch(len(world.node_of), len(world.roomiest))
    weight_node, weight_worker = world.weight_node, world.weight_worker
    for e in range(count):
        if not movable[e]:
            continue
        with_peers = _sum_by_place(world, scratch, e)
        home, own = world.place[e], world.node_of[world.place[e]]
        at_home, at_node = scratch.with_worker[home], scratch.with_node[own]
        # At first where it has no peer.
        near = weigh(weight_node, weight_worker, 0.0, -at_home)
        far = weigh(weight_node, weight_worker, -at_node, -at_home)
        for i in range(with_peers):
            w = scratch.workers[i]
            n = world.node_of[w]
            asc = scratch.with_node[n] - at_node if n != own else 0.0
            total = weigh(weight_node, weight_worker, asc, scratch.with_worker[w] - at_home)
            if n != own:
                far = total if total > far else far
            elif w != home and total > near:
                near = total
        _clear(world, scratch, with_peers)
        within[e] = near - world.doubt[e] + ROUNDING
        elsewhere[e] = far - world.doubt[e] + ROUNDING
    return np.asarray(within), np.asarray(elsewhere)


def best(world: World, bound: Floats, first: int, above: float, slack: float) -> Table:
    """List the moves of `gather` that tie for the best, if that scores more than `above`.

    Executor by executor, without those that are barred. Some that do not score more than `above`
    themselves may be missing.

    No move of an executor scores more than its `bound`, shape (E,). The loop lowers it, in place,
    to the score of each executor that it looks at. It skips an executor whose bound does not reach
    the best so far. The better the best move of the executor to look at `first`, the more others
    are skipped. `slack` is how much below the best still counts as the best, not less than what
    scores are rounded to.
    """
    require(world is not None and len(bound) == len(world.place) and 0 <= first < len(bound))
    scratch = _Scratch(len(world.node_of), len(world.roomiest))
    _, most = _best_of(world, scratch, first, above)
    bound[first] = most + ROUNDING
    least = max(above, most - 2 * slack)
    seen, count = np.empty(len(bound), dtype=np.int64), 0
    for e in range(len(bound)):
        if bound[e] > least:
            seen[count] = e
            count += 1
            if e != first:
                _, gain = _best_of(world, scratch, e, above)
                bound[e] = gain + ROUNDING
                if gain > most:
                    most, least = gain, max(above, gain - 2 * slack)
    looked = np.asarray(seen)[:count]
    who, to, asc, gains = gather(world, looked[np.asarray(bound)[looked] > least])
    allowed = gains > least
    for i in np.flatnonzero(allowed):
        allowed[i] = not is_barred(world, who[i], to[i])
    highest = gains[allowed].max(initial=-np.inf)
    tied = allowed & (gains >= highest - slack)
    return who[tied], to[tied], asc[tied], gains[tied]


def open_pairs(  # noqa: PLR0917
    world: World,
    movable: Marks,
    bound: Floats,
    near: Floats,
    far: Floats,
    loudest: Floats,
    least: float,
) -> list[Opening]:
    """List pairs of executors that gain together what neither gains alone.

    Each is the first move of the pair (executor, worker, ASC), the score of both moves, and the
    second executor. What bars the second once the first is there is not looked at.

    `bound`, `near` and `far` are as `View.bounds`: of the moves of `gather`, of all within the
    node, and of all to other nodes. An executor that may not move may have any. `loudest` is (E,),
    as the function of that name finds it. `least` is what two moves have to gain more than the
    better one of them.
    """
    require(world is not None and len(world.place) == len(movable) == len(bound))
    require(len(bound) == len(near) == len(far) == len(loudest))
    found: list[Opening] = []
    scratch = _Scratch(len(world.node_of), len(world.roomiest))
    weight_node, weight_worker = world.weight_node, world.weight_worker
    most_missed = weigh(weight_node, weight_worker, 2.0, 2.0)
    for one in range(len(bound)):
        if not movable[one] or bound[one] + most_missed * loudest[one] <= least:
            continue
        to, first = _NOT_LOOKED_AT, 0.0
        home_one = world.place[one]
        node_one = world.node_of[home_one]
        for k in range(world.begin[one], world.begin[one + 1]):
            # Both would go to one worker. Either score counts their own traffic as if the other
            # one stayed, and so the two together miss some of it. For nodes as for workers, they
            # miss at most twice that traffic where both are together now, else at most once. The
            # lower score and what is missed must exceed `least`, or else one move does as well.
            other, tps = world.peer[k], world.tps[world.row[k]]
            if to == -1 or bound[one] + most_missed * tps <= least:
                continue
            home_other = world.place[other]
            node_other = world.node_of[home_other]
            at_workers = 1.0 + _one_if(home_one == home_other)
            if node_one == node_other:
                # Nothing is missed of nodes where they stay on theirs, and all of it else.
                missable = tps * weigh(weight_node, weight_worker, 0.0, at_workers)
                stay = min(bound[one], near[one], near[other]) + missable
                missable = tps * weigh(weight_node, weight_worker, 2.0, at_workers)
                go = min(bound[one], far[one], far[other]) + missable
                most = max(stay, go)
            else:
                missable = tps * weigh(weight_node, weight_worker, 1.0, at_workers)
                most = min(bound[one], max(near[other], far[other])) + missable
            if most <= least:
                continue
            if to == _NOT_LOOKED_AT:
                to, first = _best_of(world, scratch, one, -_NO_SCORE)
                bound[one] = first + ROUNDING
            if to == -1 or not movable[other]:
                continue
            there = world.node_of[to]
            at_nodes = 1.0 + _one_if(node_one == node_other)
            at_nodes -= _one_if(node_one == there)
            at_nodes -= _one_if(node_other == there)
            missed = tps * weigh(weight_node, weight_worker, at_nodes, at_workers)
            second = near[other] if node_other == there else far[other]  # at most
            if min(first, second, first + second) + missed <= least:
                continue
            second = _score_of(world, other, to)[1] - world.doubt[other]
            together = first + second + missed
            if together <= least + max(first, second, 0.0) or not may_move(world, other, to):
                continue
            goes, comes = (int(other), one) if second > first else (one, int(other))
            if _takes_both(world, one, other, to) and not is_barred(world, goes, to):
                found.append((goes, int(to), _score_of(world, goes, to)[0], together, comes))
    return found


def _score_of(world: World, e: int, worker: int) -> tuple[float, float]:
    """Compute ASC and score of one move; whether it may be made is not looked at."""
    home, own, there = world.place[e], world.node_of[world.place[e]], world.node_of[worker]
    asc = near = 0.0
    for k in range(world.begin[e], world.begin[e + 1]):
        w, tps = world.place[world.peer[k]], world.tps[world.row[k]]
        n = world.node_of[w]
        asc += tps * (_one_if(n == there) - _one_if(n == own))
        near += tps * (_one_if(w == worker) - _one_if(w == home))
    return asc, weigh(world.weight_node, world.weight_worker, asc, near)
