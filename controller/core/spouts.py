"""What users feel of a topology: how many tuples of its spouts are acked, fail, and how soon."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from controller.core.latency import Timed, quantile_ms
from controller.core.meters import known_sum
from controller.core.metrics import Rates
from controller.core.picture import STALE_LOAD_S
from migration.meters import ACKED, FAILED
from migration.model import LATENCY_BUCKETS, Slot


class SpoutFigures(Struct, frozen=True):
    """The tuples of a topology's spouts; None where it is not known.

    Nothing is known without ackers, where spouts want no acks, and of hooks that do not count them.
    The times are of about the last minute.
    """

    acked_tps: float | None = None
    failed_tps: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None


NOT_KNOWN = SpoutFigures()


def spout_figures(rates: Rates, timed: Mapping[Slot, Timed], now_s: float) -> SpoutFigures:
    """Add up what the workers have reported in the last seconds, by the clock of `rates`."""
    fresh = now_s - rates.seen_s <= STALE_LOAD_S
    slots = {slot for slot, is_fresh in zip(rates.slots, fresh, strict=True) if is_fresh}
    recent = np.zeros(LATENCY_BUCKETS)
    for slot in slots & timed.keys():
        recent += timed[slot].recent
    shown, unknown = rates.meters.shown, np.full(len(fresh), np.nan)
    acked, failed = (known_sum(shown.get(m.column, unknown)[fresh]) for m in (ACKED, FAILED))
    return SpoutFigures(
        acked,
        failed,
        quantile_ms(recent, 0.5),
        quantile_ms(recent, 0.99),
    )
