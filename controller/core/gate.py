"""Says why nothing is decided about a topology now, whatever its load."""

from collections.abc import Mapping

from controller.core.decision import Outcome, Veto
from controller.core.picture import Picture
from migration.model import Entry


def gate_each(
    pictures: Mapping[str, Picture | Veto],  # by topology; a veto passes as it is
    under_way: tuple[tuple[str, Entry], ...],  # from `moves_under_way`
    held: Mapping[str, Veto],  # by topology, what operators, settings and caps forbid
    *,
    max_moves: int,  # how many moves the cluster may have under way
) -> dict[str, Picture | Veto]:
    """Put a veto where nothing may be decided now: what is held, STAND_BACK or MOVE_IN_FLIGHT."""
    busy = None
    if len(under_way) >= max_moves:
        named = ", ".join(f"{e.executor} of {t} to {e.target} in {e.phase}" for t, e in under_way)
        busy = Veto(Outcome.MOVE_IN_FLIGHT, f"under way: {named}")
    gated = {}
    for topology, made in pictures.items():
        gated[topology] = made
        if isinstance(made, Picture):
            why = made.view.stand_back
            stands_back = None if why is None else Veto(Outcome.STAND_BACK, why)
            gated[topology] = held.get(topology) or stands_back or busy or made
    return gated
