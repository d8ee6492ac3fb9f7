"""Lets a policy decide among what is allowed."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from controller.core.capacity import Spare
from controller.core.case import Budget, TopologyCase, shift
from controller.core.decision import PASSING, Decision, Outcome, Veto, Vetoes
from controller.core.fit import with_others
from controller.core.held import held
from controller.core.limits import Limits
from controller.core.policy import Case, Decided, M, Policy
from controller.core.spare import with_emptied
from controller.core.veto import under

# What a drain, or a way back, may wait for without an end.
_LASTING = frozenset({Outcome.NO_LOW_WORKER, Outcome.NO_WORKER_IN_SLOT, Outcome.STAND_BACK})
# In the reason of a decision without a move, before what a search may still change.
MAY_CHANGE = "; but "


def choose_each(
    policy: Policy[Any],
    cases: Sequence[TopologyCase],
    memories: Mapping[str, Any],  # of the policy, by topology
    limits: Limits,
    budget: Budget,
    *,
    first: int,
    begins: Collection[str],  # topologies whose moves begin; advice takes none from another
    cycle_s: float,
    search_left_s: Mapping[str, float],  # how long searches may still take, by topology
) -> list[TopologyCase]:
    """Decide topology by topology, in turn, as long as the cluster may have one more move.

    A topology sees what those before it take along: a node's room is everybody's.
    """
    decided: dict[str, Decided[Any]] = {}
    shifted: defaultdict[str, float] = defaultdict(float)  # cores, by node
    opened: dict[str, str] = {}  # nodes, and the topology that opens a slot there
    relieved: set[str] = set()  # though a drain or a way back is stuck
    for case in in_turn(cases, first):
        memory, standing = memories.get(case.id), _standing(case, budget)
        stuck = _stuck(case, budget)
        if standing is not None and stuck is None:
            decided[case.id] = Decided(standing, memory)
            if case.picture is not None and (case.drain or case.id in begins):
                shift(shifted, case.picture, standing.moves)
            continue
        assert case.picture is not None and case.vetoes is not None
        cluster, spare = case.picture.cluster, case.picture.cluster.spare
        if isinstance(spare, Spare) and spare.node in opened:
            why = f"{spare.worker} is on a host where {opened[spare.node]} opens one"
            cluster = replace(cluster, spare=why)
        cluster = with_others(cluster, shifted)
        limited = replace(limits, max_moves=budget.free_moves)
        asked = Case(
            cluster,
            case.picture.snapshot,
            limited,
            case.waits or stuck,
            case.cold_s,
            cycle_s,
            search_left_s.get(case.id),
        )
        chosen = decide(policy, asked, case.vetoes, memory)
        decision = chosen.decision.cut_to(budget.free_moves)
        if standing is not None:
            if not decision.moves or case.id not in begins:
                decided[case.id] = Decided(standing, memory)
                continue
            relieved.add(case.id)
        count = len(decision.moves)
        if count > budget.free_moves and not budget.may_exceed:
            reason = f"an exchange of {count} moves waits until no other is under way"
            decision = Decision(Outcome.MOVE_IN_FLIGHT, f"{reason}; {decision.reason}")
        elif case.id in begins and count:
            budget = budget.without(count)
            if isinstance(spare, Spare) and _opens(decision, spare):
                opened[spare.node] = case.view.publication.name
            shift(shifted, case.picture, decision.moves)
        decided[case.id] = replace(chosen, decision=decision)
    chosen_by_policy = (
        replace(case, drain=None, back=None) if case.id in relieved else case for case in cases
    )
    return [replace(case, decided=decided[case.id]) for case in chosen_by_policy]


def in_turn(cases: Sequence[TopologyCase], first: int) -> list[TopologyCase]:
    """Begin with the topology of this number, modulo their count.

    With another one in each cycle, none takes all moves and searches for ever.
    """
    start = first % max(len(cases), 1)
    return [*cases[start:], *cases[:start]]


def _standing(case: TopologyCase, budget: Budget) -> Decision | None:
    """Give the decision about a topology that no policy is asked about."""
    return case.drain or case.back or _stopped(case, budget)


def _stopped(case: TopologyCase, budget: Budget) -> Decision | None:
    stop = case.stop or case.guard
    if stop is not None:
        return Decision(stop.outcome, stop.reason)
    if budget.free_moves <= 0:
        reason = "other topologies take all the moves that the cluster may have at a time"
        return Decision(Outcome.MOVE_IN_FLIGHT, reason)
    return None


def _stuck(case: TopologyCase, budget: Budget) -> Veto | None:
    """Return why a drain, or a way back, moves nothing, which may last for hours.

    A policy still relieves then, and gains nothing.
    """
    own = case.drain or case.back
    if own is None or own.moves or own.outcome not in _LASTING:
        return None
    if case.vetoes is None or _stopped(case, budget) is not None:
        return None
    return Veto(own.outcome, own.reason)


def decide(policy: Policy[M], case: Case, vetoes: Vetoes, memory: M | None = None) -> Decided[M]:
    """Decide among what the vetoes leave of a case: the one engine of every run.

    Without a move, the decision is the veto on the policy's best one, if a veto stands in its way.
    What moves for gain alone waits where the case has a reason for that, and so may a relief.
    Do not open a slot if a worker will have room when a temporary veto expires.
    """
    allowed = under(case, vetoes)
    decided = policy.decide(allowed, memory)
    decision = _explained(policy, case, allowed, vetoes, decided.decision)
    more = MAY_CHANGE + decided.awaits if decided.awaits else ""
    if decision.moves:
        more = _resting(policy, case, vetoes)
    decision = replace(decision, reason=decision.reason + more) if more else decision
    why = held(case, decision)
    if why is not None:
        decision = Decision(
            why.outcome, f"{why.reason}, but {decision.reason}", (), decision.warnings
        )
    return replace(decided, decision=decision)


def decide_in_file(policy: Policy[M], case: Case, vetoes: Vetoes, memory: M | None) -> Decided[M]:
    """Decide with the rules of a live run where a worker without executors is a free slot."""
    usable = with_emptied(case.cluster, case.snapshot, vetoes)
    decided = decide(policy, replace(case, cluster=usable), vetoes, memory)
    return replace(decided, decision=decided.decision.cut_to(case.limits.max_moves))


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
    # It weighs each executor alone, so only one that a veto holds could do better.
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


def _resting(policy: Policy[Any], case: Case, vetoes: Vetoes) -> str:
    """Name the executor that would move at once if it did not rest; empty if none would."""
    rest = {name for name, veto in vetoes.executors.items() if veto.outcome is Outcome.COOLDOWN}
    if not rest or not case.limits.explain:
        return ""
    later = under(case, vetoes.without(frozenset({Outcome.COOLDOWN})))
    rests = np.array([name in rest for name in later.snapshot.executors])
    snapshot = later.snapshot.of_those(later.snapshot.is_movable & rests)
    limits = replace(later.limits, max_moves=1, explain=False)
    found = policy.at_once(replace(later, snapshot=snapshot, limits=limits))
    wanted = [f"; {m.executor} rests, else it might go to {m.target}" for m in found.moves]
    return "".join(wanted)


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
