"""Turns the workers' running totals into rates, all workers of a topology at once.

Each row, of an executor or of a pair of tasks, has one number as its key. So the rows of two
reports are compared as two sorted arrays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.loops import traffic
from controller.core.meters import MS_PER_S, Columns, Metered, columns_of, set_ahead
from controller.core.rows import ALL, aligned, in_order, joined
from controller.core.sizes import TupleSizes
from controller.core.tasks import FIRST_COMPONENT, component_targets, ends_of, key_of, worker_of
from controller.core.topology import TopologyView
from migration.meters import OF_EXECUTOR, OF_WORKER, TRANSPORT
from migration.model import NodeLoad, Slot, WorkerLoad

NS_PER_S = 1e9
# The weight of the newest report in the variance of a rate: it remembers some hundred seconds.
_VARIANCE_WEIGHT = 0.05
# A pair that sends no more is forgotten once its smoothed rate is below this.
_SILENT_TPS = 1e-6
N = TypeVar("N", bound=np.generic)


def _ints() -> Ints:
    return np.zeros(0, np.int64)


def _floats() -> Floats:
    return np.zeros(0)


def _no() -> NDArray[np.bool_]:
    return np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The rates of the workers of a topology per second, smoothed.

    W workers, X executors in them and P pairs of tasks. An executor that has left its worker keeps
    its row: it may come back. Key arrays are the very same as before while no row has come or gone.
    """

    slots: tuple[Slot, ...] = ()  # (W,), sorted
    incarnations: tuple[str, ...] = ()  # (W,), of the JVMs
    time_ms: Ints = field(default_factory=_ints)  # (W,), when the newest report was made
    process_ns: Ints = field(default_factory=_ints)  # (W,), CPU of the whole JVM until then
    # (W,), when it came, by the controller's clock: clocks of nodes are not compared
    seen_s: Floats = field(default_factory=_floats)
    # (W,), False until there are two reports of one incarnation to compare
    known: NDArray[np.bool_] = field(default_factory=_no)
    cut: NDArray[np.bool_] = field(default_factory=_no)  # (W,), the node had to leave out rows
    process_cores: Floats = field(default_factory=_floats)  # (W,), CPU of the whole JVM
    meters: Metered = field(default_factory=Metered)  # (W,) each
    executors: Ints = field(default_factory=_ints)  # (X,), keys: worker, first and last task
    total_ns: Ints = field(default_factory=_ints)  # (X,), CPU until the newest report
    queue: Ints = field(default_factory=_ints)  # (X,), tuples that waited then; -1 if it has left
    queue_tps: Floats = field(default_factory=_floats)  # (X,), by how much more wait each second
    queue_var: Floats = field(default_factory=_floats)  # (X,), variance of `queue_tps`
    cpu_cores: Floats = field(default_factory=_floats)  # (X,), of the executors' own threads
    cpu_var: Floats = field(default_factory=_floats)  # (X,), variance of `cpu_cores`
    of_executors: Metered = field(default_factory=Metered)  # (X,) each
    # (P,), keys: worker, source task, target task, which may be a component as of
    # `component_targets`
    pairs: Ints = field(default_factory=_ints)
    # (P,), tuples until the newest report; NaN if that is not known
    tuples: Floats = field(default_factory=_floats)
    tps: Floats = field(default_factory=_floats)  # (P,); some may be 0
    tps_var: Floats = field(default_factory=_floats)  # (P,), variance of `tps`
    sizes: TupleSizes = field(default_factory=TupleSizes)

    @property
    def transport_cores(self) -> Floats:
        """(W,), CPU of the threads that carry tuples between workers; NaN where it is not known."""
        return self.meters.shown.get(TRANSPORT.column, np.full(len(self.slots), np.nan))

    @property
    def of_nodes(self) -> Iterator[tuple[str, float]]:
        """List what the JVM of each worker uses, with the id of its node."""
        nodes = (slot.supervisor for slot in self.slots)
        return zip(nodes, self.process_cores.tolist(), strict=True)


