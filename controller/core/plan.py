"""Lays the moves of a decision over the plan of a topology: the next plan, as a value."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.core.case import TopologyCase
from controller.core.decision import Decision, Outcome, Veto
from controller.core.declared import Declared
from controller.core.topology import TopologyView
from migration.model import Entry, ExecutorId, Plan, Slot
from migration.protocol import following

_NOTHING = Declared()


def plan_each(
    cases: Sequence[TopologyCase], epoch: int, free: Collection[Slot]
) -> list[TopologyCase]:
    """Make the plan of each decision; where a veto stands in its way, that is the decision.

    `free` are the slots of the cluster that a move may open. What a topology declares, and brings
    to a node, is no room there for those after it.
    """
    found: list[TopologyCase] = []
    declared = Declared.of([case.view for case in cases])
    for case in cases:
        assert case.decided is not None
        plan, decision = next_plan(case.view, case.decision, epoch, free, declared)
        if plan is not None:
            declared = declared.with_begun(case.view, plan.entries[-len(decision.moves) :])
        found.append(replace(case, plan=plan, decided=replace(case.decided, decision=decision)))
    return found


def next_plan(
    view: TopologyView,
    decision: Decision,
    epoch: int,
    free: Collection[Slot] = (),
    declared: Declared = _NOTHING,
) -> tuple[Plan | None, Decision]:
    """Make the plan that begins the moves of a decision, with the epoch of the leader that writes.

    `free` are the slots of the cluster that a move may open, and `declared` is of all topologies.
    It is one version higher, whatever the number of moves, or None if none begins. The decision
    comes back with the moves that are allowed; without any, as the veto on the first.
    """
    entries: list[Entry] = []
    veto = None
    for move in decision.moves:
        executor, target = ExecutorId.parse(move.executor), Slot.parse(move.target)
        made = view.allowed.entry(executor, target, entries, free)
        if isinstance(made, Entry) and not decision.is_exchange:
            made = _lacking(view, (*entries, made), declared) or made
        if isinstance(made, Veto):
            veto = made
            break
        entries.append(made)
    if decision.is_exchange:
        veto = veto or _lacking(view, entries, declared)
    if veto is not None and (decision.is_exchange or not entries):
        return None, Decision(veto.outcome, veto.reason, (), decision.warnings)
    if not entries:
        return None, decision
    plan = following(view.plan, (*view.plan.entries, *entries), epoch)
    return plan, replace(decision, moves=decision.moves[: len(entries)])


def _lacking(view: TopologyView, entries: Sequence[Entry], declared: Declared) -> Veto | None:
    """Veto moves for which a node has too little of the memory that Storm's scheduler counts."""
    why = declared.why_not(view, entries)
    return None if why is None else Veto(Outcome.NOTHING_TO_GAIN, why)
