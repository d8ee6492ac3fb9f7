"""Takes rates from a journal's reports, as arrays.

The rates are those of `controller.core.metrics` with nothing smoothed: what was added between two
reports, by the time between.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from msgspec import Raw, Struct

from controller.core.cluster import Floats, Ints
from controller.core.metrics import MS_PER_S, NS_PER_S, WorkerRates, total_sent
from controller.journal.record import of_another_version

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
    traffic: Raw = Raw(b"[]")
    folded: tuple[tuple[int, str, int], ...] = ()


class NodeReport(Struct, frozen=True, gc=False):
    """What is read of a `NodeLoad`."""

    node: str
    workers: tuple[JvmReport, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class JvmRates:
    """What one JVM did per second between its two newest reports."""

    report: JvmReport  # the newest
    left_out: bool  # its node had to leave rows out of it
    # (X,), executors of the newest report, then those that have left, which may come back. The same
    # array as before if they are the same.
    ranges: Ints
    total_ns: Ints  # (X,), their CPU totals
    # (R,), pairs of tasks in the newest report; the same array as before if they are the same
    reported: Ints
    tuples: Floats  # (R,), their totals
    known: bool = False  # False until there are two reports of one incarnation to compare
    # (X,), CPU of the executors' own threads; 0 for those that have left
    cpu_cores: Floats = field(default_factory=lambda: _NO_FLOATS)
    process_cores: float = 0.0  # CPU of the whole JVM
    pairs: Ints = field(default_factory=lambda: _NO_INTS)  # (P,), pairs of tasks that sent
    tps: Floats = field(default_factory=lambda: _NO_FLOATS)  # (P,), tuples per second

    @classmethod
    def of(cls, topology: str, slot: str, known: WorkerRates) -> "JvmRates":
        """Begin with what a controller remembered of a JVM."""
        here = tuple(
            ExecutorRow((one.start, one.end), known.total_ns[one], waiting)
            for one, waiting in known.queues.items()
        )
        report = JvmReport(topology, slot, known.incarnation, known.time_ms, known.process_ns, here)
        ends = [*known.queues, *(one for one in known.total_ns if one not in known.queues)]
        return cls(
            report,
            bool(known.left_out),
            np.array([one.start << TASK_BITS | one.end for one in ends], dtype=np.int64),
            np.array([known.total_ns[one] for one in ends], dtype=np.int64),
            _keys(known.total.source, known.total.target),
            known.total.tps,
        )


def observe(
    before: Mapping[str, JvmRates],
    loads: Iterable[NodeReport],
    topology: str,
    targets: Mapping[str, int],
) -> dict[str, JvmRates]:
    """Take the newest report of each node in; gives the workers of `topology` in them, by slot.

    `targets` is of `component_targets`, for what workers have folded. Raises `JournalError` where a
    report is not of this version's form.
    """
    try:
        return {
            report.slot: _observe_jvm(before.get(report.slot), report, load.left_out > 0, targets)
            for load in loads
            for report in load.workers
            if report.topology == topology
        }
    except (OverflowError, ValueError) as error:
        raise of_another_version(error) from error


def _observe_jvm(
    before: JvmRates | None, report: JvmReport, left_out: bool, targets: Mapping[str, int]
) -> JvmRates:
    same_jvm = before is not None and before.report.incarnation == report.incarnation
    if before is not None and same_jvm and report.time_ms <= before.report.time_ms:
        return before
    rows = [(*row.executor, row.cpu_ns) for row in report.executors]
    cpu = np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)
    sent = total_sent(bytes(report.traffic), report.folded, targets)
    ranges, reported = _keys(cpu[:, 0], cpu[:, 1]), _keys(sent.source, sent.target)
    new = JvmRates(report, left_out, ranges, cpu[:, 2], reported, sent.tps)
    return (_since(before, new) if before is not None and same_jvm else None) or new


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
    reported, pairs, tuples = _added_tuples(old, new)
    return replace(
        new,
        ranges=ranges,
        total_ns=total_ns,
        reported=reported,
        known=True,
        cpu_cores=added_ns / NS_PER_S / span_s,
        process_cores=process_ns / NS_PER_S / span_s,
        pairs=pairs,
        tps=tuples / span_s,
    )


def _added_cpu(old: JvmRates, new: JvmRates) -> tuple[Ints, Ints, Ints]:
    """Give ranges, totals, and what was added to them: nothing where an executor has left."""
    ranges, before_ns = old.ranges, old.total_ns
    if not np.array_equal(new.ranges, ranges[: len(new.ranges)]):
        ranges = np.concatenate([new.ranges, ranges[~np.isin(ranges, new.ranges)]])
        before_ns = np.zeros(len(ranges), dtype=np.int64)
        at, was = _common(ranges, old.ranges)
        before_ns[at] = old.total_ns[was]
    total_ns = before_ns.copy()
    total_ns[: len(new.total_ns)] = new.total_ns
    return ranges, total_ns, total_ns - before_ns


def _added_tuples(old: JvmRates, new: JvmRates) -> tuple[Ints, Ints, Floats]:
    """Give all pairs, those whose rates can be told, and what they sent.

    A pair that was not in the report before was 0 then, unless rows were left out of either. A
    total that fell was counted anew, and tells nothing this time.
    """
    if np.array_equal(new.reported, old.reported):
        return old.reported, old.reported, np.maximum(new.tuples - old.tuples, 0.0)
    at, was = _common(new.reported, old.reported)
    before = np.zeros(len(new.reported))
    before[at] = old.tuples[was]
    added = np.maximum(new.tuples - before, 0.0)
    if old.left_out or new.left_out:
        return new.reported, new.reported[at], added[at]
    return new.reported, new.reported, added


def _common(one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Find the rows of what both have."""
    _, here, there = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return here, there
