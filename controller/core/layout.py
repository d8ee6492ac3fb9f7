"""Where a topology's executors are and what is known of them apart from their load.

It is computed again only when something of it has changed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from controller.core.capacity import Capacity
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.declared import Declared
from controller.core.hops import lab_hop_cores
from controller.core.meters import Columns
from controller.core.metrics import Rates
from controller.core.pauses import move_weights
from controller.core.sizes import TupleSizes, pair_keys
from controller.core.tasks import FIRST_COMPONENT, TaskMap, component_targets, ends_of, worker_of
from controller.core.topology import TopologyView, settled_placement
from migration.meters import STATE
from migration.model import ExecutorId, Plan, Publication, Slot, Way

# A queue grows beyond its noise from this number of standard deviations on.
SURELY_WAITING = 3.0
# What an executor wants is taken as at most this many times what it works off.
MOST_WANTED = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class RowMap:
    """Which worker, executor or pair of executors each row of rates belongs to."""

    # What it was made of, as in `Rates`.
    slots: tuple[Slot, ...]  # (W,)
    executors: Ints  # (X,)
    pairs: Ints  # (P,)

    worker: Ints  # (W,), -1 where it is none of the cluster's
    executor: Ints  # (X,), -1 where it is not placed
    pair: Ints  # (R,), index of a pair of tasks
    ends: Ints  # (R,), index of its pair of executors
    share: Floats  # (R,), which part of its tuples
    source: Ints  # (U,), the pairs of executors, sorted as in `Traffic`
    target: Ints  # (U,)
    streams: Ints  # (S,), the pairs of components of these, as of `pair_keys`
    stream: Ints  # (U,), index of the pair's

    def sums(self, tps: Floats) -> Floats:
        """Add up what the pairs of tasks sent, shape (P,); gives (U,)."""
        found = np.bincount(self.ends, tps[self.pair] * self.share, len(self.source))
        return found.astype(np.float64)  # without any it has whole numbers

    def traffic(self, tps: Floats, tps_var: Floats, sizes: TupleSizes) -> Traffic:
        sums = self.sums(tps)
        mean_bytes = sizes.mean_bytes(self.streams)
        size_bytes = None if np.isnan(mean_bytes).all() else mean_bytes[self.stream]
        weights = tps_var[self.pair] * self.share**2
        var = np.bincount(self.ends, weights, len(sums)).astype(np.float64)
        loud = sums != 0
        traffic = Traffic(self.source, self.target, sums, var, size_bytes)
        return traffic if loud.all() else traffic.of_pairs(loud)


_NONE = np.zeros(0, np.int64)
_NO_ROWS = RowMap(
    (), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, np.zeros(0), _NONE, _NONE, _NONE, _NONE
)


class MadeOf(NamedTuple):
    publication: Publication
    plan: Plan
    pinned: Mapping[ExecutorId, str]  # why executors must stay
    capacity: Capacity
    opened: Mapping[str, int]  # slots by node that moves open and that Storm does not count yet
    ways: Mapping[ExecutorId, Way] = MappingProxyType({})  # by which executors move, if not live


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A topology without its load: E executors, in the order of their tasks, and their workers."""

    made_of: "MadeOf"
    cluster: Cluster
    worker: Mapping[Slot, int]  # index of each worker of the cluster
    ranges: Ints  # (E,), first and last task of each executor as one number, rising
    executors: tuple[str, ...]  # (E,), as in a snapshot; so are the next three
    component_of: tuple[str, ...]
    pinned: tuple[str | None, ...]
    place: Ints
    memory_mb: Floats | None  # as in a snapshot; so is the next
    move_weights: Floats | None
    tasks: TaskMap
    rows: RowMap  # of the rates that it was last fitted to

    @classmethod
    def of(cls, made_of: "MadeOf") -> "Layout":
        """Lay a topology out; every slot that Storm or a move uses is a worker."""
        publication, plan, pinned, capacity, opened, ways = made_of
        placement = settled_placement(publication, plan)
        slots = publication.slots | frozenset(placement.values())
        cluster = build_cluster(publication, slots, capacity, opened)
        index = {name: w for w, name in enumerate(cluster.workers)}
        worker = {slot: index[str(slot)] for slot in sorted(slots) if str(slot) in index}
        # The natural order of "start-end" is the order of the ids.
        executors = sorted(placement)
        component = {placed.executor: placed.component for placed in publication.executors}
        component_of = tuple(component[e] for e in executors)
        memory_mb = publication.memory_mb
        return cls(
            made_of=made_of,
            cluster=cluster,
            worker=worker,
            ranges=np.array([e.start * FIRST_COMPONENT + e.end for e in executors], np.int64),
            executors=tuple(map(str, executors)),
            component_of=component_of,
            pinned=tuple(pinned.get(e) for e in executors),
            place=np.array([worker[placement[e]] for e in executors], np.int64),
            memory_mb=np.array([memory_mb.get(one, 0.0) for one in component_of], np.float64)
            if memory_mb
            else None,
            move_weights=move_weights(ways, executors),
            tasks=TaskMap.of(executors, component_of, component_targets(publication)),
            rows=_NO_ROWS,
        )

    def fitted(self, rates: Rates) -> "Layout":
        """Find the rows of these rates, unless they are those of before."""
        rows, made_of = self.rows, (rates.slots, rates.executors, rates.pairs)
        same = rows.slots is rates.slots and rows.executors is rates.executors
        if same and rows.pairs is rates.pairs:
            return self
        count = len(self.executors)
        pair, source, target, share = self.tasks.between(*ends_of(rates.pairs))
        found, ends = np.unique(source * count + target, return_inverse=True)
        worker = np.array([self.worker.get(slot, -1) for slot in rates.slots], np.int64)
        first, last = ends_of(rates.executors)
        ranges = first * FIRST_COMPONENT + last
        at = np.searchsorted(self.ranges, ranges)
        at[at == count] = 0
        executor = np.where(self.ranges[at] == ranges, at, -1) if count else at - 1
        key = max(count, 1)
        source, target = found // key, found % key
        component = self.tasks.component
        pairs = pair_keys(component[source], component[target])
        streams, stream = np.unique(pairs, return_inverse=True)
        rows = RowMap(
            *made_of, worker, executor, pair, ends, share, source, target, streams, stream
        )
        return replace(self, rows=rows)

    def beside(self, declared: Declared) -> "Layout":
        """Note what other topologies declare on each node, where memory is counted."""
        cluster, own_mb = self.cluster, self.memory_mb
        if cluster.memory_mb is None:
            return self
        held_mb = np.array([declared.held_mb.get(node, 0.0) for node in cluster.nodes])
        if own_mb is not None:
            held_mb -= np.bincount(cluster.node_of[self.place], own_mb, len(held_mb))
        return replace(self, cluster=replace(cluster, other_memory_mb=held_mb))

    def knows_all(self, rates: Rates) -> bool:
        """Return whether no worker in use has reported only once."""
        return bool(rates.known[np.isin(self.rows.worker, self.place)].all())

    def snapshot(self, rates: Rates, *, time_s: float) -> LoadSnapshot:
        """Put together what a policy reads; `rates` are those of `fitted`."""
        publication, rows = self.made_of.publication, self.rows
        traffic = rows.traffic(rates.tps, rates.tps_var, rates.sizes)
        at, queue = rows.executor, np.zeros(len(self.executors))
        here = self._in_place(rates)
        queue[at[here]] = np.maximum(rates.queue[here], 0)  # below 0 it has left
        more_tps = rates.queue_tps[here] - SURELY_WAITING * np.sqrt(rates.queue_var[here])
        return LoadSnapshot(
            topology=publication.topology,
            time_s=time_s,
            components=publication.components,
            edges=publication.edges,
            executors=self.executors,
            component_of=self.component_of,
            place=self.place,
            cpu_cores=self.cpu_cores(rates, traffic),
            queue=queue,
            pinned=self.pinned,
            traffic=traffic,
            cpu_var=np.bincount(at[at >= 0], rates.cpu_var[at >= 0], len(queue)).astype(np.float64),
            wanted_times=self._wanted_times(traffic, at[here], more_tps),
            memory_mb=self.memory_mb,
            state_bytes=self.executor_meters(rates).get(STATE.column),
            move_weights=self.move_weights,
        )

    def _wanted_times(self, traffic: Traffic, executors: Ints, more_tps: Floats) -> Floats | None:
        """Divide what is sent to executors by what they work off, (E,); None where none lags.

        `more_tps` is by how much more waits for each of these executors every second, surely.
        """
        lags = more_tps > 0
        if not lags.any():
            return None
        times, late = np.ones(len(self.executors)), executors[lags]
        sent_tps = np.bincount(traffic.target, traffic.tps, len(times))[late]
        worked_tps = np.maximum(sent_tps - more_tps[lags], sent_tps / MOST_WANTED)
        times[late] = np.divide(sent_tps, worked_tps, out=times[late], where=worked_tps > 0)
        return times

    def crossing_bytes(self, tuples: Floats, sizes: TupleSizes) -> float:
        """Add up the bytes of tuples that cross between nodes, of the pairs of `rows`, shape (P,).

        NaN where one is sent whose size is not known.
        """
        rows, node = self.rows, self.cluster.node_of[self.place]
        sums = rows.sums(tuples)
        crosses = (node[rows.source] != node[rows.target]) & (sums > 0)
        size_bytes = sizes.mean_bytes(rows.streams)[rows.stream[crosses]]
        return float((sums[crosses] * size_bytes).sum())

    def _in_place(self, rates: Rates) -> Ints:
        """List the rows of executors that are in the worker where they are placed."""
        rows = self.rows
        here = np.flatnonzero(rows.executor >= 0)
        worker = rows.worker[worker_of(rates.executors[here])]
        found: Ints = here[self.place[rows.executor[here]] == worker]
        return found

    def executor_meters(self, rates: Rates) -> Columns:
        """Give what the meters of the executors show, (E,) each."""
        here, at = self._in_place(rates), np.full(len(self.executors), -1, np.int64)
        at[self.rows.executor[here]] = here
        return rates.of_executors.shown_at(at)

    def meters(self, rates: Rates) -> Columns:
        """Give what the meters of the cluster's workers show, (W,) each."""
        is_worker = self.rows.worker >= 0
        at = np.full(len(self.cluster.workers), -1, np.int64)
        at[self.rows.worker[is_worker]] = np.flatnonzero(is_worker)
        return rates.meters.shown_at(at)

    def cpu_cores(self, rates: Rates, traffic: Traffic) -> Floats:
        """Add each executor's share of its JVM's other CPU to its own.

        Of the threads between workers that is by what its tuples cost on hops, and of all others
        (such as the collector's) by its tuples.
        """
        count, workers = len(self.executors), len(self.cluster.workers)
        handled_tps: Floats = np.bincount(traffic.source, traffic.tps, count).astype(np.float64)
        handled_tps += np.bincount(traffic.target, traffic.tps, count)
        # A copy that is leaving still runs elsewhere: own CPU counts wherever it was used.
        placed, is_worker = self.rows.executor >= 0, self.rows.worker >= 0
        own = np.bincount(self.rows.executor[placed], rates.cpu_cores[placed], count)
        used = np.bincount(worker_of(rates.executors), rates.cpu_cores, len(rates.slots))
        other, carried = np.zeros(workers), np.zeros(workers)
        rest = np.maximum(rates.process_cores - used, 0.0)
        carrying = np.clip(np.nan_to_num(rates.transport_cores), 0.0, rest)
        other[self.rows.worker[is_worker]] = (rest - carrying)[is_worker]
        cores: Floats = own + self._shared(other, handled_tps)
        if not carrying.any():
            return cores
        carried[self.rows.worker[is_worker]] = carrying[is_worker]
        on_hops = lab_hop_cores(traffic, self.place, self.cluster.node_of)
        return cores + self._shared(carried, on_hops)

    def _shared(self, of_worker: Floats, weights: Floats) -> Floats:
        """Share out what each worker has, (W,), among its executors, by weights, (E,)."""
        place, workers = self.place, len(of_worker)
        weights = np.where(np.bincount(place, weights, workers)[place] > 0, weights, 1.0)
        shared: Floats = of_worker[place] * weights / np.bincount(place, weights, workers)[place]
        return shared


