"""How long tuples take from their spout until they are acked, by the histograms of reports.

The buckets are those of PROTOCOL.md, four a doubling.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import UNSET

from controller.core.cluster import Floats, Ints
from controller.core.meters import MS_PER_S
from controller.core.metrics import by_topology
from migration.model import LATENCY_BUCKETS, LatencyRow, NodeLoad, Slot, WorkerLoad

# For how long a tuple counts, about.
RECENT_S = 60.0

_BUCKET = np.arange(LATENCY_BUCKETS)
_DOUBLINGS, _QUARTERS = np.divmod(_BUCKET - 1, 4)
# (B,), where each bucket begins
BEGINS_MS: Floats = np.where(_BUCKET > 0, 2.0**_DOUBLINGS * (4 + _QUARTERS) / 4, 0.0)
# (B,); of what is in the last one no more is known than where it begins
ENDS_MS: Floats = np.append(BEGINS_MS[1:], BEGINS_MS[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """The tuples of one JVM's spouts that were acked and timed."""

    incarnation: str
    time_ms: int  # when the newest report was made
    total: Ints  # (B,), since the JVM started
    recent: Floats  # (B,), of these, each by the less the older it is: by 1/e in `RECENT_S`
    grew_ms: int = 0  # when the newest report was made that had more tuples


def observe_timed_each(
    before: Mapping[str, Mapping[Slot, Timed]], loads: Iterable[NodeLoad], topologies: Iterable[str]
) -> dict[str, dict[Slot, Timed]]:
    """Take the newest reports in, topology by topology; other topologies are forgotten."""
    reports = by_topology(loads)
    return {
        topology: observe_timed(
            before.get(topology, {}), [report for report, _ in reports.get(topology, ())]
        )
        for topology in topologies
    }


def observe_timed(before: Mapping[Slot, Timed], reports: Iterable[WorkerLoad]) -> dict[Slot, Timed]:
    """Take the newest reports of a topology in; workers without timed tuples are left out."""
    found = {}
    for report in reports:
        held = before.get(report.slot)
        if held is not None and held.incarnation != report.incarnation:
            held = None
        if held is not None and (report.latency is UNSET or not _is_newer(report, held)):
            found[report.slot] = held
        elif report.latency is not UNSET:
            found[report.slot] = _after(held, report, report.latency)
    return found


def _is_newer(report: WorkerLoad, held: Timed) -> bool:
    """Check the times, or, by a clock that was set back, what was counted."""
    if report.time_ms >= held.time_ms or report.latency is UNSET:
        return report.time_ms > held.time_ms
    return sum(tuples for _, tuples in report.latency) > int(held.total.sum())


def _after(held: Timed | None, report: WorkerLoad, rows: Iterable[LatencyRow]) -> Timed:
    total, recent = np.zeros(LATENCY_BUCKETS, np.int64), np.zeros(LATENCY_BUCKETS)
    grew_ms = report.time_ms
    for bucket, tuples in rows:
        total[bucket] = tuples
    if held is not None:
        # By a clock that was set back no time has passed.
        passed_ms = max(report.time_ms - held.time_ms, 0)
        kept = np.exp(-passed_ms / (RECENT_S * MS_PER_S))
        more = np.maximum(total - held.total, 0)
        recent = held.recent * kept + more
        if not more.any():
            # Not known of a journal that is older.
            grew_ms = held.grew_ms or held.time_ms
            # However few tuples are left of it, a quantile would stay as it was.
            if report.time_ms - grew_ms > RECENT_S * MS_PER_S:
                recent = np.zeros(LATENCY_BUCKETS)
    return Timed(report.incarnation, report.time_ms, total, recent, grew_ms)


def added(before: Mapping[Slot, Timed], after: Mapping[Slot, Timed]) -> Floats:
    """Count the tuples that came between two looks, (B,); none of a JVM that was not there."""
    sums = np.zeros(LATENCY_BUCKETS)
    for slot, now in after.items():
        held = before.get(slot)
        if held is not None and held.incarnation == now.incarnation:
            sums += np.maximum(now.total - held.total, 0)
    return sums


def quantile_ms(tuples: Floats, share: float) -> float | None:
    """Give the time that a share of the tuples did not exceed; `tuples` are by bucket.

    Not known of so few tuples that not one of them would be above.
    """
    above = np.cumsum(tuples)
    if above[-1] * (1 - share) < 1 - 1e-9:
        return None
    wanted = share * above[-1]
    bucket = int(np.searchsorted(above, wanted))
    inside = (wanted - above[bucket] + tuples[bucket]) / tuples[bucket]
    begins, ends = float(BEGINS_MS[bucket]), float(ENDS_MS[bucket])
    return begins + float(inside) * (ends - begins)
