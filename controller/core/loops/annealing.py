"""The loops of simulated annealing; `policies/gather/anneal.py` has what they are for."""

import math

import numpy as np

from controller.core.cluster import Floats, Ints, Marks
from controller.core.loops import require

MOST_IN_GROUP = 24
# Tries for each executor in a round.
TRIES = 10
# After a round the price of a core too much rises by a step if too many tries had a full worker.
# That is a share above OFTEN; below SELDOM it falls by one. It stays within these times the first.
# Where executors are alike, full workers are above by so little that only a high price empties the
# last.
PRICE_STEP, PRICE_LEAST, PRICE_MOST = 1.05, 0.05, 10_000.0
OFTEN, SELDOM = 0.8, 0.5
# The same loads in another order add up to a sum that differs by less.
ROUNDING_CORES = 1e-12
# How many numbers are drawn at once.
_WORDS = 4096


class Chance:
    """Random numbers, as those of `numpy.random.RandomState`, one at a time."""

    def __init__(self, seed: int) -> None:
        self.source = np.random.RandomState(seed)
        self.words = np.zeros(0, np.uint32)
        self.at = 0

    def _word(self) -> int:
        if self.at == len(self.words):
            self.words = self.source.randint(0, 2**32, _WORDS, np.uint32)
            self.at = 0
        self.at += 1
        return self.words[self.at - 1]  # type: ignore[no-any-return]

    def share(self) -> float:
        """Draw a number from 0 up to 1."""
        high, low = self._word() >> 5, self._word() >> 6
        return (high * 67108864.0 + low) / 9007199254740992.0

    def below(self, count: int) -> int:
        """Draw a whole number from 0 up to a count, which is below 2**32."""
        if count < 2:
            return 0
        mask = count - 1
        mask |= mask >> 1
        mask |= mask >> 2
        mask |= mask >> 4
        mask |= mask >> 8
        mask |= mask >> 16
        drawn = self._word() & mask
        while drawn >= count:
            drawn = self._word() & mask
        return drawn


class Board:
    """The input of the search.

    As in `Problem` and `Graph`, some also as indices. `pull` is (K,), as one of `Problem.pulls`.
    `hop_tps` is (K,), at both ends together, as in `HopRates`. `far` is (E,), what an executor uses
    if all its peers are on other nodes. `held` is (S, E), what it keeps in each kind of space, as
    cores. `space_of` is (S, W): of each kind, the space of the executors of each worker.
    `costs` is (3, 3): what a tuple/s gains that comes to a node (row 2) or leaves it (row 0), and
    to a worker (column). `saved` is (2, 2): what one saves that is within a node (row 1), and
    within a worker. `within` is whether executors stay on their nodes. `stray`, `together` and
    `back` are shares of trips.
    """

    def __init__(
        self,
        *,
        first: Ints,
        peers: Ints,
        pull: Floats,
        hop_tps: Floats,
        loudest_pull: Floats,
        start: Ints,
        far: Floats,
        held: Floats,
        space_of: Ints,
        is_movable: Marks,
        movable: Ints,
        is_open: Marks,
        open: Ints,
        node_of: Ints,
        unit_of: Ints,
        costs: Floats,
        saved: Floats,
        price_tps: float,
        tolerance_cores: float,
        within: bool,
        stray: float,
        together: float,
        back: float,
    ) -> None:
        contiguous = np.ascontiguousarray
        self.first, self.peers, self.pull = contiguous(first), contiguous(peers), contiguous(pull)
        self.hop_tps, self.loudest_pull = contiguous(hop_tps), contiguous(loudest_pull)
        self.start, self.far, self.held = contiguous(start), contiguous(far), contiguous(held)
        self.space_of, self.spaces = contiguous(space_of), int(space_of.max(initial=-1)) + 1
        self.is_movable, self.movable = contiguous(is_movable), contiguous(movable)
        self.is_open, self.open = contiguous(is_open), contiguous(open)
        self.node_of, self.unit_of = contiguous(node_of), contiguous(unit_of)
        self.costs, self.saved = contiguous(costs), contiguous(saved)
        self.price_tps, self.tolerance_cores, self.within = price_tps, tolerance_cores, within
        self.stray, self.together, self.back = stray, together, back
        self.hops_cost = self.saved[1, 1] > 0.0
        executors, workers = len(self.start), len(self.node_of)
        require(executors == len(self.far) == len(self.loudest_pull) == len(self.is_movable))
        require(executors + 1 == len(self.first) and executors == self.held.shape[1])
        require(len(self.peers) == len(self.pull) == len(self.hop_tps))
        require(workers == len(self.unit_of) == len(self.is_open) == self.space_of.shape[1])
        require(len(self.held) == len(self.space_of))
        require(len(self.costs) == self.costs.shape[1] == 3)
        require(len(self.saved) == self.saved.shape[1] == 2)
        require(len(self.movable) > 0 and len(self.open) > 0)


