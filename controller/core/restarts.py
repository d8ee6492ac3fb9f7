"""Workers that Storm starts again and again: nothing comes to them, and nothing leaves them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller.core.decision import Outcome, Veto, Vetoes
from controller.core.topology import TopologyView
from migration.model import Slot

# A fault that comes back does so within minutes. An operator restarts a worker once or twice.
WITHIN_S = 1800.0
MOST = 2


@dataclass(frozen=True, slots=True)
class Starts:
    """The JVM of a worker that reported last, and when others took the place of one, monotonic."""

    incarnation: str
    again_s: tuple[float, ...] = ()


def starts_each(
    before: Mapping[tuple[str, Slot], Starts], views: Iterable[TopologyView], now_s: float
) -> dict[tuple[str, Slot], Starts]:
    """Note which workers have started again, by topology; a worker that is away keeps its notes."""
    found = {}
    for view in views:
        for slot in view.publication.slots:
            was, ack = before.get((view.id, slot)), view.observation.workers.get(slot)
            jvm = ack.incarnation if ack else was.incarnation if was else None
            if jvm is None:
                continue
            recent = [s for s in (was.again_s if was else ()) if now_s - s < WITHIN_S]
            if was and was.incarnation != jvm:
                recent.append(now_s)
            found[view.id, slot] = Starts(jvm, tuple(recent))
    return found


def restarted(view: TopologyView, starts: Mapping[tuple[str, Slot], Starts]) -> Vetoes:
    """Close the workers that start again and again, and hold their executors.

    Which of the executors ends its worker is not known: moved, it would end another one.
    """
    closed = {}
    for slot in sorted(view.publication.slots):
        again = starts[view.id, slot].again_s if (view.id, slot) in starts else ()
        if len(again) > MOST:
            why = f"Storm has started {slot} again {len(again)} times within 30 min"
            closed[slot] = Veto(Outcome.EXCLUDED, why)
    if not closed:
        return Vetoes()
    here = (one for one in view.publication.executors if one.slot in closed)
    return Vetoes(
        {str(one.executor): closed[one.slot] for one in here if one.slot is not None},
        {str(slot): veto for slot, veto in closed.items()},
    )
