"""Lets a policy decide among what is allowed."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot, Spare
from controller.core.decision import Decision, Outcome, Policy, Veto
from controller.core.picture import Picture
from controller.core.veto import Ruled, Vetoes


def choose_each(
    policy: Policy,
    pictures: Mapping[str, Picture | Veto],  # by topology; a veto is the decision
    ruled: Mapping[str, Ruled],
    limits: Limits,
    free_moves: int,  # how many more moves the cluster may have under way
    *,
    may_exceed: bool,  # whether an exchange may begin that has more: nothing is under way
    # Which topology is first, modulo their number: with another one in each cycle, none takes all
    # the moves for ever.
    first: int,
    begins: Collection[str],  # topologies whose moves begin; advice takes none from another
) -> dict[str, Decision]:
    """Decide topology by topology, as long as the cluster may have one more move."""
    decisions: dict[str, Decision] = {}
    opened: dict[str, str] = {}  # nodes, and the topology that opens a slot there
    turns = list(pictures.items())
    start = first % max(len(turns), 1)
    for topology, made in turns[start:] + turns[:start]:
        if isinstance(made, Veto):
            decision = Decision(made.outcome, made.reason)
        elif free_moves <= 0:
            reason = "other topologies take all the moves that the cluster may have at a time"
            decision = Decision(Outcome.MOVE_IN_FLIGHT, reason)
        else:
            limited, cluster = replace(limits, max_moves=free_moves), made.cluster
            spare = cluster.spare
            if isinstance(spare, Spare) and spare.node in opened:
                why = f"{spare.worker} is on a host where {opened[spare.node]} opens one"
                cluster = replace(cluster, spare=why)
            decision = choose(policy, cluster, made.snapshot, limited, ruled[topology])
            decision = decision.cut_to(free_moves)
            count = len(decision.moves)
            if count > free_moves and not may_exceed:
                reason = f"an exchange of {count} moves waits until no other is under way"
                decision = Decision(Outcome.MOVE_IN_FLIGHT, f"{reason}; {decision.reason}")
            elif topology in begins and count:
                free_moves, may_exceed = free_moves - count, False
                if isinstance(spare, Spare) and _opens(decision, spare):
                    opened[spare.node] = made.view.publication.name
        decisions[topology] = decision
    return decisions


def choose(
    policy: Policy, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, ruled: Ruled
) -> Decision:
    """Decide among what the vetoes leave of a cluster and a snapshot.

    Without a move, the decision is the veto on the policy's best one, if a veto stands in its way.
    No slot is opened for what a worker has room for once a veto has passed by itself.
    """
    closed, movable = ruled.now
    usable = cluster if closed == cluster.closed else replace(cluster, closed=closed)
    allowed = policy(usable, movable, limits)
    # A question of "what if" must not touch a policy's memory: such a policy has a twin without.
    unbound: Policy = getattr(policy, "memoryless", policy)
    if isinstance(cluster.spare, Spare) and _opens(allowed, cluster.spare):
        closed, movable = ruled.later
        later = replace(cluster, spare=None, closed=closed)
        relief = unbound(later, movable, replace(limits, max_moves=1))
        same = relief.moves and relief.moves[0].source == allowed.moves[0].source
        return (_vetoed(relief, ruled.vetoes) if same else None) or allowed
    if allowed.moves or (usable is cluster and movable is snapshot) or not limits.explain:
        return allowed
    # It weighs each executor by itself, so only one that a veto holds could do better.
    narrows = unbound is not policy and usable is cluster and bool(movable.is_movable.any())
    asked = snapshot.of_those(snapshot.is_movable & ~movable.is_movable) if narrows else snapshot
    free = unbound(cluster, asked, replace(limits, max_moves=1, explain=not narrows))
    if not free.moves:
        return allowed if narrows else free
    # Only a policy that weighs all places together wants a move that is allowed.
    return _vetoed(free, ruled.vetoes) or allowed


def _opens(decision: Decision, spare: Spare) -> bool:
    return any(move.target == spare.worker for move in decision.moves)


def _vetoed(wanted: Decision, vetoes: Vetoes) -> Decision | None:
    """Name the first veto on what is wanted; None if nothing stands in its way."""
    for move in wanted.moves:  # several only of an exchange
        veto = vetoes.executors.get(move.executor) or vetoes.workers.get(move.target)
        if veto is not None:
            reason = f"{veto.reason}, but {wanted.reason}"
            return Decision(veto.outcome, reason, (), wanted.warnings)
    return None
