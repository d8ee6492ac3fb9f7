"""Lays the moves of a decision over the plan of a topology: the next plan, as a value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from controller.core.case import TopologyCase
from controller.core.decision import Decision, Outcome
from controller.core.topology import TopologyView
from migration.model import Entry, ExecutorId, Plan, Slot
from migration.protocol import following
from migration.validate import Refusal, RefusalCode, validate_move

# What the vetoes could not foresee.
_OUTCOME_OF_REFUSAL: Mapping[RefusalCode, Outcome] = {
    RefusalCode.NOT_ACTIVE: Outcome.STAND_BACK,
    RefusalCode.UNKNOWN_EXECUTOR: Outcome.STAND_BACK,
    RefusalCode.UNKNOWN_SLOT: Outcome.NO_WORKER_IN_SLOT,
    RefusalCode.SAME_SLOT: Outcome.STALE_METRICS,
    RefusalCode.MOVE_IN_FLIGHT: Outcome.MOVE_IN_FLIGHT,
    RefusalCode.NO_WORKER_IN_SLOT: Outcome.NO_WORKER_IN_SLOT,
    RefusalCode.NO_HOOKS: Outcome.NO_WORKER_IN_SLOT,
    RefusalCode.NOT_RUNNING: Outcome.MOVE_IN_FLIGHT,
    RefusalCode.PINNED: Outcome.EXCLUDED,
    RefusalCode.LAST_IN_WORKER: Outcome.LAST_IN_WORKER,
    RefusalCode.NOT_UNDERSTOOD: Outcome.STAND_BACK,
}


def plan_each(
    cases: Sequence[TopologyCase], epoch: int, free: Collection[Slot]
) -> list[TopologyCase]:
    """Make the plan of each decision; where the validator refuses its moves, that is the decision.

    `free` are the slots of the cluster that a move may open.
    """
    found: list[TopologyCase] = []
    for case in cases:
        assert case.decided is not None
        plan, decision = next_plan(case.view, case.decision, epoch, free)
        found.append(replace(case, plan=plan, decided=replace(case.decided, decision=decision)))
    return found


def next_plan(
    view: TopologyView, decision: Decision, epoch: int, free: Collection[Slot] = ()
) -> tuple[Plan | None, Decision]:
    """Make the plan that begins the moves of a decision, with the epoch of the leader that writes.

    `free` are the slots of the cluster that a move may open.
    It is one version higher, whatever the number of moves, or None if none begins. The decision
    comes back with the moves that the validator allows; if it allows none, as its refusal.
    """
    entries: list[Entry] = []
    refusal = None
    for move in decision.moves:
        executor, target = ExecutorId.parse(move.executor), Slot.parse(move.target)
        made = validate_move(view.observation, executor, target, entries, free=free)
        if isinstance(made, Refusal):
            refusal = made
            break
        entries.append(made)
    if refusal is not None and (decision.is_exchange or not entries):
        outcome = _OUTCOME_OF_REFUSAL[refusal.code]
        return None, Decision(outcome, refusal.reason, (), decision.warnings)
    if not entries:
        return None, decision
    plan = following(view.plan, (*view.plan.entries, *entries), epoch)
    return plan, replace(decision, moves=decision.moves[: len(entries)])
