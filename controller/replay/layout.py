"""Says where a topology's executors are, worked out anew only when a journal tells of a change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.picture import (
    JvmCpu,
    build_cluster,
    pinned_executors,
    settled_placement,
    whole_cpu_cores,
)
from controller.core.tasks import TaskMap, component_targets
from controller.core.topology import TopologyView
from controller.replay.rates import TASK_BITS, JvmRates


def ageless(view: TopologyView) -> TopologyView:
    """Leave out what tells the age of the messages and of the answers in them."""
    return replace(view, acks=tuple(ack.timeless() for ack in view.acks), stand_back=None)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the executors of a topology are, and what is known of them besides their load."""

    view: TopologyView  # what it was made of, without its age
    capacity_cores: float | None  # of every worker; None divides a node's CPU by its slots in use
    cluster: Cluster  # closed where a worker has no hooks
    ranges: Ints  # (E,), the executors as in `JvmRates`, rising
    executors: tuple[str, ...]  # (E,), as in a snapshot; so are the next two
    component_of: tuple[str, ...]
    pinned: tuple[str | None, ...]
    place: Ints  # (E,), index of each executor's worker
    here: Mapping[str, Ints]  # rows of the executors of each worker in use
    tasks: TaskMap

    @classmethod
    def of(cls, view: TopologyView, capacity_cores: float | None) -> "Layout":
        """Lay a view of `ageless` out as the live cycle does, but close workers without hooks."""
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
        component_of = tuple(component[e] for e in executors)
        return cls(
            view=view,
            capacity_cores=capacity_cores,
            cluster=cluster,
            ranges=np.array([e.start << TASK_BITS | e.end for e in executors], dtype=np.int64),
            executors=tuple(map(str, executors)),
            component_of=component_of,
            pinned=tuple(pinned.get(e) for e in executors),
            place=place,
            here={
                name: np.flatnonzero(place == w) for name, w in worker.items() if (place == w).any()
            },
            tasks=TaskMap.of(executors, component_of, component_targets(publication)),
        )

    def knows_all(self, rates: Mapping[str, JvmRates]) -> bool:
        """Tell whether rates are known; not while a worker in use has reported only once."""
        return all(rates[slot].known for slot in self.here if slot in rates)

    def has_places_of(self, other: "Layout") -> bool:
        """Tell whether places of both mean the same: they have the same workers and executors."""
        same = self.cluster.workers == other.cluster.workers
        return same and self.executors == other.executors

    def pairs(self, tasks: Ints) -> tuple[Ints, Ints, Floats]:
        """Map pairs of tasks, as in `JvmRates`, to pairs of executors.

        Gives which pair of tasks, source times E plus target, and which part of its tuples.
        """
        found = self.tasks.between(tasks >> TASK_BITS, tasks & (1 << TASK_BITS) - 1)
        rows, source, target, share = found
        return rows, source * len(self.executors) + target, share

    def rows(self, ranges: Ints) -> Ints:
        """Find the row of each executor, given as in `JvmRates`; -1 where there is none."""
        at = np.searchsorted(self.ranges, ranges)
        at[at == len(self.ranges)] = 0
        return np.where(self.ranges[at] == ranges, at, -1) if len(self.ranges) else at - 1

    def cpu_cores(self, rates: Mapping[str, JvmRates], handled_tps: Floats) -> Floats:
        """Add each executor's share of its JVM's other CPU to its own; gives cores, (E,).

        The share is by `handled_tps`, (E,), the tuples that each executor sent and got.
        """
        own = np.zeros(len(self.executors))
        others: list[JvmCpu[int]] = []
        for slot, jvm in rates.items():
            rows = self.rows(jvm.ranges)
            own[rows[rows >= 0]] += jvm.cpu_cores[rows >= 0]
            other = float(jvm.process_cores - jvm.cpu_cores.sum())
            others.append(({}, other, self.here.get(slot, ())))
        return own + whole_cpu_cores({}, others, handled_tps)

    def snapshot(
        self, time_s: float, rates: Mapping[str, JvmRates], cpu_cores: Floats, traffic: Traffic
    ) -> LoadSnapshot:
        """Put together what a policy reads; `cpu_cores` is (E,), the queues are of the reports."""
        queue = np.zeros(len(self.executors))
        for slot, jvm in rates.items():
            told = np.array([row.queue for row in jvm.report.executors])
            rows = self.rows(jvm.ranges[: len(told)])
            here = np.isin(rows, self.here.get(slot, ()))
            queue[rows[here]] = told[here]
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
