"""Says where a topology's executors are, worked out anew only when a journal tells of a change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.picture import (
    build_cluster,
    pinned_executors,
    settled_placement,
    whole_cpu_cores,
)
from controller.core.topology import TopologyView
from controller.replay.playback import read_message
from controller.replay.rates import TASK_BITS, JvmRates, Range
from migration.model import NodeAcks, Plan, Publication

M = TypeVar("M", NodeAcks, Plan, Publication)
# What a new message tells of nothing but its age.
_AGE = frozenset({"time_ms", "round"})


class Views:
    """The topologies as a journal tells of them, tick by tick."""

    def __init__(self) -> None:
        self._held: dict[tuple[type, str], tuple[Any, Any]] = {}

    def show(self, record: dict[str, Any]) -> Iterator[TopologyView]:
        """Go to the next tick.

        Yields
        ------
        TopologyView
            One a topology; of the very same messages as before where only their age has changed.

        Raises
        ------
        JournalError
            A message is not of this version's form.
        """
        for one in record["publications"]:
            self._take(Publication, one["topology"], one)
        for one in record["acks"]:
            self._take(NodeAcks, one["node"], one)
        for view in record["views"]:
            publication = self._message(Publication, view["topology"])
            if publication is not None:
                found = [self._message(NodeAcks, node) for node in view["acks"]]
                acks = tuple(ack for ack in found if ack is not None)
                plan = self._take(Plan, view["topology"], view["plan"])
                yield TopologyView(publication, plan, acks, view["stand_back"])

    def _message(self, kind: type[M], name: str) -> M | None:
        found: M | None = self._held.get((kind, name), (None, None))[1]
        return found

    def _take(self, kind: type[M], name: str, document: Any) -> M:
        timeless = _timeless(document)
        before, message = self._held.get((kind, name), (None, None))
        if before != timeless:
            message = read_message(kind, document)
            self._held[kind, name] = timeless, message
        found: M = message
        return found


def _timeless(document: Any) -> Any:
    """Leave out what tells the age of a message and of the answers in it."""
    if not isinstance(document, dict):
        return document
    found = {key: value for key, value in document.items() if key not in _AGE}
    if "workers" in found:
        found["workers"] = [_timeless(worker) for worker in found["workers"]]
        found["supervisor"] = _timeless(found["supervisor"])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the executors of a topology are, and what is known of them besides their load.

    Attributes
    ----------
    view : TopologyView
        What it was made of.
    capacity_cores : float or None
        Capacity of every worker; None divides a node's CPU by its slots in use.
    cluster : Cluster
        Places; closed where a worker has no hooks.
    index : mapping of Range to int
        Row of each executor, in natural order.
    executors, component_of, pinned : tuple, length E
        As in a snapshot.
    place : Ints, shape (E,)
        Index of each executor's worker.
    here : mapping of str to Ints
        Rows of the executors of each worker in use.
    executor_of : Ints, shape (tasks,)
        Row of each task's executor, -1 where there is none.
    """

    view: TopologyView
    capacity_cores: float | None
    cluster: Cluster
    index: Mapping[Range, int]
    executors: tuple[str, ...]
    component_of: tuple[str, ...]
    pinned: tuple[str | None, ...]
    place: Ints
    here: Mapping[str, Ints]
    executor_of: Ints

    @classmethod
    def of(cls, view: TopologyView, capacity_cores: float | None) -> "Layout":
        """Work it out.

        Parameters
        ----------
        view : TopologyView
            What is known of the topology.
        capacity_cores : float or None
            As in the attributes.

        Returns
        -------
        Layout
            As the live cycle would measure it, but with workers without hooks closed.
        """
        publication = view.publication
        placement = settled_placement(publication, view.plan)
        slots = publication.slots | frozenset(placement.values())
        plain = build_cluster(publication, slots, capacity_cores)
        hooked = set(map(str, view.hooked_slots))
        closed = tuple(None if name in hooked else "no worker with hooks" for name in plain.workers)
        cluster = Cluster(plain.nodes, plain.workers, plain.node_of, plain.capacity_cores, closed)
        executors, pinned = sorted(placement), pinned_executors(view)
        component = {placed.executor: placed.component for placed in publication.executors}
        worker = {name: w for w, name in enumerate(cluster.workers)}
        place = np.array([worker[str(placement[e])] for e in executors], dtype=np.int64)
        executor_of = np.full(max((e.end for e in executors), default=0) + 1, -1, dtype=np.int64)
        for row, executor in enumerate(executors):
            executor_of[max(executor.start, 0) : executor.end + 1] = row
        return cls(
            view=view,
            capacity_cores=capacity_cores,
            cluster=cluster,
            index={(e.start, e.end): row for row, e in enumerate(executors)},
            executors=tuple(map(str, executors)),
            component_of=tuple(component[e] for e in executors),
            pinned=tuple(pinned.get(e) for e in executors),
            place=place,
            here={
                name: np.flatnonzero(place == w) for name, w in worker.items() if (place == w).any()
            },
            executor_of=executor_of,
        )

    def is_of(self, view: TopologyView, capacity_cores: float | None) -> bool:
        """Tell whether it would come out the same.

        Parameters
        ----------
        view : TopologyView
            What is known of the topology now.
        capacity_cores : float or None
            As in the attributes.

        Returns
        -------
        bool
            Whether all messages are the very same ones.
        """
        own, new = self.view, view
        same = own.publication is new.publication and own.plan is new.plan
        same = same and capacity_cores == self.capacity_cores and len(own.acks) == len(new.acks)
        return same and all(a is b for a, b in zip(own.acks, new.acks, strict=True))

    def knows_all(self, rates: Mapping[str, JvmRates]) -> bool:
        """Tell whether no worker in use has reported only once.

        Returns
        -------
        bool
            False after a gap, until there are two reports to compare.
        """
        return all(rates[slot].known for slot in self.here if slot in rates)

    def has_places_of(self, other: "Layout") -> bool:
        """Tell whether places of both mean the same.

        Parameters
        ----------
        other : Layout
            Of the same topology.

        Returns
        -------
        bool
            Whether both have the same workers and executors.
        """
        same = self.cluster.workers == other.cluster.workers
        return same and self.executors == other.executors

    def pairs(self, tasks: Ints) -> Ints:
        """Map pairs of tasks to pairs of executors.

        Parameters
        ----------
        tasks : Ints, shape (P,)
            As in `JvmRates`.

        Returns
        -------
        Ints, shape (P,)
            Source times E plus target; -1 where a task is nobody's, as Storm's own system task.
        """
        ends = [tasks >> TASK_BITS, tasks & (1 << TASK_BITS) - 1]
        size = len(self.executor_of)
        rows = [np.where((e >= 0) & (e < size), self.executor_of[e % size], -1) for e in ends]
        known = (rows[0] >= 0) & (rows[1] >= 0)
        return np.where(known, rows[0] * len(self.executors) + rows[1], -1)

    def cpu_cores(self, rates: Mapping[str, JvmRates], handled_tps: Floats) -> Floats:
        """Add each executor's share, by tuples, of its JVM's other CPU to its own.

        Parameters
        ----------
        handled_tps : Floats, shape (E,)
            Tuples that each executor sent and got.

        Returns
        -------
        Floats, shape (E,)
            Cores.
        """
        jvms = [
            (jvm.cpu_cores, jvm.process_cores, self.here.get(slot, ()))
            for slot, jvm in rates.items()
        ]
        return whole_cpu_cores(self.index, jvms, handled_tps)

    def snapshot(
        self, time_s: float, rates: Mapping[str, JvmRates], cpu_cores: Floats, traffic: Traffic
    ) -> LoadSnapshot:
        """Put together what a policy reads.

        Parameters
        ----------
        rates : mapping of str to JvmRates
            By slot, for the queues.
        cpu_cores : Floats, shape (E,)
            By executor.
        """
        queue = np.zeros(len(self.executors))
        for slot, jvm in rates.items():
            for row in jvm.rows:
                at = self.index.get((row["executor"][0], row["executor"][1]), -1)
                if at >= 0 and self.cluster.workers[self.place[at]] == slot:
                    queue[at] = row["queue"]
        return LoadSnapshot(
            topology=self.view.publication.topology,
            time_s=time_s,
            components=self.view.publication.components,
            edges=self.view.publication.edges,
            executors=self.executors,
            component_of=self.component_of,
            place=self.place,
            cpu_cores=cpu_cores,
            queue=queue,
            pinned=self.pinned,
            traffic=traffic,
        )
