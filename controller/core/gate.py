"""Finds why nothing is decided about a topology now, whatever its load."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.core.case import TopologyCase
from controller.core.decision import Outcome, Veto
from migration.model import Entry


def gate_each(
    cases: Sequence[TopologyCase],
    under_way: tuple[tuple[str, Entry], ...],  # from `moves_under_way`
    held: Mapping[str, Veto],  # by topology, what operators, settings and caps forbid a policy
    held_drains: Mapping[str, Veto],
    *,
    max_moves: int,  # how many moves the cluster may have under way
) -> list[TopologyCase]:
    """Put a veto where nothing may be decided now: what is held, STAND_BACK or MOVE_IN_FLIGHT."""
    busy = None
    if len(under_way) >= max_moves:
        named = ", ".join(f"{e.executor} of {t} to {e.target} in {e.phase}" for t, e in under_way)
        busy = Veto(Outcome.MOVE_IN_FLIGHT, f"under way: {named}")

    def gated(case: TopologyCase) -> TopologyCase:
        if case.picture is None:
            return case
        why = case.view.stand_back
        stop = busy if why is None else Veto(Outcome.STAND_BACK, why)
        return replace(
            case, stop=held.get(case.id) or stop, drain_stop=held_drains.get(case.id) or stop
        )

    return [gated(case) for case in cases]
