"""Reads from ZooKeeper what the demo shows: placement, load, traffic, decisions and moves."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from controller.core.cluster import inter_node_tps
from controller.core.layout import layout_of, settled_placement
from controller.core.metrics import Rates, observe_each
from controller.core.topology import TopologyView
from controller.storm import status
from controller.storm.apply import MoveRecord
from controller.storm.collect import LiveCluster
from deploy.lab.operator import published
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


class Gauges:
    """Looks at one topology.

    Parameters
    ----------
    session : Session
        Connected to Storm's ZooKeeper.
    topology : str
        Name of the topology.
    """

    def __init__(self, session: Session, topology: str) -> None:
        self._session = session
        self._topology = topology
        self._view = LiveCluster.of_session(session)
        self._since_look = Rates()

    def look(self) -> Look:
        """Look now."""
        view = self._found()
        self._since_look = self._rates_since(self._since_look, view)
        told = status.read(self._session) or {}
        cycle = _cycle(told, view.publication.topology)
        return Look(
            workers=_workers(view, cycle),
            inter_node_frac=self._inter_node_frac(view, self._since_look),
            tick=cycle.get("tick", -1),
            outcome=cycle.get("outcome", ""),
            reason=_short(cycle.get("reason", ""), view),
            entries=len(view.plan.entries),
            ended=tuple(MoveRecord(**row) for row in told.get("ended_moves", [])),
        )

    def mark(self) -> Rates:
        """Take down the workers' totals as they are.

        Returns
        -------
        Rates
            For `inter_node_frac_since`.
        """
        return self._rates_since(Rates(), self._found())

    def inter_node_frac_since(self, mark: Rates) -> float | None:
        """Give the share of the tuples sent since a mark that crossed between nodes.

        Parameters
        ----------
        mark : Rates
            From `mark`; nothing has moved since then.

        Returns
        -------
        float or None
            By the totals that the workers themselves count; None if a worker was not heard of.
        """
        view = self._found()
        return self._inter_node_frac(view, self._rates_since(mark, view))

    def _found(self) -> TopologyView:
        return published(self._view, self._topology)

    def _rates_since(self, before: Rates, view: TopologyView) -> Rates:
        # Weight 1: nothing of what was before the last look, no smoothing.
        loads, now_s = self._view.loads(), time.monotonic()
        return observe_each({view.id: before}, loads, [view], now_s=now_s, ewma=1.0)[view.id]

    def _inter_node_frac(self, view: TopologyView, rates: Rates) -> float | None:
        layout = layout_of(view, None, None).fitted(rates)
        if not rates.known.all() or not layout.worker.keys() <= set(rates.slots):
            return None
        snapshot = layout.snapshot(rates, time_s=time.time())
        total_tps = snapshot.traffic.total_tps
        return inter_node_tps(layout.cluster, snapshot) / total_tps if total_tps else None


def _cycle(told: dict[str, Any], topology: str) -> dict[str, Any]:
    cycles: list[dict[str, Any]] = told.get("cycles", [])
    return next((cycle for cycle in cycles if cycle["topology"] == topology), {})


def _short(reason: str, view: TopologyView) -> str:
    """Put hosts for the long ids that supervisors give themselves."""
    for node in view.publication.nodes:
        reason = reason.replace(node.id, node.host)
    return reason


def _workers(view: TopologyView, cycle: dict[str, Any]) -> tuple[WorkerLook, ...]:
    publication = view.publication
    hosts = {node.id: node.host for node in publication.nodes}
    component = {placed.executor: placed.component for placed in publication.executors}
    cpu_frac = {
        row["slot"]: row["cpu_cores"] / row["capacity_cores"] for row in cycle.get("workers", [])
    }
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
