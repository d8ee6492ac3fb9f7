"""Takes rates from a journal's reports, as arrays.

The rates are those of `controller.core.metrics` with nothing smoothed: what was added between two
reports, by the time between.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from msgspec import Struct

from controller.core.cluster import Floats, Ints
from controller.core.metrics import MS_PER_S, NS_PER_S, Tasks, total_sent
from controller.journal.record import of_another_version
from migration.model import FoldedRow, TrafficRow

# A pair of tasks is one number, as is the range of an executor; Storm's task ids are Java's int.
TASK_BITS = 32
_NO_INTS = np.zeros(0, dtype=np.int64)
_NO_FLOATS = np.zeros(0)


class ExecutorRow(Struct, frozen=True, gc=False):
    """What is read of an `ExecutorLoad`."""

    executor: tuple[int, int]
    cpu_ns: int
    queue: int


class JvmReport(Struct, frozen=True, gc=False):
    """What is read of a `WorkerLoad`."""

    topology: str
    slot: str
    incarnation: str
    time_ms: int
    process_cpu_ns: int
    executors: tuple[ExecutorRow, ...] = ()
    traffic: tuple[TrafficRow, ...] = ()
    folded: tuple[FoldedRow, ...] = ()


class NodeReport(Struct, frozen=True, gc=False):
    """What is read of a `NodeLoad`."""

    node: str
    workers: tuple[JvmReport, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class JvmRates:
    """What one JVM did per second between its two newest reports.

    Attributes
    ----------
    report : JvmReport
        The newest.
    ranges : Ints, shape (X,)
        Executors of the newest report, then those that have left: they may come back. The same
        array as before if they are the same.
    total_ns : Ints, shape (X,)
        Their CPU totals.
    reported : Ints, shape (R,)
        Pairs of tasks in the newest report; the same array as before if they are the same.
    tuples : Floats, shape (R,)
        Their totals.
    known : bool
        False until there are two reports of one incarnation to compare.
    cpu_cores : Floats, shape (X,)
        CPU of the executors' own threads; 0 for those that have left.
    process_cores : float
        CPU of the whole JVM.
    pairs : Ints, shape (P,)
        Pairs of tasks that sent.
    tps : Floats, shape (P,)
        Tuples per second.
    """

    report: JvmReport
    ranges: Ints
    total_ns: Ints
    reported: Ints
    tuples: Floats
    known: bool = False
    cpu_cores: Floats = field(default_factory=lambda: _NO_FLOATS)
    process_cores: float = 0.0
    pairs: Ints = field(default_factory=lambda: _NO_INTS)
    tps: Floats = field(default_factory=lambda: _NO_FLOATS)


def observe(
    before: Mapping[str, JvmRates], reports: Iterable[JvmReport], topology: str, tasks: Tasks
) -> dict[str, JvmRates]:
    """Take the newest reports in.

    Parameters
    ----------
    before : mapping of str to JvmRates
        What was known, by slot.
    reports : iterable of JvmReport
        The newest of each worker.
    topology : str
        Reports of other topologies are left out.
    tasks : mapping of str to Ints
        The tasks of each component, for what workers have folded.

    Returns
    -------
    dict of str to JvmRates
        Only of workers that are in the reports.

    Raises
    ------
    JournalError
        A number is larger than any that is measured.
    """
    try:
        return {
            report.slot: _observe_jvm(before.get(report.slot), report, tasks)
            for report in reports
            if report.topology == topology
        }
    except OverflowError as error:
        raise of_another_version(error) from error


def _observe_jvm(before: JvmRates | None, report: JvmReport, tasks: Tasks) -> JvmRates:
    if before is None or before.report.incarnation != report.incarnation:
        return _first(report, tasks, _NO_INTS, _NO_INTS)
    if report.time_ms <= before.report.time_ms:
        return before
    new = _first(report, tasks, before.ranges, before.reported)
    return _since(before, new) or _first(report, tasks, _NO_INTS, _NO_INTS)


def _first(report: JvmReport, tasks: Tasks, ranges: Ints, reported: Ints) -> JvmRates:
    """Read a report; arrays that have not changed stay the same objects."""
    cpu = _table([(*row.executor, row.cpu_ns) for row in report.executors])
    sent = total_sent(report.traffic, report.folded, tasks)
    own, pairs = _keys(cpu[:, 0], cpu[:, 1]), _keys(sent.source, sent.target)
    return JvmRates(
        report=report,
        ranges=ranges if np.array_equal(own, ranges[: len(own)]) else own,
        total_ns=cpu[:, 2],
        reported=reported if np.array_equal(pairs, reported) else pairs,
        tuples=sent.tps,
    )


def _table(rows: Sequence[tuple[int, int, int]]) -> Ints:
    return np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)


def _keys(first: Ints, second: Ints) -> Ints:
    keys: Ints = first << TASK_BITS | second
    return keys


def _since(old: JvmRates, new: JvmRates) -> JvmRates | None:
    """Divide what was added by the time between; None if CPU fell, so the JVM is another."""
    span_s = (new.report.time_ms - old.report.time_ms) / MS_PER_S
    process_ns = new.report.process_cpu_ns - old.report.process_cpu_ns
    ranges, total_ns, added_ns = _added_cpu(old, new)
    if min(process_ns, added_ns.min(initial=0)) < 0:
        return None
    return JvmRates(
        report=new.report,
        ranges=ranges,
        total_ns=total_ns,
        reported=new.reported,
        tuples=new.tuples,
        known=True,
        cpu_cores=added_ns / NS_PER_S / span_s,
        process_cores=process_ns / NS_PER_S / span_s,
        pairs=new.reported,
        tps=_added_tuples(old, new) / span_s,
    )


def _added_cpu(old: JvmRates, new: JvmRates) -> tuple[Ints, Ints, Ints]:
    """Give ranges, totals, and what was added to them: nothing where an executor has left."""
    ranges, before_ns = old.ranges, old.total_ns
    if new.ranges is not old.ranges:
        ranges = np.concatenate([new.ranges, old.ranges[~np.isin(old.ranges, new.ranges)]])
        held = dict(zip(old.ranges.tolist(), old.total_ns.tolist(), strict=True))
        before_ns = np.array([held.get(key, 0) for key in ranges.tolist()], dtype=np.int64)
    total_ns = before_ns.copy()
    total_ns[: len(new.total_ns)] = new.total_ns
    return ranges, total_ns, total_ns - before_ns


def _added_tuples(old: JvmRates, new: JvmRates) -> Floats:
    """Tell what was sent between two reports, as `controller.core.metrics` does."""
    held = old.tuples
    if new.reported is not old.reported:
        before = dict(zip(old.reported.tolist(), old.tuples.tolist(), strict=True))
        held = np.array([before.get(key, 0.0) for key in new.reported.tolist()])
    return np.maximum(new.tuples - held, 0.0)
