"""What a sick cluster starts again: workers, components and supervisors.

Nothing comes to workers that start again and again, and nothing leaves them. The same holds where a
component ends each of its workers. Nothing comes to a host whose supervisor has just come up.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from controller.core.decision import Outcome, Veto, Vetoes
from controller.core.topology import TopologyView
from migration.model import Slot

# A fault that comes back does so within minutes. An operator restarts a worker once or twice.
WITHIN_S = 1800.0
MOST = 2
# A supervisor that has come up may go again: it has stayed for that long before anything moves.
JUST_UP_S = 120.0


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

    Which of the executors ends its worker is not known: moved, it would end another one. Where the
    workers point to a component, all of its workers are closed, also those that started once.
    """
    again = {
        slot: len(starts[view.id, slot].again_s)
        for slot in sorted(view.publication.slots)
        if (view.id, slot) in starts
    }
    often = {slot for slot, count in again.items() if count > MOST}
    if not often:
        return Vetoes()
    components = _components_of(view)
    suspects = _suspects(components, often, {slot for slot, count in again.items() if count})
    closed = {}
    for slot, at in components.items():
        named = [of for of in suspects if of in at]
        if slot in often or named:
            count = again[slot]
            why = f"Storm has started {slot} again {count} time{'s' * (count > 1)} within 30 min"
            if named:
                why += (
                    f"; {' and '.join(named)} run{'s' * (len(named) == 1)} in each such worker, "
                    "and in no other"
                )
            closed[slot] = Veto(Outcome.EXCLUDED, why)
    here = (one for one in view.publication.executors if one.slot in closed)
    return Vetoes(
        {str(one.executor): closed[one.slot] for one in here if one.slot is not None},
        {str(slot): veto for slot, veto in closed.items()},
    )


def _suspects(
    components: Mapping[Slot, Collection[str]], often: set[Slot], again: set[Slot]
) -> list[str]:
    """List the components in all workers that start often, and in none that has kept running.

    Where one worker alone has started again, or none has kept running, nothing points to any. What
    Storm adds ends no worker.
    """
    if len(again) < 2 or components.keys() <= again:
        return []
    places: dict[str, set[Slot]] = {}
    for slot, at in components.items():
        for component in at:
            places.setdefault(component, set()).add(slot)
    return sorted(
        component
        for component, at in places.items()
        if often <= at <= again and not component.startswith("__")
    )


def _components_of(view: TopologyView) -> dict[Slot, set[str]]:
    """Give the components in each worker, by slot in order."""
    found: dict[Slot, set[str]] = {slot: set() for slot in sorted(view.publication.slots)}
    for one in view.publication.executors:
        if one.slot is not None:
            found[one.slot].add(one.component)
    return found


def up_each(
    before: Mapping[str, float], views: Iterable[TopologyView], now_s: float
) -> dict[str, float]:
    """Note since when supervisors are up, in monotonic seconds, by id.

    Those of the first look have been there. One that was away is new when it returns.
    """
    nodes = {node.id for view in views for node in view.publication.nodes}
    since_s = now_s if before else now_s - JUST_UP_S
    return {node: before.get(node, since_s) for node in sorted(nodes)}


def just_up(up: Mapping[str, float], hosts: Mapping[str, str], now_s: float) -> dict[str, Veto]:
    """Let no policy move anything at hosts whose supervisor has just come up, by its id."""
    return {
        node: Veto(
            Outcome.COOLDOWN,
            f"the supervisor of {hosts[node]} has just come up: nothing moves there "
            f"for {since_s + JUST_UP_S - now_s:.0f} s more",
        )
        for node, since_s in up.items()
        if now_s - since_s < JUST_UP_S
    }
