"""Turns the workers' running totals into rates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from controller.core.cluster import Ints, Traffic
from migration.model import ExecutorId, NodeLoad, Slot, WorkerLoad

NS_PER_S = 1e9
MS_PER_S = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRates:
    """What one worker does per second, smoothed.

    Attributes
    ----------
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


def observe_each(
    rates: Mapping[str, Rates],
    loads: Sequence[NodeLoad],
    topologies: Iterable[str],
    *,
    now_s: float,
    ewma: float,
) -> dict[str, Rates]:
    """Take the newest reports in, topology by topology.

    Parameters
    ----------
    rates : mapping of str to Rates
        What was known, by topology.
    loads : sequence of NodeLoad
        The newest report of each node.
    topologies : iterable of str
        Ids; others are forgotten.
    now_s, ewma : float
        As for `observe`.
    """
    return {
        topology: observe(rates.get(topology, {}), loads, topology, now_s=now_s, ewma=ewma)
        for topology in topologies
    }


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


def _cpu_totals(report: WorkerLoad) -> dict[ExecutorId, int]:
    return {load.executor: load.cpu_ns for load in report.executors}


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