def by_topology(loads: Iterable[NodeLoad]) -> dict[str, list[tuple[WorkerLoad, bool]]]:
    """Sort out reports; each with whether its node had to leave out rows."""
    found: dict[str, list[tuple[WorkerLoad, bool]]] = {}
    for load in loads:
        for worker in load.workers:
            found.setdefault(worker.topology, []).append((worker, load.left_out > 0))
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
    reports = by_topology(loads)
    return {
        view.id: observe(
            rates.get(view.id, Rates()),
            reports.get(view.id, ()),
            component_targets(view.publication),
            now_s=now_s,
            ewma=ewma,
        )
        for view in views
    }


def observe(
    before: Rates,
    reports: Iterable[tuple[WorkerLoad, bool]],  # of one topology, from `by_topology`
    targets: Mapping[str, int],  # from `component_targets`
    *,
    now_s: float,  # monotonic
    ewma: float,  # weight of the newest rate, above 0 and up to 1
) -> Rates:
    """Divide what was added to the workers' totals by the time between; workers without a report
    are forgotten.

    A JVM whose CPU total fell is another one. A row that was not in the report before was 0 then,
    unless rows were left out of either. A total of tuples that fell was reset by the worker: ignore
    it for this interval.
    """
    newest = {report.slot: (report, cut) for report, cut in reports}
    slots = tuple(sorted(newest, key=lambda slot: (slot.supervisor, slot.port)))
    told = [newest[slot][0] for slot in slots]
    incarnations = tuple(report.incarnation for report in told)
    old = before if before.slots == slots else _renumbered(before, slots)
    same_jvm = np.array([a == b for a, b in zip(incarnations, old.incarnations, strict=True)], bool)
    time_ms = np.array([report.time_ms for report in told], np.int64)
    process_ns = np.array([report.process_cpu_ns for report in told], np.int64)
    # By a clock that was set back a newer report has an earlier time, and more in its totals.
    is_set_back = (time_ms < old.time_ms) & (process_ns > old.process_ns)
    is_new = ~same_jvm | (time_ms > old.time_ms) | is_set_back
    cut = np.where(is_new, np.array([newest[slot][1] for slot in slots], bool), old.cut)
    rows = _Rows.of([(w, report) for w, report in enumerate(told) if is_new[w]], targets)

    executors, was_at, is_at = joined(old.executors, rows.executors)
    worker, nothing = worker_of(executors), np.zeros(len(executors), np.int64)
    is_told = aligned(is_at, np.ones(len(rows.executors), bool), nothing.astype(bool))
    before_ns = aligned(was_at, old.total_ns, nothing.copy())
    total_ns = aligned(is_at, rows.ns, before_ns.copy())
    fell = process_ns < old.process_ns
    fell[worker[total_ns < before_ns]] = True
    # The span is not known then: by that of the clock the rates would be far too low.
    ahead = old.known & set_ahead(time_ms - old.time_ms, now_s - old.seen_s)
    goes_on = is_new & same_jvm & ~fell & (time_ms > old.time_ms) & ~ahead

    span_s = np.where(goes_on, (time_ms - old.time_ms) / MS_PER_S, 1.0)
    weights = Weights.of(is_new, goes_on, old.known, span_s, ewma)
    cpu_cores, cpu_var = weights.smoothed(
        worker,
        (total_ns - before_ns) / NS_PER_S,
        aligned(was_at, old.cpu_cores, np.zeros(len(executors))),
        aligned(was_at, old.cpu_var, np.zeros(len(executors))),
    )
    was_queue = aligned(was_at, old.queue, nothing - 1)
    queue = aligned(is_at, rows.queue, np.where(is_new[worker], -1, was_queue))
    stays = (was_queue >= 0) & (queue >= 0)
    # From 0 on: one step of a queue is no trend.
    queue_tps, queue_var = Weights.of(is_new, goes_on, goes_on, span_s, ewma).smoothed(
        worker,
        np.where(stays, queue - was_queue, 0).astype(np.float64),
        aligned(was_at, old.queue_tps, np.zeros(len(executors))),
        aligned(was_at, old.queue_var, np.zeros(len(executors))),
    )
    was_metered = aligned(was_at, np.arange(len(old.executors)), nothing - 1)
    of_executors = old.of_executors.at(was_metered).observed(
        OF_EXECUTOR,
        {
            name: aligned(is_at, column, np.full(len(executors), np.nan))
            for name, column in rows.meters.items()
        },
        is_new=is_new[worker],
        goes_on=goes_on[worker],
        span_s=span_s[worker],
        ewma=ewma,
    )
    kept = is_told | ~is_new[worker] | goes_on[worker]
    process_cores = (process_ns - old.process_ns) / NS_PER_S * weights.added
    pairs, tuples, tps, tps_var = _sent(old, rows, cut, weights)
    return Rates(
        slots=old.slots,
        incarnations=old.incarnations if same_jvm.all() else incarnations,
        time_ms=np.where(is_new, time_ms, old.time_ms),
        process_ns=np.where(is_new, process_ns, old.process_ns),
        seen_s=np.where(is_new, now_s, old.seen_s),
        known=np.where(is_new, goes_on, old.known),
        cut=cut,
        process_cores=process_cores + old.process_cores * weights.rate,
        meters=old.meters.observed(
            OF_WORKER,
            columns_of(OF_WORKER, [report.meters for report in told]),
            is_new=is_new,
            goes_on=goes_on,
            span_s=span_s,
            ewma=ewma,
        ),
        executors=executors if kept.all() else executors[kept],
        total_ns=total_ns[kept],
        queue=queue[kept],
        queue_tps=queue_tps[kept],
        queue_var=queue_var[kept],
        cpu_cores=cpu_cores[kept],
        cpu_var=cpu_var[kept],
        of_executors=of_executors.at(np.flatnonzero(kept)),
        pairs=pairs,
        tuples=tuples,
        tps=tps,
        tps_var=tps_var,
        sizes=old.sizes.observed(
            [(w, report.sizes) for w, report in enumerate(told) if is_new[w]],
            targets,
            is_new=is_new,
            goes_on=goes_on,
            ewma=ewma,
        ),
    )