class _Walk:
    """Where executors are, and what is left, in cores: (1, U) of CPU and (S, P) of spaces.

    What is left is negative where something is too full. Of executors that are tried elsewhere
    together, `who` goes from `origin` to `goal`; only the first entries count.
    """

    def __init__(self, place: Ints, cpu: Floats, space: Floats, seed: int) -> None:
        self.place, self.cpu, self.space = place, cpu, space
        self.chance = Chance(seed)
        self.who = np.empty(2 * MOST_IN_GROUP, np.int64)
        self.origin = np.empty(2 * MOST_IN_GROUP, np.int64)
        self.goal = np.empty(2 * MOST_IN_GROUP, np.int64)


def _gain(board: Board, walk: _Walk, e: int, to: int) -> float:
    """Compute by how much less a placement costs after a move."""
    at = walk.place[e]
    here, there = board.node_of[at], board.node_of[to]
    gain = 0.0
    if to == board.start[e]:
        gain = board.price_tps
    if at == board.start[e]:
        gain -= board.price_tps
    for k in range(board.first[e], board.first[e + 1]):
        w = walk.place[board.peers[k]]
        n, node, worker = board.node_of[w], 1, 1
        node += n == there
        node -= n == here
        worker += w == to
        worker -= w == at
        gain += board.pull[k] * board.costs[node, worker]
    return gain


def _gather(board: Board, walk: _Walk, begin: int, goal: int) -> int:
    """Take along peers of the executor at `begin` on its worker, then theirs; gives the new end."""
    end, most = begin + 1, begin + 1
    if walk.chance.share() < board.together:
        most += walk.chance.below(MOST_IN_GROUP)
    at = walk.place[walk.who[begin]]
    # A peer comes along from this share of the loudest pair's traffic on: usually from a small one.
    loud = walk.chance.share()
    loud *= loud
    i = begin
    while i < end < most:
        e = walk.who[i]
        for k in range(board.first[e], board.first[e + 1]):
            peer = board.peers[k]
            if end == most or board.pull[k] < loud * board.loudest_pull[e]:
                continue
            if walk.place[peer] != at or not board.is_movable[peer]:
                continue
            if not _goes(walk, begin, end, peer):
                walk.who[end] = peer
                end += 1
        i += 1
    for j in range(begin, end):
        walk.goal[j] = goal
    return end


def _goes(walk: _Walk, begin: int, end: int, e: int) -> bool:
    """Check whether an executor goes along already."""
    for j in range(begin, end):  # noqa: SIM110  # a generator is no loop
        if walk.who[j] == e:
            return True
    return False


def _another_on(board: Board, walk: _Walk, worker: int, but: int) -> int:
    """Draw an executor that may leave a worker, but not `but`; -1 if there is none."""
    count = len(board.movable)
    at = walk.chance.below(count)
    for _ in range(count):
        e = board.movable[at]
        if walk.place[e] == worker and e != but:
            return e  # type: ignore[no-any-return]
        at += 1
        if at == count:
            at = 0
    return -1


def _roomiest(board: Board, walk: _Walk) -> int:
    """Find the open worker with the most CPU left, of equal ones the first."""
    found = board.open[0]
    for w in board.open:
        if walk.cpu[0, board.unit_of[w]] > walk.cpu[0, board.unit_of[found]]:
            found = w
    return found  # type: ignore[no-any-return]


def _draw(board: Board, walk: _Walk, is_full: bool) -> int:
    """Draw a trip: which executors go where; gives how many, perhaps 0."""
    e = board.movable[walk.chance.below(len(board.movable))]
    first = board.first[e]
    peer = board.peers[first + walk.chance.below(board.first[e + 1] - first)]
    at, to = walk.place[e], walk.place[peer]
    if walk.chance.share() < board.stray:
        to = _roomiest(board, walk) if is_full else walk.chance.below(len(board.node_of))
    if to == at or not board.is_open[to]:
        return 0
    if board.within and board.node_of[to] != board.node_of[at]:
        return 0
    walk.who[0] = e
    end = _gather(board, walk, 0, to)
    if board.is_open[at] and walk.chance.share() < board.back:
        # Not the peer: e goes where it is.
        other = _another_on(board, walk, to, peer)
        if other >= 0:
            walk.who[end] = other
            end = _gather(board, walk, end, at)
    return end


