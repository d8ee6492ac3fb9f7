"""What users feel of a topology: how many tuples of its spouts are acked, fail, and how soon."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from controller.core.cluster import Floats
from controller.core.latency import Timed, quantile_ms
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
    shown = rates.meters.shown
    return SpoutFigures(
        known_sum(shown.get(ACKED.column), fresh),
        known_sum(shown.get(FAILED.column), fresh),
        quantile_ms(recent, 0.5),
        quantile_ms(recent, 0.99),
    )


def known_sum(values: Floats | None, which: NDArray[np.bool_]) -> float | None:
    """Add up what is known of some workers; None if nothing is."""
    if values is None:
        return None
    known = values[which & ~np.isnan(values)]
    return float(known.sum()) if len(known) else None