def sent_between(before: Rates, after: Rates) -> Floats:
    """Count the tuples that each pair of `after` has sent since `before`, shape (P,).

    Nothing of a worker that another JVM has taken the place of, nor of rows that were left out.
    """
    old = before if before.slots == after.slots else _renumbered(before, after.slots)
    same_jvm = [a == b for a, b in zip(after.incarnations, old.incarnations, strict=True)]
    pairs, was_at, is_at = joined(old.pairs, after.pairs)
    absent = np.where(old.cut | after.cut, np.nan, 0.0)[worker_of(pairs)]
    then = aligned(was_at, old.tuples, absent)[is_at]
    more = np.fmax(after.tuples - then, 0.0)
    return np.where(np.array(same_jvm, bool)[worker_of(after.pairs)], more, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights by which a new report changes the rates of a worker's rows, each (W,)."""

    is_new: NDArray[np.bool_]  # has another report than before
    added: Floats  # of what was added since the report of before, per second
    rate: Floats  # of the rate of before
    squared: Floats  # of the square of the difference of the two
    variance: Floats  # of the variance of before
    ewma: float

    @classmethod
    def of(
        cls,
        is_new: NDArray[np.bool_],
        goes_on: NDArray[np.bool_],
        known: NDArray[np.bool_],
        span_s: Floats,
        ewma: float,
    ) -> "Weights":
        """Weigh what came to workers in `span_s`; `known` is where there is a rate of before."""
        smooths = goes_on & known
        return cls(
            is_new,
            np.where(goes_on, np.where(known, ewma, 1.0) / span_s, 0.0),
            np.where(is_new, np.where(smooths, 1.0 - ewma, 0.0), 1.0),
            # Of a moving average with weight `ewma`, half as much is the noise of one report's
            # error.
            np.where(smooths, _VARIANCE_WEIGHT * ewma / 2, 0.0),
            np.where(is_new, np.where(smooths, 1.0 - _VARIANCE_WEIGHT, 0.0), 1.0),
            ewma,
        )

    @classmethod
    def of_rates(cls, ewma: float) -> "Weights":
        """Give those of one worker of which each rate is given as what came within a second."""
        return cls(
            is_new=np.ones(1, np.bool_),
            added=np.array([ewma]),
            rate=np.array([1.0 - ewma]),
            squared=np.array([_VARIANCE_WEIGHT * ewma / 2]),
            variance=np.array([1.0 - _VARIANCE_WEIGHT]),
            ewma=ewma,
        )

    def smoothed(
        self, worker: Ints | int, more: Floats, rate: Floats, variance: Floats
    ) -> tuple[Floats, Floats]:
        """Give the rates and their variances, of rows of these workers to which so much came."""
        added = more * self.added[worker]
        off = added / self.ewma - rate
        variance = off * off * self.squared[worker] + variance * self.variance[worker]
        return added + rate * self.rate[worker], variance


def _sent(
    old: Rates,
    rows: "_Rows",
    cut: NDArray[np.bool_],
    weights: Weights,
) -> tuple[Ints, Floats, Floats, Floats]:
    """Give the pairs, their totals, their rates and the variances of those."""
    pairs, was_at, is_at = joined(old.pairs, rows.pairs)
    worker = worker_of(pairs)
    before = aligned(was_at, old.tuples, np.where(cut | old.cut, np.nan, 0.0)[worker])
    absent = np.where(weights.is_new[worker], np.where(cut, np.nan, 0.0)[worker], before)
    tuples = aligned(is_at, rows.tuples, absent)
    # Of NaN and 0 `fmax` takes 0.
    tps, tps_var = weights.smoothed(
        worker,
        np.fmax(tuples - before, 0.0),
        aligned(was_at, old.tps, np.zeros(len(pairs))),
        aligned(was_at, old.tps_var, np.zeros(len(pairs))),
    )
    if is_at is ALL:
        return pairs, tuples, tps, tps_var
    kept = ~weights.is_new[worker] | (tps > _SILENT_TPS)
    kept[is_at] = True
    if kept.all():
        return pairs, tuples, tps, tps_var
    return pairs[kept], tuples[kept], tps[kept], tps_var[kept]


def _renumbered(rates: Rates, slots: tuple[Slot, ...]) -> Rates:
    """Leave out workers and add others of which nothing is known yet."""
    was = {slot: w for w, slot in enumerate(rates.slots)}
    at = np.array([was.get(slot, -1) for slot in slots], np.int64)
    here = at >= 0
    now = np.full(len(rates.slots), -1, np.int64)
    now[at[here]] = np.flatnonzero(here)

    def by_worker(values: NDArray[N]) -> NDArray[N]:
        return aligned(here.nonzero()[0], values[at[here]], np.zeros(len(slots), values.dtype))

    def moved(keys: Ints) -> tuple[NDArray[np.bool_], Ints]:
        worker = now[worker_of(keys)]
        stays = worker >= 0
        # Workers are numbered in the order of their slots, so the rows stay in order.
        return stays, key_of(worker[stays], *ends_of(keys[stays]))

    x, executors = moved(rates.executors)
    p, pairs = moved(rates.pairs)
    sizes = rates.sizes.of_workers(*moved(rates.sizes.rows))
    return Rates(
        slots=slots,
        incarnations=tuple(rates.incarnations[w] if w >= 0 else "" for w in at.tolist()),
        time_ms=by_worker(rates.time_ms),
        process_ns=by_worker(rates.process_ns),
        seen_s=by_worker(rates.seen_s),
        known=by_worker(rates.known),
        cut=by_worker(rates.cut),
        process_cores=by_worker(rates.process_cores),
        meters=rates.meters.at(at),
        executors=executors,
        total_ns=rates.total_ns[x],
        queue=rates.queue[x],
        queue_tps=rates.queue_tps[x],
        queue_var=rates.queue_var[x],
        cpu_cores=rates.cpu_cores[x],
        cpu_var=rates.cpu_var[x],
        of_executors=rates.of_executors.at(np.flatnonzero(x)),
        pairs=pairs,
        tuples=rates.tuples[p],
        tps=rates.tps[p],
        tps_var=rates.tps_var[p],
        sizes=sizes,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The totals of reports, keys in order."""

    executors: Ints  # (X,), keys
    ns: Ints  # (X,)
    queue: Ints  # (X,)
    meters: Columns  # (X,) each
    pairs: Ints  # (P,), keys
    tuples: Floats  # (P,)

    @classmethod
    def of(cls, told: Sequence[tuple[int, WorkerLoad]], targets: Mapping[str, int]) -> "_Rows":
        """Read reports, each with the number of its worker.

        Storm's own tasks, below 0, are left out, and what cannot be.
        """
        cpu = [
            (w, one.executor.start, one.executor.end, one.cpu_ns, one.queue)
            for w, report in told
            for one in report.executors
        ]
        table = np.fromiter(chain.from_iterable(cpu), np.int64, 5 * len(cpu)).reshape(-1, 5)
        table = np.column_stack([table, np.arange(len(cpu))])
        executors, columns = in_order(table, FIRST_COMPONENT)
        meters = {name: column[columns[:, 2]] for name, column in _of_executors(told).items()}
        sent = np.concatenate([_named(told), _folded(told, targets)])
        pairs, tuples = in_order(sent, FIRST_COMPONENT + len(targets))
        totals = tuples[:, 0].astype(np.float64)
        return cls(executors, columns[:, 0], columns[:, 1], meters, pairs, totals)


def _of_executors(told: Sequence[tuple[int, WorkerLoad]]) -> Columns:
    """Read the numbers of all executors in these reports; NaN where one is not known."""
    found = {}
    for name in (meter.name for meter in OF_EXECUTOR):
        given = [
            None if report.executor_meters is UNSET else report.executor_meters.get(name)
            for _, report in told
        ]
        if any(given):
            each = [
                np.full(len(report.executors), np.nan) if column is None else column
                for (_, report), column in zip(told, given, strict=True)
            ]
            column = np.concatenate(each, dtype=np.float64)
            found[name] = np.where(column >= 0, column, np.nan)
    return found


def _named(told: Sequence[tuple[int, WorkerLoad]]) -> Ints:
    """List pairs as worker, source and target task, and tuples; shape (R, 4).

    They are most of all that is read; a tuple of each would take six times as long.
    """
    rows = [traffic.numbers(bytes(report.traffic)).reshape(-1, 3) for _, report in told]
    worker = np.repeat(np.array([w for w, _ in told], np.int64), [len(own) for own in rows])
    return np.column_stack([worker, np.concatenate([np.zeros((0, 3), np.int64), *rows])])


def _folded(told: Sequence[tuple[int, WorkerLoad]], targets: Mapping[str, int]) -> Ints:
    """List what workers have folded, as `_named` does, with components as targets."""
    found = [
        (w, source, targets[component], tuples)
        for w, report in told
        for source, component, tuples in report.folded
        if component in targets
    ]
    return np.fromiter(chain.from_iterable(found), np.int64, 4 * len(found)).reshape(-1, 4)