def shift(  # noqa: PLR0917
    left: Floats, row: int, source: int, target: int, came: float, went: float
) -> float:
    """Take load from one place to another, and give how much more of it is too much.

    A row of `left` is what is left in each place, negative where it is too full. `came` is what the
    target uses more, and `went` what the source uses less; of one place they are added up.
    """
    if source == target or came < 0.0 or went < 0.0:
        before = _too_much(left, row, source, target)
        left[row, source] += went
        left[row, target] -= came
        return _too_much(left, row, source, target) - before
    # What is too much there from now on, less what was too much here until now.
    more = max(came - max(left[row, target], 0.0), 0.0)
    more -= max(min(went, -left[row, source]), 0.0)
    left[row, source] += went
    left[row, target] -= came
    return more  # type: ignore[no-any-return]


def _too_much(left: Floats, row: int, one: int, other: int) -> float:
    found = max(-left[row, one], 0.0)
    return found if one == other else found + max(-left[row, other], 0.0)  # type: ignore[no-any-return]


def _shift(board: Board, walk: _Walk, e: int, to: int) -> float:
    """Move one; gives by how many cores more CPUs and spaces are too full.

    At both ends of what it sends and receives, hops are saved where it comes to, and no longer
    where it was.
    """
    at, came = walk.place[e], board.far[e]
    went = came
    if board.hops_cost:
        for k in range(board.first[e], board.first[e + 1]):
            w = walk.place[board.peers[k]]
            n, node, worker = board.node_of[w], 0, 0
            node += n == board.node_of[at]
            worker += w == at
            went -= board.hop_tps[k] * board.saved[node, worker]
            node = worker = 0
            node += n == board.node_of[to]
            worker += w == to
            came -= board.hop_tps[k] * board.saved[node, worker]
    more = shift(walk.cpu, 0, board.unit_of[at], board.unit_of[to], came, went)
    for s in range(len(board.held)):
        one, other = board.space_of[s, at], board.space_of[s, to]
        more += shift(walk.space, s, one, other, board.held[s, e], board.held[s, e])
    walk.place[e] = to
    return more


def _excess(walk: _Walk) -> float:
    """Add up what is too much."""
    cpu = space = 0.0
    for u in range(walk.cpu.shape[1]):
        cpu += max(-walk.cpu[0, u], 0.0)
    for s in range(len(walk.space)):
        for w in range(walk.space.shape[1]):
            space += max(-walk.space[s, w], 0.0)
    return cpu + space


def anneal(  # noqa: PLR0917
    board: Board,
    place: Ints,
    cpu: Floats,
    space: Floats,
    rounds: int,
    hot: float,
    cold: float,
    excess_price: float,
    seed: int,
) -> Ints:
    """Search for a placement; gives the best one met.

    `cpu` is (1, U) and `space` (S, P), what is left, in cores. Temperatures are in weighted t/s,
    and `excess_price` is the first price of a core too much. `place` and what is left change.
    """
    require(board is not None and len(place) == len(board.start) and len(cpu) == 1)
    require(len(space) == len(board.held) and space.shape[1] >= board.spaces)
    walk = _Walk(place, cpu, space, seed)
    price = excess_price
    tries = TRIES * len(board.movable)
    excess = best_excess = _excess(walk)
    gained = best_gained = 0.0
    best = np.array(place)
    for i in range(rounds):
        heat = hot * math.pow(cold / hot, float(i) / rounds)
        full = 0
        for _ in range(tries):
            is_full = excess > board.tolerance_cores
            full += is_full
            end = _draw(board, walk, is_full)
            gain = more = 0.0
            for j in range(end):
                e = walk.who[j]
                walk.origin[j] = walk.place[e]
                gain += _gain(board, walk, e, walk.goal[j])
                more += _shift(board, walk, e, walk.goal[j])
            worth = gain - price * more
            # A loss is kept by chance, the seldomer the greater it is and the colder it has become.
            if worth < 0 and walk.chance.share() >= math.exp(worth / heat):
                for j in range(end):
                    _shift(board, walk, walk.who[j], walk.origin[j])
                continue
            gained += gain
            excess += more
            if excess > best_excess + board.tolerance_cores:
                continue
            if excess > best_excess - board.tolerance_cores and gained <= best_gained + 1e-9:
                continue
            # `excess` has gathered rounding errors, so the room that is left has the last word.
            excess = _excess(walk)
            if excess <= best_excess + ROUNDING_CORES:
                best_excess, best_gained = min(excess, best_excess), gained
                best[:] = place
        if full > OFTEN * tries:
            price = min(price * PRICE_STEP, excess_price * PRICE_MOST)
        elif full < SELDOM * tries:
            price = max(price / PRICE_STEP, excess_price * PRICE_LEAST)
    return np.asarray(best)
