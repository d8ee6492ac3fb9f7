"""Turns the workers' running totals into rates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from controller.core.cluster import Ints, Traffic
from controller.core.tasks import component_targets
from controller.core.topology import TopologyView
from migration.model import ExecutorId, FoldedRow, NodeLoad, Slot, WorkerLoad

NS_PER_S = 1e9
MS_PER_S = 1e3
# A pair that sends no more is forgotten once its smoothed rate is below this.
_SILENT_TPS = 1e-6

# Storm's task ids are Java's int.
_LAST_TASK = 2**31 - 1
_NOTHING = Traffic(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRates:
    """What one worker does per second, smoothed."""

    incarnation: str  # of the JVM
    time_ms: int  # when its newest report was made
    process_ns: int  # CPU of the whole JVM until then
    queues: Mapping[ExecutorId, int]  # tuples that waited then
    seen_s: float  # when it came, by the controller's clock: clocks of nodes are not compared
    # CPU totals, those of executors that have left too: they may come back.
    total_ns: Mapping[ExecutorId, int]
    # Tuples sent since the JVM started, between task ids instead of executors, as reported; of what
    # the worker has folded the target is a component, as of `component_targets`.
    total: Traffic
    known: bool = False  # False until there are two reports of one incarnation to compare
    cpu_cores: Mapping[ExecutorId, float] = field(default_factory=dict)  # of their own threads
    process_cores: float = 0.0  # CPU of the whole JVM
    # Tuples sent per second, between task ids; rows of zero may be among them.
    sent: Traffic = field(default_factory=lambda: _NOTHING)
    # How many rows of traffic the node had to leave out of its newest report; None if none.
    left_out: int | None = None


Rates = Mapping[Slot, WorkerRates]


def observe(
    rates: Rates,
    loads: Iterable[NodeLoad],
    topology: str,
    *,
    now_s: float,
    ewma: float,
    targets: Mapping[str, int] | None = None,
) -> dict[Slot, WorkerRates]:
    """Take the newest report of each node in; gives the workers of `topology` that are in them.

    `now_s` is monotonic, `ewma` the weight of the newest rate, above 0 and up to 1. Without
    `targets`, from `component_targets`, what workers have folded is left out.
    """
    found = {}
    for load in loads:
        for report in load.workers:
            if report.topology == topology:
                before = rates.get(report.slot)
                if before is not None and _is_known(before, report):
                    found[report.slot] = before
                    continue
                try:
                    first = _first(report, before, now_s, targets or {}, load.left_out or None)
                except ValueError:  # as if it had not come: the others must not suffer
                    found |= {} if before is None else {report.slot: before}
                    continue
                found[report.slot] = _observe_worker(before, first, ewma)
    return found


def observe_each(
    rates: Mapping[str, Rates],
    loads: Sequence[NodeLoad],
    views: Iterable[TopologyView],
    *,
    now_s: float,
    ewma: float,
) -> dict[str, Rates]:
    """Take the newest reports in, topology by topology; those not in `views` are forgotten."""
    here: dict[str, list[NodeLoad]] = {}
    folds = set()
    for load in loads:
        for topology in {worker.topology for worker in load.workers}:
            here.setdefault(topology, []).append(load)
        folds |= {worker.topology for worker in load.workers if worker.folded}
    return {
        view.id: observe(
            rates.get(view.id, {}),
            here.get(view.id, ()),
            view.id,
            now_s=now_s,
            ewma=ewma,
            targets=component_targets(view.publication) if view.id in folds else None,
        )
        for view in views
    }


def _is_known(before: WorkerRates, report: WorkerLoad) -> bool:
    """Tell whether a report is the one of before, or an older one."""
    return before.incarnation == report.incarnation and report.time_ms <= before.time_ms


def _observe_worker(before: WorkerRates | None, first: WorkerRates, ewma: float) -> WorkerRates:
    """Divide what was added by the time between; a JVM whose CPU total fell is another one."""
    if before is None or before.incarnation != first.incarnation:
        return first
    process_ns = first.process_ns - before.process_ns
    added_ns = {e: ns - before.total_ns.get(e, 0) for e, ns in first.total_ns.items()}
    if min([process_ns, *added_ns.values()]) < 0:
        return first
    span_s = (first.time_ms - before.time_ms) / MS_PER_S
    added = _added(before, first)
    cpu_cores = {executor: ns / NS_PER_S / span_s for executor, ns in added_ns.items()}
    process_cores = process_ns / NS_PER_S / span_s
    sent = Traffic(added.source, added.target, added.tps / span_s)
    if before.known:
        keep = 1.0 - ewma
        cpu_cores = {
            e: ewma * cpu_cores.get(e, 0.0) + keep * before.cpu_cores.get(e, 0.0)
            # No set: its order, and so the last digit of a sum, is another in another process.
            for e in {**before.cpu_cores, **cpu_cores}
        }
        process_cores = ewma * process_cores + keep * before.process_cores
        sent = _smooth(before.sent, sent, ewma)
    return replace(
        first,
        total_ns={**before.total_ns, **first.total_ns},
        known=True,
        cpu_cores=cpu_cores,
        process_cores=process_cores,
        sent=sent,
    )


def _first(
    report: WorkerLoad,
    before: WorkerRates | None,
    now_s: float,
    targets: Mapping[str, int],
    left_out: int | None,
) -> WorkerRates:
    """Read a report; the arrays of pairs stay the same objects while the pairs are the same."""
    total = total_sent(bytes(report.traffic), report.folded, targets)
    if before is not None and _same_pairs(total, before.total):
        total = Traffic(before.total.source, before.total.target, total.tps)
    return WorkerRates(
        report.incarnation,
        report.time_ms,
        report.process_cpu_ns,
        {load.executor: load.queue for load in report.executors},
        now_s,
        {load.executor: load.cpu_ns for load in report.executors},
        total,
        left_out=left_out,
    )


def _added(before: WorkerRates, first: WorkerRates) -> Traffic:
    """Tell what was sent between two reports.

    A pair that was not in the report before was 0 then, unless rows were left out of either. A
    total that fell was given up by the worker and counted anew: it tells nothing this time.
    """
    old, new = before.total, first.total
    if new.source is old.source:
        return Traffic(new.source, new.target, np.maximum(new.tps - old.tps, 0.0))
    if first.left_out or before.left_out:
        new = _of_pairs_in(old, new)
    known = _of_pairs_in(new, old)
    added = _combine(new, 1.0, known, -1.0)
    return Traffic(added.source, added.target, np.maximum(added.tps, 0.0))


def _smooth(old: Traffic, new: Traffic, ewma: float) -> Traffic:
    keep = 1.0 - ewma
    if _same_pairs(old, new):
        return Traffic(new.source, new.target, ewma * new.tps + keep * old.tps)
    both = _combine(new, ewma, old, keep)
    loud = both.tps > _SILENT_TPS
    both = Traffic(both.source[loud], both.target[loud], both.tps[loud])
    return Traffic(new.source, new.target, both.tps) if _same_pairs(both, new) else both


def _same_pairs(one: Traffic, other: Traffic) -> bool:
    if one.source is other.source and one.target is other.target:
        return True
    return np.array_equal(one.source, other.source) and np.array_equal(one.target, other.target)


def _of_pairs_in(other: Traffic, one: Traffic) -> Traffic:
    """Keep the pairs that another report has, too."""
    size = 1 + max(one.target.max(initial=0), other.target.max(initial=0))
    kept = np.isin(one.source * size + one.target, other.source * size + other.target)
    return Traffic(one.source[kept], one.target[kept], one.tps[kept])


def total_sent(traffic: bytes, folded: Sequence[FoldedRow], targets: Mapping[str, int]) -> Traffic:
    """Read what a worker has sent since its JVM started, `traffic` and `folded` of its report.

    Gives tuples between task ids, in the order of the report, then what was folded, to components.
    Storm's own tasks, below 0, are left out, and what cannot be. Raises ValueError if it is no list
    of rows of three whole numbers.
    """
    table = _numbers(traffic)
    if table.min(initial=0) < 0 or table[:, :2].max(initial=0) > _LAST_TASK:
        table = table[(table >= 0).all(axis=1) & (table[:, :2] <= _LAST_TASK).all(axis=1)]
    if folded:
        rest = [
            (source, targets[component], tuples)
            for source, component, tuples in folded
            if component in targets and 0 <= source <= _LAST_TASK
        ]
        table = np.concatenate([table, np.array(rest, np.int64).reshape(-1, 3)])
    return Traffic(
        np.ascontiguousarray(table[:, 0]),
        np.ascontiguousarray(table[:, 1]),
        table[:, 2].astype(np.float64),
    )


def _numbers(rows: bytes) -> Ints:
    """Read a JSON list of rows of three whole numbers, shape (R, 3); ValueError if it is none.

    They are most of what is read, and a tuple of each would take six times as long.
    """
    text = rows.translate(None, b"[]")
    # Brackets are what is left out; counting them would be another look at all of it.
    count = 3 * ((len(rows) - len(text)) // 2 - 1)
    told: Ints = np.zeros(0, dtype=np.int64)
    if text and not text.translate(None, b"0123456789-,"):
        told = np.fromstring(text, np.int64, sep=",")
    if len(told) != count:
        raise ValueError("traffic is no list of [source task, destination task, tuples]")
    return told.reshape(-1, 3)


def _combine(one: Traffic, weight: float, other: Traffic, other_weight: float) -> Traffic:
    return Traffic.build(
        np.concatenate([one.source, other.source]),
        np.concatenate([one.target, other.target]),
        np.concatenate([weight * one.tps, other_weight * other.tps]),
    )
