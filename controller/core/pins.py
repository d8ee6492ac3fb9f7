"""Why executors must stay, whatever the slot: by what was observed of the executor itself."""

from collections.abc import Mapping

from migration.model import ExecutorId
from migration.observation import Observation

NO_HOOKS = "no hooks in its JVM"
STARTING = "its worker is starting"
UNSEEN = frozenset({NO_HOOKS, STARTING})


def pinned(observation: Observation) -> Mapping[ExecutorId, str]:
    """Name the reasons, unless everybody understands the way that their worker names."""
    kind = {component.id: component.kind for component in observation.publication.components}
    hooked, pinned = frozenset(observation.hooked), dict[ExecutorId, str]()
    for placed in observation.publication.executors:
        if placed.slot not in hooked:
            pinned[placed.executor] = STARTING if placed.slot in observation.starting else NO_HOOKS
        elif kind.get(placed.component, "bolt") != "bolt":
            pinned[placed.executor] = kind[placed.component]
    for ack in observation.workers.values():
        pinned.update({one.executor: one.reason for one in ack.pinned})
        for one in ack.ways if ack.slot in hooked else ():
            if one.way in observation.understood:
                pinned.pop(one.executor, None)
    return pinned
