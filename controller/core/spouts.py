"""What users feel of a topology: how many tuples of its spouts are acked, fail, and how soon."""

from collections.abc import Mapping

import numpy as np

from controller.core.figures import SpoutFigures
from controller.core.latency import Timed, quantile_ms
from controller.core.meters import known_sum
from controller.core.metrics import Rates
from controller.core.picture import STALE_LOAD_S
from migration.meters import ACKED, FAILED
from migration.model import LATENCY_BUCKETS, Slot


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
