"""Lays the moves of a decision over the plan of a topology: the next plan, as a value."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.core.case import TopologyCase
from controller.core.decision import Decision, Veto
from controller.core.topology import TopologyView
from migration.model import Entry, ExecutorId, Plan, Slot
from migration.protocol import following


def plan_each(
    cases: Sequence[TopologyCase], epoch: int, free: Collection[Slot]
) -> list[TopologyCase]:
    """Make the plan of each decision; where a veto stands in its way, that is the decision.

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
    comes back with the moves that are allowed; without any, as the veto on the first.
    """
    entries: list[Entry] = []
    veto = None
    for move in decision.moves:
        executor, target = ExecutorId.parse(move.executor), Slot.parse(move.target)
        made = view.allowed.entry(executor, target, entries, free)
        if isinstance(made, Veto):
            veto = made
            break
        entries.append(made)
    if veto is not None and (decision.is_exchange or not entries):
        return None, Decision(veto.outcome, veto.reason, (), decision.warnings)
    if not entries:
        return None, decision
    plan = following(view.plan, (*view.plan.entries, *entries), epoch)
    return plan, replace(decision, moves=decision.moves[: len(entries)])
