"""Tells quickly that nothing would move, for runs in which mostly nothing does.

It errs to one side only: where it says so, the policy moves nothing; where it does not, the policy
has to be asked. It looks at the very numbers that a `View` has; only what they are compared with is
a little less, since all traffic comes out of a sum in another order.
"""

from typing import NamedTuple

import numpy as np

from controller.core.classify import TIE, TOLERANCE_CORES, Limits, worker_sums
from controller.core.cluster import Cluster, Floats, Ints
from controller.core.compiled import compiled
from controller.core.view.kernels import (
    ROUNDING,
    KernelWorld,
    Known,
    Marks,
    Rows,
    index,
    open_pairs,
    roomiest,
)
from controller.core.view.view import FILL_FRAC


class PolicyRules(NamedTuple):
    """What a policy is told, for loops; as in `Limits` and `Cluster`."""

    is_literal: bool  # the policy is `otd`; else it is `gather`, as it decides without a target
    high_frac: float
    low_frac: float
    weight_node: float
    weight_worker: float
    gain_frac: float  # a move for traffic must gain more than this share of all traffic
    gain_tps: float  # ... plus this
    capacity_cores: Floats  # (W,)
    node_of: Ints  # (W,)
    nodes: int  # how many there are

    @classmethod
    def of(
        cls, cluster: Cluster, limits: Limits, executors: int, *, is_literal: bool
    ) -> "PolicyRules":
        """Take from limits and places what loops look at; `executors` is how many there are."""
        given_tps = limits.gain_tps
        return cls(
            is_literal=is_literal,
            high_frac=float(limits.high_frac),
            low_frac=float(limits.low_frac),
            weight_node=float(limits.weight_node),
            weight_worker=float(limits.weight_worker),
            gain_frac=limits.threshold_tps(1.0, executors) if given_tps is None else 0.0,
            gain_tps=float(given_tps or 0.0),
            capacity_cores=np.ascontiguousarray(cluster.capacity_cores),
            node_of=np.ascontiguousarray(cluster.node_of),
            nodes=len(cluster.nodes),
        )


class PlacementRules(NamedTuple):
    """A placement, and what it allows as long as it stands."""

    place: Ints  # (E,), worker of each executor
    is_allowed: Marks  # (E,), executors that may move
    is_open: Marks  # (W,), workers that something may move to


class Talk(NamedTuple):
    """Who talks to whom: pairs as in `Traffic`, and their index by executor as in `Pairs`."""

    source: Ints  # (P,)
    target: Ints  # (P,)
    begin: Ints
    peer: Rows
    row: Rows


class Load(NamedTuple):
    talk: Talk
    tps: Floats  # (P,)
    cores: Floats  # (E,)


class _Gains(NamedTuple):
    """What gains are compared with.

    Where a policy asks for more than a threshold, more than `least` may be enough; two that gain
    more than `least_of_two` may be enough.
    """

    least: float
    least_of_two: float


@compiled
def no_move_possible(now: Load, rules: PolicyRules, at: PlacementRules, rests: Marks) -> bool:
    """Tell whether a policy would move nothing, for sure; `rests`, (E,), marks cool-downs."""
    if not len(now.cores):
        return True
    load = _of_those_who_talk(now)
    total = load.tps.sum()
    threshold = rules.gain_frac * total + rules.gain_tps
    least = max(threshold, TIE * total)
    # Scores are sums of traffic by weights; looking for the best, they are rounded as well.
    slack = TIE * max(total, 1.0) * max(1.0, rules.weight_node + rules.weight_worker)
    gains = _Gains(least - slack / 2 - ROUNDING, 2 * threshold - slack - 2 * ROUNDING)
    used = worker_sums(at.place, load.cores, len(rules.node_of))
    room = rules.high_frac * rules.capacity_cores - used
    world = _world(load, rules, at.place, room, at.is_allowed & ~rests, at.is_open)
    is_hot = (room < -TOLERANCE_CORES).any()
    if is_hot and (rules.is_literal or _may_relieve(world, room)):
        return False
    if rules.is_literal:
        return bool(_highest_asc(world, _lowest(world, rules)).max() <= gains.least)
    known, bound = _best_moves(world)
    if known.score.max() > gains.least:
        return False
    return not len(open_pairs(world, _both(known, bound), known, gains.least_of_two))


@compiled
def _of_those_who_talk(now: Load) -> Load:
    """Leave out pairs that sent nothing; a policy does not see them."""
    silent = 0
    for k in range(len(now.tps)):
        silent += now.tps[k] == 0
    if not silent:
        return now
    used = np.flatnonzero(now.tps)
    source, target = now.talk.source[used], now.talk.target[used]
    begin, peer, row = index(source, target, len(now.cores))
    return Load(Talk(source, target, begin, peer, row), now.tps[used], now.cores)


