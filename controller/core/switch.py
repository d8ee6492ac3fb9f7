"""What switching off means for a topology: what ends, what goes back, and who waits."""

from collections.abc import Iterator

from controller.core.topology import TopologyView
from migration.model import Entry, Phase
from migration.observation import SlotStatus
from migration.table import transitions_from

OFF_SINCE = 2  # the version of the protocol whose hooks know the switch


def would(view: TopologyView) -> Iterator[str]:
    """Name what switching off would do to a topology now, and who would not hear of it."""
    name = view.publication.name
    for entry in view.plan.entries:
        yield f"move {entry.id} of {name}, {entry.executor} in {entry.phase}, {_end(entry)}"
    if view.plan.entries and view.publication.status != "ACTIVE":
        yield f"{name} is {view.publication.status}: these moves end once it is active again"
    yield from (f"{who} would not hear of it" for who in _deaf(view))


def left(view: TopologyView) -> Iterator[str]:
    """Name what of a topology is not inert yet, though nstorm is switched off."""
    name, observation = view.publication.name, view.observation
    for entry in view.plan.entries:
        yield f"move {entry.id} of {name} is in {entry.phase}"
    yield from (f"the worker at {slot} is not inert yet" for slot in observation.live)
    yield from (f"{who} has not answered" for who in _deaf(view))
    if view.nimbus is not None and view.nimbus.error is None:
        yield "Nimbus has not answered"


def _end(entry: Entry) -> str:
    if entry.void is not None:
        return "is void already: Storm's own assignment counts"
    if entry.phase is Phase.UNDO:
        return "goes back already"
    rows = transitions_from(entry.phase, entry.way, void=False)
    back = any(row.event == "cancelled" for row in rows)
    return "would go back" if back else "would go on to its end"


def _deaf(view: TopologyView) -> Iterator[str]:
    observation = view.observation
    for slot in sorted(observation.slots):
        if observation.status(slot) is SlotStatus.SILENT:
            yield f"the worker at {slot} ({observation.unheard(slot)})"
    for slot, ack in sorted(observation.workers.items()):
        if ack.speaks < OFF_SINCE:
            yield f"the worker at {slot} (it speaks version {ack.speaks} of the protocol)"
    if view.nimbus is None:
        yield "Nimbus (its hooks have never reported)"
