"""Turns the workers' running totals into rates, and rates into the snapshot a policy reads."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from migration.model import ExecutorId, NodeLoad, Publication, Slot, WorkerLoad

E = TypeVar("E", bound=Hashable)
JvmCpu: TypeAlias = tuple[Mapping[E, float], float, Sequence[int] | Ints]
NS_PER_S = 1e9
MS_PER_S = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRates:
    """What one worker does per second, smoothed.

    Attributes
    ----------
    report : WorkerLoad
        The newest report.
    seen_s : float
        When it came, by the controller's clock: clocks of nodes are not compared.
    total_ns : mapping of ExecutorId to int
        CPU totals, those of executors that have left too: they may come back.
    known : bool
        False until there are two reports of one incarnation to compare.
    cpu_cores : mapping of ExecutorId to float
        CPU of the executors' own threads.
    process_cores : float
        CPU of the whole JVM.
    sent : Traffic
        Tuples sent, between task ids instead of executors.
    left_out : int or None
        How many rows of traffic the node had to leave out of its newest report; None if none.
    """

    report: WorkerLoad
    seen_s: float
    total_ns: Mapping[ExecutorId, int]
    known: bool = False
    cpu_cores: Mapping[ExecutorId, float] = field(default_factory=dict)
    process_cores: float = 0.0
    sent: Traffic = field(default_factory=lambda: _traffic(()))
    left_out: int | None = None


Rates = Mapping[Slot, WorkerRates]


def observe(
    rates: Rates, loads: Iterable[NodeLoad], topology: str, *, now_s: float, ewma: float
) -> dict[Slot, WorkerRates]:
    """Take the newest reports in.

    Parameters
    ----------
    rates : mapping of Slot to WorkerRates
        What was known.
    loads : iterable of NodeLoad
        The newest report of each node.
    topology : str
        Reports of other topologies are left out.
    now_s : float
        The controller's monotonic clock.
    ewma : float
        Weight of the newest rate, above 0 and up to 1.

    Returns
    -------
    dict of Slot to WorkerRates
        Only workers that are in the reports.
    """
    found = {}
    for load in loads:
        for report in load.workers:
            if report.topology == topology:
                first = WorkerRates(
                    report, now_s, _cpu_totals(report), left_out=load.left_out or None
                )
                found[report.slot] = _observe_worker(rates.get(report.slot), first, ewma)
    return found


def _observe_worker(before: WorkerRates | None, first: WorkerRates, ewma: float) -> WorkerRates:
    report = first.report
    if before is None or before.report.incarnation != report.incarnation:
        return first
    if report.time_ms <= before.report.time_ms:
        return before
    newest = _rates_since(before, first)
    if newest is None:
        return first
    return _smooth(before, newest, ewma) if before.known else newest


def _rates_since(before: WorkerRates, first: WorkerRates) -> WorkerRates | None:
    """Divide what was added by the time between; None if a total fell, so the JVM is another."""
    old, new = before.report, first.report
    span_s = (new.time_ms - old.time_ms) / MS_PER_S
    added_ns = {e: ns - before.total_ns.get(e, 0) for e, ns in first.total_ns.items()}
    process_ns = new.process_cpu_ns - old.process_cpu_ns
    sent, sent_before = _totals(new), _totals(old)
    if first.left_out or before.left_out:
        sent, sent_before = _of_pairs_in(sent_before, sent), _of_pairs_in(sent, sent_before)
    added = _combine(sent, 1.0, sent_before, -1.0)
    if min([process_ns, *added_ns.values()]) < 0 or added.tps.min(initial=0) < 0:
        return None
    return replace(
        first,
        total_ns={**before.total_ns, **first.total_ns},
        known=True,
        cpu_cores={executor: ns / NS_PER_S / span_s for executor, ns in added_ns.items()},
        process_cores=process_ns / NS_PER_S / span_s,
        sent=replace(added, tps=added.tps / span_s),
    )


def _smooth(old: WorkerRates, new: WorkerRates, ewma: float) -> WorkerRates:
    keep = 1.0 - ewma
    executors = old.cpu_cores.keys() | new.cpu_cores.keys()
    return replace(
        new,
        cpu_cores={
            e: ewma * new.cpu_cores.get(e, 0.0) + keep * old.cpu_cores.get(e, 0.0)
            for e in executors
        },
        process_cores=ewma * new.process_cores + keep * old.process_cores,
        sent=_combine(new.sent, ewma, old.sent, keep),
    )


def stale_workers(
    rates: Rates, slots: Iterable[Slot], *, now_s: float, limit_s: float
) -> tuple[str, ...]:
    """Name the workers whose load is not known well enough to decide.

    Parameters
    ----------
    rates : mapping of Slot to WorkerRates
        What is known.
    slots : iterable of Slot
        Workers that have to be known.
    now_s, limit_s : float
        The clock of `observe`, and the oldest report that counts.

    Returns
    -------
    tuple of str
        One text a worker, empty if all is well.
    """
    found = []
    for slot in sorted(slots):
        worker = rates.get(slot)
        if worker is None:
            found.append(f"{slot} has not reported")
        elif now_s - worker.seen_s > limit_s:
            found.append(f"{slot} reported {now_s - worker.seen_s:.0f} s ago")
        elif not worker.known:
            found.append(f"{slot} has reported only once")
    return tuple(found)


def build_cluster(publication: Publication, slots: Iterable[Slot], cores: float | None) -> Cluster:
    """List the places of a topology with their capacity.

    Parameters
    ----------
    publication : Publication
        What Storm knows about the topology.
    slots : iterable of Slot
        Slots that the topology uses or is about to use.
    cores : float or None
        Capacity of every worker; None divides a node's CPU by its slots in use.

    Returns
    -------
    Cluster
        All open.
    """
    nodes = {node.id: node for node in publication.nodes}

    def capacity(slot: Slot) -> float:
        node = nodes[slot.supervisor]
        return node.cpu_capacity / 100 / max(node.slots_in_use, 1)

    known = [slot for slot in slots if slot.supervisor in nodes]
    return Cluster.build(nodes, [(str(s), s.supervisor, cores or capacity(s)) for s in known])


def build_snapshot(
    cluster: Cluster,
    publication: Publication,
    placement: Mapping[ExecutorId, Slot],
    rates: Rates,
    pinned: Mapping[ExecutorId, str],
    *,
    time_s: float,
) -> LoadSnapshot:
    """Put together what a policy reads.

    Parameters
    ----------
    cluster : Cluster
        Places; every slot of the placement is one of its workers.
    publication : Publication
        What Storm knows about the topology.
    placement : mapping of ExecutorId to Slot
        Where the executors are.
    rates : mapping of Slot to WorkerRates
        What they do.
    pinned : mapping of ExecutorId to str
        Why executors must stay.
    time_s : float
        Time to write into the snapshot.

    Returns
    -------
    LoadSnapshot
        One row an executor of the placement.
    """
    # The natural order of "start-end" is the order of the ids.
    executors = sorted(placement)
    traffic = _between_executors(executors, [w.sent for w in rates.values()])
    worker = {name: i for i, name in enumerate(cluster.workers)}
    component = {placed.executor: placed.component for placed in publication.executors}
    queue = {
        (slot, load.executor): load.queue
        for slot, worker_rates in rates.items()
        for load in worker_rates.report.executors
    }
    return LoadSnapshot(
        topology=publication.topology,
        time_s=time_s,
        components=publication.components,
        edges=publication.edges,
        executors=tuple(map(str, executors)),
        component_of=tuple(component[e] for e in executors),
        place=np.array([worker[str(placement[e])] for e in executors], dtype=np.int64),
        cpu_cores=_cpu_cores(executors, placement, rates, traffic),
        queue=np.array([queue.get((placement[e], e), 0) for e in executors], dtype=np.float64),
        pinned=tuple(pinned.get(e) for e in executors),
        traffic=traffic,
    )


def _cpu_cores(
    executors: list[ExecutorId],
    placement: Mapping[ExecutorId, Slot],
    rates: Rates,
    traffic: Traffic,
) -> Floats:
    count = len(executors)
    handled_tps = np.zeros(count)
    handled_tps += np.bincount(traffic.source, traffic.tps, count)
    handled_tps += np.bincount(traffic.target, traffic.tps, count)
    here: dict[Slot, list[int]] = {}
    for row, executor in enumerate(executors):
        here.setdefault(placement[executor], []).append(row)
    jvms = [(w.cpu_cores, w.process_cores, here.get(slot, [])) for slot, w in rates.items()]
    return whole_cpu_cores({e: row for row, e in enumerate(executors)}, jvms, handled_tps)


def whole_cpu_cores(
    index: Mapping[E, int], jvms: Sequence[JvmCpu[E]], handled_tps: Floats
) -> Floats:
    """Add each executor's share, by tuples, of its JVM's other CPU (network, GC) to its own.

    Parameters
    ----------
    index : mapping of E to int
        Row of each executor.
    jvms : sequence of JvmCpu
        CPU of the threads of each executor, and of the whole JVM, in cores, and the rows of the
        executors that are placed there.
    handled_tps : Floats, shape (E,)
        Tuples that each executor sent and got.

    Returns
    -------
    Floats, shape (E,)
        Cores.
    """
    # A copy that is leaving still runs elsewhere: own CPU counts wherever it was used.
    own = [0.0] * len(handled_tps)
    for cpu_cores, _, _ in jvms:
        for executor, used in cpu_cores.items():
            row = index.get(executor)
            if row is not None:
                own[row] += used
    cores = np.array(own)
    for cpu_cores, process_cores, here in jvms:
        other = max(process_cores - sum(cpu_cores.values()), 0.0)
        rows = np.asarray(here, dtype=np.int64)
        handled = handled_tps[rows] if handled_tps[rows].any() else np.ones(len(rows))
        cores[rows] += other * handled / handled.sum()
    return cores


def _cpu_totals(report: WorkerLoad) -> dict[ExecutorId, int]:
    return {load.executor: load.cpu_ns for load in report.executors}


def _between_executors(executors: list[ExecutorId], sent: list[Traffic]) -> Traffic:
    """Map tasks to executors; tasks of nobody (Storm's own system task) are left out."""
    size = max((e.end for e in executors), default=0) + 1
    executor_of = np.full(size, -1, dtype=np.int64)
    for i, executor in enumerate(executors):
        executor_of[max(executor.start, 0) : executor.end + 1] = i
    source = np.concatenate([t.source for t in sent] or [np.zeros(0, dtype=np.int64)])
    target = np.concatenate([t.target for t in sent] or [np.zeros(0, dtype=np.int64)])
    tps = np.concatenate([t.tps for t in sent] or [np.zeros(0)])
    inside = (source >= 0) & (source < size) & (target >= 0) & (target < size)
    source, target, tps = executor_of[source[inside]], executor_of[target[inside]], tps[inside]
    known = (source >= 0) & (target >= 0)
    return Traffic.build(source[known], target[known], tps[known])


def _totals(report: WorkerLoad) -> Traffic:
    return _traffic((t.source_task, t.target_task, t.tuples) for t in report.traffic)


def _of_pairs_in(other: Traffic, one: Traffic) -> Traffic:
    """Keep the pairs that another report has, too: one that was left out is no new one."""
    size = 1 + max(one.target.max(initial=0), other.target.max(initial=0))
    kept = np.isin(one.source * size + one.target, other.source * size + other.target)
    return Traffic.build(one.source[kept], one.target[kept], one.tps[kept])


def _traffic(rows: Iterable[tuple[int, int, float]]) -> Traffic:
    table = np.array([row for row in rows if min(row[:2]) >= 0], dtype=np.float64).reshape(-1, 3)
    ends: Ints = table[:, :2].astype(np.int64)
    return Traffic.build(ends[:, 0], ends[:, 1], table[:, 2])


def _combine(one: Traffic, weight: float, other: Traffic, other_weight: float) -> Traffic:
    return Traffic.build(
        np.concatenate([one.source, other.source]),
        np.concatenate([one.target, other.target]),
        np.concatenate([weight * one.tps, other_weight * other.tps]),
    )