@compiled
def _world(  # noqa: PLR0917
    load: Load, rules: PolicyRules, place: Ints, room: Floats, movable: Marks, is_open: Marks
) -> KernelWorld:
    """Lay out what a view does; `room`, (W,), is in cores below the upper limit."""
    kept_free = (1 - FILL_FRAC) * rules.high_frac * rules.capacity_cores
    return KernelWorld(
        load.talk.begin,
        load.talk.peer,
        load.talk.row,
        load.tps,
        place,
        load.cores,
        np.zeros(len(place)),
        movable,
        rules.node_of,
        np.where(is_open, room - kept_free + TOLERANCE_CORES, -np.inf),
        roomiest(room, is_open, rules.node_of, rules.nodes),
        np.zeros(0, dtype=np.int64),
        rules.weight_node,
        rules.weight_worker,
    )


@compiled
def _may_relieve(world: KernelWorld, room: Floats) -> bool:
    """Tell whether an executor of a hot worker fits elsewhere."""
    most = _most_room(room, world)
    for e in range(len(world.place)):
        fits = world.movable[e] and world.cores[e] - 2 * TOLERANCE_CORES <= most
        if fits and room[world.place[e]] < -TOLERANCE_CORES and world.cores[e] > 0:
            return True
    return False


@compiled
def _most_room(room: Floats, world: KernelWorld) -> float:
    most = -np.inf
    for w in range(len(room)):
        if world.room[w] > -np.inf:  # is open
            most = max(most, room[w])
    return most


@compiled
def _best_moves(world: KernelWorld) -> tuple[Known, Floats]:
    """Find the best move of every executor for `Known`, and a bound of what its moves score.

    All workers are looked at almost without a branch: O(pairs + E·W), but up to some hundred
    workers quicker than to note for each executor where it may be worth to go.
    """
    with_worker, with_node = np.zeros(len(world.node_of)), np.zeros(len(world.roomiest))
    is_roomiest = np.zeros(len(with_worker), dtype=np.bool_)
    is_roomiest[world.roomiest[world.roomiest >= 0]] = True
    to = np.full(len(world.place), -1, dtype=np.int64)
    best, loudest_tps = np.full(len(to), -np.inf), np.zeros(len(to))
    bound = best.copy()
    for e in range(len(to)):
        if not world.movable[e]:
            continue
        for k in range(world.begin[e], world.begin[e + 1]):
            at, said = np.uint64(world.place[world.peer[k]]), world.tps[world.row[k]]
            with_worker[at] += said
            with_node[np.uint64(world.node_of[at])] += said
            loudest_tps[e] = max(loudest_tps[e], said)
        home, cores, most = world.place[e], world.cores[e], -np.inf
        own = world.node_of[home]
        at_home, at_node = with_worker[home], with_node[own]
        for w in range(len(with_worker)):
            n = np.uint64(world.node_of[w])
            near, here = with_worker[w], with_node[n]
            total = world.weight_node * (here - at_node) + world.weight_worker * (near - at_home)
            total = total if (cores <= world.room[w]) & (w != home) else -np.inf
            most = max(most, total)
            counts = (near > 0) | (is_roomiest[w] & (here > 0) & (n != own))
            total = total if counts else -np.inf
            if total > best[e] and np.rint(total / ROUNDING) > np.rint(best[e] / ROUNDING):
                to[e], best[e] = w, total
            with_worker[w] = 0.0
        with_node[:] = 0.0
        bound[e] = most + ROUNDING
    return Known(to, best, loudest_tps), bound


@compiled
def _both(known: Known, bound: Floats) -> Floats:
    """Make bounds as `open_pairs` wants them."""
    both = np.empty((2, len(bound)))
    both[0], both[1] = known.score + ROUNDING, bound
    return both


@compiled
def _lowest(world: KernelWorld, rules: PolicyRules) -> Ints:
    """Find the low open worker with least load of each node; -1 where there is none."""
    found, least = np.full(rules.nodes, -1, dtype=np.int64), np.full(rules.nodes, np.inf)
    load = worker_sums(world.place, world.cores, len(rules.node_of))
    for w in range(len(load)):
        capacity, n = rules.capacity_cores[w], rules.node_of[w]
        is_low = load[w] <= rules.low_frac * capacity + TOLERANCE_CORES
        load_frac = np.rint(load[w] / capacity * 1e9)  # as `rounded` does
        if is_low and world.room[w] > -np.inf and load_frac < least[n]:
            found[n], least[n] = w, load_frac
    return found


@compiled
def _highest_asc(world: KernelWorld, to: Ints) -> Floats:
    """Find the highest ASC of each executor to one of some workers, one a node, but its own."""
    found, with_node = np.full(len(world.place), -np.inf), np.zeros(len(to))
    for e in np.flatnonzero(world.movable):
        home = world.place[e]
        for k in range(world.begin[e], world.begin[e + 1]):
            with_node[world.node_of[world.place[world.peer[k]]]] += world.tps[world.row[k]]
        at_node = with_node[world.node_of[home]]
        for n in range(len(to)):
            if to[n] >= 0 and to[n] != home:
                found[e] = max(found[e], with_node[n] - at_node)
            with_node[n] = 0.0
    return found
