"""Reads from ZooKeeper what the demo shows: placement, load, traffic, decisions and moves."""

from collections import Counter
from dataclasses import dataclass

from controller.core.choose import MAY_CHANGE
from controller.core.metrics import Rates
from controller.core.topology import TopologyView, settled_placement
from controller.journal.rows import rows_of
from controller.storm import leader_status
from controller.storm.move_record import MoveRecord
from deploy.lab.figures import Tuples
from kvstore.zookeeper import Session
from migration.model import Slot


@dataclass(frozen=True, slots=True)
class WorkerLook:
    """One worker.

    Attributes
    ----------
    cpu_frac : float or None
        Share of its capacity; None until it is known.
    holds : str
        Its executors, counted by component.
    """

    host: str
    port: str
    cpu_frac: float | None
    holds: str


@dataclass(frozen=True, slots=True)
class Look:
    """The topology at one moment.

    Attributes
    ----------
    inter_node_frac : float or None
        Share of the tuples sent since the look before that crossed between nodes.
    tick, outcome, reason
        The controller's last cycle; -1 and empty before the first.
    entries : int
        Moves that have not left the plan.
    """

    workers: tuple[WorkerLook, ...]
    inter_node_frac: float | None
    tick: int
    outcome: str
    reason: str
    entries: int
    ended: tuple[MoveRecord, ...]

    @property
    def is_search(self) -> bool:
        """Whether a search may still change the last decision."""
        return MAY_CHANGE in self.reason


class Gauges:
    """Looks at one topology."""

    def __init__(self, session: Session, topology: str) -> None:
        self._session = session
        self._tuples = Tuples(session, topology)
        self._since_look = Rates()

    def look(self) -> Look:
        """Look now."""
        view = self._tuples.found()
        self._since_look = self._tuples.mark(self._since_look)
        found = leader_status.read(self._session)
        cycle = found.cycle_of.get(view.publication.topology) or leader_status.CycleStatus(tick=-1)
        return Look(
            workers=_workers(view, cycle),
            inter_node_frac=self._tuples.inter_node_frac(self._since_look),
            tick=cycle.tick,
            outcome=cycle.outcome,
            reason=_short(cycle.reason, view),
            entries=len(view.plan.entries),
            ended=found.ended_moves,
        )


def _short(reason: str, view: TopologyView) -> str:
    """Put hosts for the long ids that supervisors give themselves."""
    for node in view.publication.nodes:
        reason = reason.replace(node.id, node.host)
    return reason


def _workers(view: TopologyView, cycle: leader_status.CycleStatus) -> tuple[WorkerLook, ...]:
    publication = view.publication
    hosts = publication.hosts
    component = {placed.executor: placed.component for placed in publication.executors}
    cpu_frac = {row.slot: row.load_frac for row in rows_of(cycle.workers)}
    held: dict[Slot, Counter[str]] = {slot: Counter() for slot in sorted(publication.slots)}
    for executor, slot in settled_placement(publication, view.plan).items():
        held.setdefault(slot, Counter())[component[executor].strip("_")] += 1
    return tuple(
        WorkerLook(
            hosts.get(slot.supervisor, slot.supervisor),
            str(slot.port),
            cpu_frac.get(str(slot)),
            ", ".join(f"{count} {name}" for name, count in sorted(counts.items())),
        )
        for slot, counts in held.items()
    )