def opened_by(views: Iterable[TopologyView]) -> Counter[str]:
    """Count, by node, the slots that moves open and that Storm does not count yet."""
    return Counter(
        slot.supervisor
        for view in views
        for slot in view.plan.opened_slots() - view.publication.slots
    )


def layout_of(
    view: TopologyView,
    capacity: Capacity,
    before: Layout | None,
    opened: Mapping[str, int],  # as `opened_by` counts those of all topologies
) -> Layout:
    """Lay a topology out; gives the layout of before while what it is made of is the same."""
    nodes = {slot.supervisor for slot in view.observation.slots} if opened else set()
    here = {node: count for node, count in opened.items() if node in nodes}
    allowed = view.allowed
    made_of = MadeOf(view.publication, view.plan, allowed.pinned, capacity, here, allowed.ways)
    return before if before is not None and before.made_of == made_of else Layout.of(made_of)


def build_cluster(
    publication: Publication,
    slots: Iterable[Slot],
    capacity: Capacity,
    opened: Mapping[str, int],
) -> Cluster:
    """List the slots that a topology uses, or is about to use, with their capacity.

    `opened` has by node how many slots more are in use than Storm counts.
    """
    nodes = publication.node_of
    known = [(str(slot), nodes[slot.supervisor]) for slot in slots if slot.supervisor in nodes]
    rows = [(name, node.id, capacity.of(node, opened.get(node.id, 0))) for name, node in known]
    cluster = Cluster.build(nodes, rows)
    if memory := publication.memory_of_nodes:
        memory_mb = np.array([memory.get(node, np.inf) for node in cluster.nodes], np.float64)
        cluster = replace(cluster, memory_mb=memory_mb)
    if not capacity.is_shared:
        return cluster
    cores = [nodes[node].cpu_capacity / 100 for node in cluster.nodes]
    return replace(cluster, node_cores=np.array(cores, np.float64))
