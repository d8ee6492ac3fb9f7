"""Says why nothing is decided about a topology now, whatever its load."""

from collections.abc import Mapping

from controller.core.decision import Outcome, Veto
from controller.core.picture import Picture
from controller.core.topology import TopologyView
from controller.core.veto import Excluded
from migration.model import Entry


def gate_each(
    pictures: Mapping[str, Picture | Veto],  # by topology; a veto passes as it is
    under_way: tuple[tuple[str, Entry], ...],  # from `moves_under_way`
    *,
    held: Mapping[str, Veto],  # by topology, what operators and caps forbid
    excluded: Excluded,
    max_moves: int,  # how many moves the cluster may have under way
) -> dict[str, Picture | Veto]:
    """Put a veto where nothing may be decided now.

    It is PAUSED, CAPPED, EXCLUDED, STAND_BACK or MOVE_IN_FLIGHT.
    """
    busy = None
    if len(under_way) >= max_moves:
        named = ", ".join(f"{e.executor} of {t} to {e.target} in {e.phase}" for t, e in under_way)
        busy = Veto(Outcome.MOVE_IN_FLIGHT, f"under way: {named}")
    return {
        topology: made
        if isinstance(made, Veto)
        else held.get(topology) or _held(made.view, excluded) or busy or made
        for topology, made in pictures.items()
    }


def _held(view: TopologyView, excluded: Excluded) -> Veto | None:
    publication = view.publication
    if {publication.topology, publication.name} & excluded.topologies:
        return Veto(Outcome.EXCLUDED, f"topology {publication.name} is excluded")
    return None if view.stand_back is None else Veto(Outcome.STAND_BACK, view.stand_back)
