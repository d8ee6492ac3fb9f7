"""Lets a policy decide among what is allowed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision, Move, Outcome, Policy, Veto
from controller.core.picture import Picture
from controller.core.veto import Vetoes, last_in_worker
from controller.core.view import kernels
from controller.core.view.view import Moves, View, rounded
from migration.model import Edge


def choose_each(
    policy: Policy,
    pictures: Mapping[str, Picture | Veto],  # by topology; a veto is the decision
    vetoes: Mapping[str, Vetoes],
    limits: Limits,
    free_moves: int,  # how many more moves the cluster may have under way
    *,
    may_exceed: bool,  # whether an exchange may begin that has more: nothing is under way
    # Which topology is first, modulo their number: with another one in each cycle, none takes all
    # the moves for ever.
    first: int,
    begins: bool,  # whether the moves will begin; advice takes no move from another topology
) -> dict[str, Decision]:
    """Decide topology by topology, as long as the cluster may have one more move."""
    decisions: dict[str, Decision] = {}
    turns = list(pictures.items())
    start = first % max(len(turns), 1)
    for topology, made in turns[start:] + turns[:start]:
        if isinstance(made, Veto):
            decision = Decision(made.outcome, made.reason)
        elif free_moves <= 0:
            reason = "other topologies take all the moves that the cluster may have at a time"
            decision = Decision(Outcome.MOVE_IN_FLIGHT, reason)
        else:
            limited = replace(limits, max_moves=free_moves, keep_workers=True)
            decision = choose(policy, made.cluster, made.snapshot, limited, vetoes[topology])
            count = len(decision.moves)
            if count > free_moves and not may_exceed:
                reason = f"an exchange of {count} moves waits until no other is under way"
                decision = Decision(Outcome.MOVE_IN_FLIGHT, f"{reason}; {decision.reason}")
            elif begins and count:
                free_moves, may_exceed = free_moves - count, False
        decisions[topology] = decision
    return decisions


def choose(
    policy: Policy, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, vetoes: Vetoes
) -> Decision:
    """Decide on up to `limits.max_moves` moves that are allowed together, or on a whole exchange.

    Without any, the decision is the veto on the policy's best move, if a veto stands in its way. A
    move that would empty a worker gives way to the next best.
    """
    if vetoes.staying is None:
        return _under_vetoes(policy, cluster, snapshot, limits, vetoes)
    staying = dict(vetoes.staying)
    chosen, suffix = Decision(Outcome.NOTHING_TO_GAIN, ""), ""
    while True:
        decision = _under_vetoes(policy, cluster, snapshot, limits, vetoes)
        count = len(chosen.moves)
        # The moves chosen so far stay; a decision that does not continue them waits for a cycle.
        if decision.moves[:count] != chosen.moves or len(decision.moves) == count:
            return replace(chosen, reason=chosen.reason + suffix) if count else decision
        for move in decision.moves[count : None if decision.is_exchange else limits.max_moves]:
            if staying.get(move.source, 0) <= 1:
                break
            staying[move.source] -= 1
            warnings = tuple(dict.fromkeys((*chosen.warnings, *decision.warnings)))
            chosen = replace(decision, moves=(*chosen.moves, move), warnings=warnings)
        else:
            return chosen
        if decision.is_exchange:
            chosen, staying = Decision(Outcome.NOTHING_TO_GAIN, ""), dict(vetoes.staying)
        last = last_in_worker(move.executor, move.source)
        vetoes, suffix = vetoes.joined(Vetoes({move.executor: last})), f", but {last.reason}"


def _under_vetoes(
    policy: Policy, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, vetoes: Vetoes
) -> Decision:
    closed = _with_reasons(cluster.closed, cluster.workers, vetoes.workers)
    usable = cluster if closed == cluster.closed else replace(cluster, closed=closed)
    index = row_of(snapshot.executors)
    movable = snapshot.holding(
        {index[name]: vetoes.executors[name].reason for name in vetoes.executors if name in index}
    )
    allowed = policy(usable, movable, limits)
    if allowed.moves or (usable is cluster and movable is snapshot):
        return allowed
    if not limits.explain:
        kept = (name for name, veto in vetoes.executors.items() if veto.keeps_worker)
        last = [index[name] for name in kept if name in index]
        if not last or not _may_replace(View.of(usable, movable, limits), np.array(last)):
            return allowed
    # A question of "what if" must not touch a policy's memory: such a policy has a twin without.
    unbound: Policy = getattr(policy, "memoryless", policy)
    free = unbound(cluster, snapshot, replace(limits, max_moves=1))
    if not free.moves:
        return free
    for wanted in free.moves:  # several only of an exchange
        veto = vetoes.executors.get(wanted.executor) or vetoes.workers.get(wanted.target)
        if veto is not None:
            break
    if veto is None:  # only a policy that weighs all places together wants a move that is allowed
        return allowed
    if veto.keeps_worker:
        instead = _replacement(View.of(usable, movable, limits), wanted)
        # A pair of moves may take back what a policy with a memory did on its way.
        has_seen = getattr(policy, "has_seen", lambda _: False)
        if instead is not None and not has_seen(instead.applied(cluster, snapshot)):
            return instead
    return Decision(veto.outcome, f"{veto.reason}, but {free.reason}", (), free.warnings)


def _may_replace(view: View, last: Ints) -> bool:
    """Tell whether a replacement for one of these last executors may gain.

    An executor that comes to keep a worker alive makes it no better for the last one to leave.
    """
    place, count = view.snapshot.place, len(view.cluster.workers)
    workers = place[last]
    leaving, coming = view.score(last, np.arange(count)), _replacements(view, workers)
    most = kernels.highest(place[leaving.executors], leaving.score, count)
    most += kernels.highest(coming.workers, coming.score, count)
    return bool((most[workers] > 2 * view.threshold_tps).any())


def _replacements(view: View, workers: Ints) -> Moves:
    """List the executors that may come to keep workers alive."""
    fed = shuffle_fed(view.snapshot.edges, view.snapshot.component_of)
    return view.fitting(view.score(np.flatnonzero(view.movable & ~fed), workers))


def _replacement(view: View, wanted: Move) -> Decision | None:
    """Find the executor that keeps a worker alive so that its last one can go, if both gain."""
    last = view.snapshot.executors.index(wanted.executor)
    worker = view.cluster.workers.index(wanted.source)
    moves = _replacements(view, np.array([worker]))
    if not moves.executors.size:
        return None
    best = int(np.argmax(rounded(moves.score)))
    # A score looks at nothing but the placement.
    there = replace(view, snapshot=view.snapshot.moved(int(moves.executors[best]), worker))
    leaving = there.score(np.array([last]), np.array([view.cluster.workers.index(wanted.target)]))
    both = float(moves.score[best] + leaving.score[0])
    if both <= 2 * view.threshold_tps:
        return None
    name = view.snapshot.executors[moves.executors[best]]
    source = view.cluster.workers[view.snapshot.place[moves.executors[best]]]
    reason = (
        f"{name} from {source} to {wanted.source} takes the place of {wanted.executor}, which "
        f"may then go to {wanted.target}: {both:.4g} {view.limits.gain_unit} by both"
    )
    move = Move(name, source, wanted.source, float(moves.asc_tps[best]))
    return Decision(Outcome.WOULD_MOVE, reason, (move,))


@lru_cache(maxsize=16)
def shuffle_fed(edges: tuple[Edge, ...], component_of: tuple[str, ...]) -> NDArray[np.bool_]:
    """Mark executors, shape (E,), whose traffic follows their place: a shuffle prefers near tasks.

    One that is idle far from its spouts is busy as soon as it stands beside one.
    """
    fed = {edge.target for edge in edges if "shuffle" in edge.grouping.lower()}
    return np.array([component in fed for component in component_of], dtype=np.bool_)


@lru_cache(maxsize=16)
def row_of(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: i for i, name in enumerate(names)}


def _with_reasons(
    reasons: tuple[str | None, ...], names: tuple[str, ...], vetoes: Mapping[str, Veto]
) -> tuple[str | None, ...]:
    """Add vetoes where there is no reason yet."""
    if not vetoes:
        return reasons
    added = (vetoes[name].reason if name in vetoes else None for name in names)
    return tuple(reason or more for reason, more in zip(reasons, added, strict=True))
