"""Lets a policy decide among what is allowed."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from controller.core.classify import Limits
from controller.core.cluster import Spare
from controller.core.decision import Decision, Outcome, Veto
from controller.core.picture import Picture
from controller.core.policy import Case, Decided, M, Policy
from controller.core.veto import PASSING, Vetoes, under


def choose_each(
    policy: Policy[M],
    pictures: Mapping[str, Picture | Veto],  # by topology; a veto is the decision
    vetoes: Mapping[str, Vetoes],
    limits: Limits,
    free_moves: int,  # how many more moves the cluster may have under way
    *,
    memories: Mapping[str, M],  # of the policy, by topology
    may_exceed: bool,  # whether an exchange may begin that has more: nothing is under way
    # Which topology is first, modulo their number: with another one in each cycle, none takes all
    # the moves for ever.
    first: int,
    begins: Collection[str],  # topologies whose moves begin; advice takes none from another
) -> dict[str, Decided[M]]:
    """Decide topology by topology, as long as the cluster may have one more move."""
    found: dict[str, Decided[M]] = {}
    opened: dict[str, str] = {}  # nodes, and the topology that opens a slot there
    turns = list(pictures.items())
    start = first % max(len(turns), 1)
    for topology, made in turns[start:] + turns[:start]:
        memory, question = memories.get(topology), None
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
            case = Case(cluster, made.snapshot, limited)
            chosen = decide(policy, case, vetoes[topology], memory)
            memory, question = chosen.memory, chosen.question
            decision = chosen.decision.cut_to(free_moves)
            count = len(decision.moves)
            if count > free_moves and not may_exceed:
                reason = f"an exchange of {count} moves waits until no other is under way"
                decision = Decision(Outcome.MOVE_IN_FLIGHT, f"{reason}; {decision.reason}")
            elif topology in begins and count:
                free_moves, may_exceed = free_moves - count, False
                if isinstance(spare, Spare) and _opens(decision, spare):
                    opened[spare.node] = made.view.publication.name
        found[topology] = Decided(decision, memory, question)
    return found


def decide(policy: Policy[M], case: Case, vetoes: Vetoes, memory: M | None = None) -> Decided[M]:
    """Decide among what the vetoes leave of a case: the one engine of every run.

    Without a move, the decision is the veto on the policy's best one, if a veto stands in its way.
    No slot is opened for what a worker has room for once a veto has passed by itself.
    """
    allowed = under(case, vetoes)
    decided = policy.decide(allowed, memory)
    decision = _explained(policy, case, allowed, vetoes, decided.decision)
    return replace(decided, decision=decision)


def _explained(
    policy: Policy[Any], case: Case, allowed: Case, vetoes: Vetoes, decision: Decision
) -> Decision:
    """Ask what the policy would do without the vetoes, or without those that pass."""
    cluster, limits = case.cluster, case.limits
    if isinstance(cluster.spare, Spare) and _opens(decision, cluster.spare):
        later = under(case, vetoes.without(PASSING))
        no_spare = replace(later.cluster, spare=None)
        relief = policy.at_once(
            replace(later, cluster=no_spare, limits=replace(limits, max_moves=1))
        )
        same = relief.moves and relief.moves[0].source == decision.moves[0].source
        return (_vetoed(relief, vetoes) if same else None) or decision
    is_whole = allowed.cluster is cluster and allowed.snapshot is case.snapshot
    if decision.moves or is_whole or not limits.explain:
        return decision
    # It weighs each executor by itself, so only one that a veto holds could do better.
    is_movable = allowed.snapshot.is_movable
    narrows = policy.weighs_each and allowed.cluster is cluster and bool(is_movable.any())
    asked = case.snapshot
    if narrows:
        asked = asked.of_those(asked.is_movable & ~is_movable)
    limits = replace(limits, max_moves=1, explain=not narrows)
    free = policy.at_once(replace(case, snapshot=asked, limits=limits))
    if not free.moves:
        return decision if narrows else free
    # Only a policy that weighs all places together wants a move that is allowed.
    return _vetoed(free, vetoes) or decision


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
