"""Takes rates straight from the rows of a journal's reports, without a value made of each row.

The rates are those of `controller.core.metrics` with nothing smoothed: what was added between two
reports, by the time between.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.metrics import MS_PER_S, NS_PER_S
from controller.journal.record import JournalError

# A pair of tasks is one number; Storm's task ids are an int of Java.
TASK_BITS = 32
_NO_PAIRS = np.zeros(0, dtype=np.int64)

# Task range of an executor.
Range = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class JvmRates:
    """What one JVM did per second between its two newest reports.

    Attributes
    ----------
    time_ms, process_ns : int
        Of the newest report.
    rows : sequence
        Executors of the newest report, as in the journal.
    total_ns : mapping of Range to int
        CPU totals, those of executors that have left too: they may come back.
    reported : Ints, shape (R,)
        Pairs of tasks in the newest report; the same array as before if they are the same.
    tuples : Ints, shape (R,)
        Their totals.
    known : bool
        False until there are two reports of one incarnation to compare.
    cpu_cores : mapping of Range to float
        CPU of the executors' own threads.
    process_cores : float
        CPU of the whole JVM.
    pairs : Ints, shape (P,)
        Pairs of tasks that sent.
    tps : Floats, shape (P,)
        Tuples per second.
    """

    incarnation: str
    time_ms: int
    process_ns: int
    rows: list[dict[str, Any]]
    total_ns: Mapping[Range, int]
    reported: Ints
    tuples: Ints
    known: bool = False
    cpu_cores: Mapping[Range, float] = field(default_factory=dict)
    process_cores: float = 0.0
    pairs: Ints = field(default_factory=lambda: _NO_PAIRS)
    tps: Floats = field(default_factory=lambda: np.zeros(0))


def observe(
    before: Mapping[str, JvmRates], loads: Iterable[dict[str, Any]], topology: str
) -> dict[str, JvmRates]:
    """Take the newest reports in.

    Parameters
    ----------
    before : mapping of str to JvmRates
        What was known, by slot.
    loads : iterable of dict
        The newest report of each node, as in the journal.
    topology : str
        Reports of other topologies are left out.

    Returns
    -------
    dict of str to JvmRates
        Only of workers that are in the reports.

    Raises
    ------
    JournalError
        A report is not of this version's form.
    """
    try:
        rows = [row for load in loads for row in load["workers"] if row["topology"] == topology]
        return {row["slot"]: _observe_jvm(before.get(row["slot"]), row) for row in rows}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise JournalError(f"the journal is of another version of nstorm: {error!r}") from error


def _observe_jvm(before: JvmRates | None, row: dict[str, Any]) -> JvmRates:
    if before is None or before.incarnation != row["incarnation"]:
        return _first(row, _NO_PAIRS)
    if row["time_ms"] <= before.time_ms:
        return before
    new = _first(row, before.reported)
    return _since(before, new) or new


def _first(row: dict[str, Any], reported: Ints) -> JvmRates:
    """Read a report; the array of pairs stays the same object while the pairs are the same."""
    rows = row["traffic"]
    table = np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)
    pairs = table[:, 0] << TASK_BITS | table[:, 1]
    return JvmRates(
        incarnation=row["incarnation"],
        time_ms=row["time_ms"],
        process_ns=row["process_cpu_ns"],
        rows=row["executors"],
        total_ns={
            (one["executor"][0], one["executor"][1]): one["cpu_ns"] for one in row["executors"]
        },
        reported=reported if np.array_equal(pairs, reported) else pairs,
        tuples=table[:, 2],
    )


def _since(old: JvmRates, new: JvmRates) -> JvmRates | None:
    """Divide what was added by the time between; None if a total fell, so the JVM is another."""
    span_s = (new.time_ms - old.time_ms) / MS_PER_S
    added_ns = {e: ns - old.total_ns.get(e, 0) for e, ns in new.total_ns.items()}
    process_ns = new.process_ns - old.process_ns
    pairs, tuples = _added(old, new)
    if min([process_ns, *added_ns.values()]) < 0 or tuples.min(initial=0) < 0:
        return None
    return JvmRates(
        incarnation=new.incarnation,
        time_ms=new.time_ms,
        process_ns=new.process_ns,
        rows=new.rows,
        total_ns={**old.total_ns, **new.total_ns},
        reported=new.reported,
        tuples=new.tuples,
        known=True,
        cpu_cores={executor: ns / NS_PER_S / span_s for executor, ns in added_ns.items()},
        process_cores=process_ns / NS_PER_S / span_s,
        pairs=pairs,
        tps=tuples / span_s,
    )


def _added(old: JvmRates, new: JvmRates) -> tuple[Ints, Ints]:
    if new.reported is old.reported:
        return new.reported, new.tuples - old.tuples
    pairs, at = np.unique(np.concatenate([new.reported, old.reported]), return_inverse=True)
    sums = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(sums, at, np.concatenate([new.tuples, -old.tuples]))
    return pairs, sums
