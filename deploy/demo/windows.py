"""Sorts the seconds of the ledger: warm or not, around the moves."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controller.storm.move_record import MoveRecord
from deploy.lab.ledger import LedgerWindow, throughput_tps

# Throughput that has grown by more than this from one such stretch to the next is warming up.
WARM_S = 10
STILL_FRAC = 0.05


@dataclass(frozen=True, slots=True)
class DemoSpan:
    """A stretch of Unix time."""

    began_s: float
    ended_s: float

    def seconds_of(self, windows: Iterable[LedgerWindow]) -> list[LedgerWindow]:
        """Choose the seconds that lie wholly inside."""
        return [w for w in windows if self.began_s <= w.t_s and w.t_s + 1 <= self.ended_s]

    def seconds_touched(self, windows: Iterable[LedgerWindow]) -> list[LedgerWindow]:
        """Choose the seconds that lie at least partly inside."""
        return [w for w in windows if w.t_s <= self.ended_s and w.t_s + 1 > self.began_s]


def is_warm(windows: Sequence[LedgerWindow]) -> bool:
    """Check whether the throughput has stopped growing.

    Returns
    -------
    bool
        Also False while there are less than twice `WARM_S` to compare.
    """
    if len(windows) < 2 * WARM_S:
        return False
    older = throughput_tps(windows[-2 * WARM_S : -WARM_S])
    newer = throughput_tps(windows[-WARM_S:])
    return 0 < newer <= older * (1 + STILL_FRAC)


def felt_span(move: MoveRecord) -> DemoSpan | None:
    """Find when a move could be felt: from PREPARE until the source had stopped.

    Returns
    -------
    DemoSpan or None
        None for a move that did not get so far.
    """
    if move.stopped_after_s is None:
        return None
    began_s = move.ended_s - sum(move.phase_s.values())
    return DemoSpan(began_s, began_s + move.stopped_after_s)


def pauses_ms(windows: Sequence[LedgerWindow], spans: Iterable[DemoSpan]) -> list[float]:
    """Give the longest ack latency of the seconds that each span touches.

    Returns
    -------
    list of float
        Milliseconds, one a span. A tuple that meets a pause waits at least as long, so each is an
        upper bound of the longest pause within.
    """
    touched = (span.seconds_touched(windows) for span in spans)
    return [max(w.max_ms for w in seconds) for seconds in touched if seconds]


def like(spans: Sequence[DemoSpan], within: DemoSpan) -> list[DemoSpan]:
    """Cut a quiet stretch into spans as long as the typical one of the moves.

    Returns
    -------
    list of DemoSpan
        One a second of the stretch in which such a span begins; they overlap.
    """
    if not spans:
        return []
    length_s = statistics.median(span.ended_s - span.began_s for span in spans)
    count = int(within.ended_s - within.began_s - length_s)
    return [DemoSpan(within.began_s + i, within.began_s + i + length_s) for i in range(count)]
