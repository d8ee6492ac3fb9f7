"""What a topology did in blocks of about 10 s: nothing of a block is in another one.

The rates that policies read are smoothed, so that one value has the last minute in it. What two
such values differ by shows little of the noise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from controller.core.cluster import Floats, Ints
from controller.core.latency import Timed, added, quantile_ms
from controller.core.layout import Layout
from controller.core.meters import MS_PER_S, known_sum
from controller.core.metrics import Rates, sent_between
from controller.core.tasks import ends_of, worker_of
from migration.meters import ACKED, FAILED, PENDING, Meter
from migration.model import Publication, Slot

BLOCK_S = 10.0
# Cycles do not begin to the millisecond.
_NEARLY_S = 9.5
# What was not looked at for so long is no block.
_LONGEST_S = 30.0
_NS_PER_MS = 1e6


def length_s(cycle_s: float) -> float:
    """Give how long a block is where a cycle takes `cycle_s`: as long as whole cycles."""
    return math.ceil(_NEARLY_S / cycle_s) * cycle_s


class Block(Struct, frozen=True):
    """The means of a topology over a block; None where it is not known."""

    ended_s: float  # monotonic
    cores: float  # CPU of its JVMs
    input_tps: float  # what its spouts emit
    acked_tps: float | None = None
    failed_tps: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    crossing_bytes_per_s: float | None = None  # of tuples between nodes
    lasts_s: float = BLOCK_S
    fills_link: bool = False  # a link of its nodes was above `load.high` at the end
    pending: float | None = None  # tuples at its spouts that had not ended, at the end


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A block that has begun; W workers."""

    began_s: float  # monotonic
    ms: Floats  # (W,), from the first to the newest report of each
    ns: Floats  # (W,), CPU of its JVM in between; so are the next four
    input: Floats  # (W,), tuples that its spouts emitted
    acked: Floats  # (W,), NaN where it is not known
    failed: Floats  # (W,)
    timed: Floats  # (B,), tuples by time
    crossing_bytes: float = math.nan  # of tuples between nodes; NaN where it is not known
    pending: float | None = None  # as of a `Block`, at the newest look

    def __add__(self, other: "Part") -> "Part":
        return Part(
            self.began_s,
            self.ms + other.ms,
            self.ns + other.ns,
            self.input + other.input,
            self.acked + other.acked,
            self.failed + other.failed,
            self.timed + other.timed,
            self.crossing_bytes + other.crossing_bytes,
            other.pending,
        )

    def ended(self, now_s: float, *, fills_link: bool) -> Block | str:
        """Make a block of it, or give the reason why it is none."""
        if now_s - self.began_s > _LONGEST_S:
            return f"there was no cycle for {_LONGEST_S:.0f} s"
        if not len(self.ms) or (self.ms <= 0).any():
            return "a worker did not report"
        return Block(
            now_s,
            float((self.ns / self.ms).sum()) / _NS_PER_MS,
            float((self.input / self.ms).sum()) * MS_PER_S,
            _rate(self.acked / self.ms),
            _rate(self.failed / self.ms),
            quantile_ms(self.timed, 0.5),
            quantile_ms(self.timed, 0.99),
            # Workers report at other moments, for as long a time.
            _rate(np.array([self.crossing_bytes / self.ms.mean()])),
            now_s - self.began_s,
            fills_link,
            self.pending,
        )

    def is_full(self, now_s: float) -> bool:
        return now_s - self.began_s >= _NEARLY_S


@dataclass(frozen=True, slots=True, eq=False)
class LoadSeen:
    """What is known of a topology at one moment."""

    now_s: float  # monotonic
    rates: Rates
    timed: Mapping[Slot, Timed]


def part_between(
    before: LoadSeen, after: LoadSeen, spouts: Ints, layout: Layout | None = None
) -> Part | str:
    """Count what came between two looks, or give the reason why that is not known.

    `spouts` are the tasks of spouts. Without a layout nothing is known of what crossed between
    nodes.
    """
    was, now = before.rates, after.rates
    if not same_jvms(before, after) or (now.process_ns < was.process_ns).any():
        return "a worker came, went or was restarted"
    if (was.cut | now.cut).any():
        return "a worker left rows of traffic out of its report"
    emits = np.flatnonzero(np.isin(ends_of(now.pairs)[0], spouts))
    all_sent = sent_between(was, now)
    sent, sender = all_sent[emits], worker_of(now.pairs[emits])
    return Part(
        before.now_s,
        (now.time_ms - was.time_ms).astype(np.float64),
        (now.process_ns - was.process_ns).astype(np.float64),
        np.bincount(sender, sent, len(now.slots)).astype(np.float64),
        _more(was, now, ACKED),
        _more(was, now, FAILED),
        added(before.timed, after.timed),
        math.nan if layout is None else layout.fitted(now).crossing_bytes(all_sent, now.sizes),
        _pending(now, spouts),
    )


def _pending(now: Rates, spouts: Ints) -> float | None:
    """Count the tuples of spouts that have not ended; None where it is not known of each spout."""
    first, last = ends_of(now.executors)
    counts = now.of_executors.newest.get(PENDING.name, np.full(len(first), np.nan))
    known = np.isin(first, spouts) & ~np.isnan(counts)
    tasks = int((last - first + 1)[known].sum())
    return float(counts[known].sum()) if tasks >= len(spouts) else None


def ended_between(before: Rates, after: Rates, meter: Meter) -> float:
    """Count tuples that ended at the spouts between two looks; NaN where that is not known.

    It is not where a worker came, went or was restarted.
    """
    if before.slots != after.slots or before.incarnations != after.incarnations:
        return np.nan
    found = known_sum(_more(before, after, meter))
    return np.nan if found is None else found


def same_jvms(before: LoadSeen, after: LoadSeen) -> bool:
    """Return whether no worker came, went or was restarted between two looks."""
    was, now = before.rates, after.rates
    return was.slots == now.slots and was.incarnations == now.incarnations


def jvms_of(seen: LoadSeen) -> dict[Slot, str]:
    """Give the JVM of each worker that reports."""
    return dict(zip(seen.rates.slots, seen.rates.incarnations, strict=True))


def spout_tasks(publication: Publication) -> Ints:
    """List the tasks of a topology's spouts."""
    spouts = {one.id for one in publication.components if one.kind == "spout"}
    executors = [p.executor for p in publication.executors if p.component in spouts]
    return np.array([task for e in executors for task in range(e.start, e.end + 1)], np.int64)


def _more(was: Rates, now: Rates, meter: Meter) -> Floats:
    unknown = np.full(len(now.slots), np.nan)
    before = was.meters.newest.get(meter.name, unknown)
    return now.meters.newest.get(meter.name, unknown) - before


def _rate(per_ms: Floats) -> float | None:
    known = known_sum(per_ms)
    return None if known is None else known * MS_PER_S
