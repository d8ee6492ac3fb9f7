"""What executors keep in the heap of their worker, and that no heap is filled too much.

The report has what lives in a heap after a collection, for a whole JVM. What of it belongs to an
executor is not known. So each counts with an even share of what its JVM has above a bare worker. In
another worker it takes that with it.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.fit import Fit
from controller.core.room import Marks

# What a worker keeps without executors, at least: those of WordCount in the lab have 18 to 28 MB.
BARE_BYTES = 15e6
# By what factor what lives may still grow: it grows with state, and hardly with the input, so that
# more room is not asked for.
ENOUGH = 4.0
ROUNDING_BYTES, ROUNDING = 1.0, 1e-9


@dataclass(frozen=True, eq=False)
class Heap:
    """The heaps of a cluster in today's placement and in others."""

    cluster: Cluster
    snapshot: LoadSnapshot

    @property
    def is_known(self) -> bool:
        """Whether anything is known of heaps."""
        return self.cluster.heap_bytes is not None

    @cached_property
    def held(self) -> Floats:
        """(E,), what each executor keeps, in bytes; as others in the mean where not known."""
        live, place = self.cluster.live_bytes, self.snapshot.place
        if live is None:
            return np.zeros(len(place))
        count = np.bincount(place, minlength=len(live))
        held: Floats = (np.maximum(live - BARE_BYTES, 0.0) / np.maximum(count, 1))[place]
        known = ~np.isnan(held)
        return np.where(known, held, held[known].mean() if known.any() else 0.0)

    @cached_property
    def growth(self) -> float:
        """The factor by which what lives may grow until a heap is full; infinite where not known.

        As equation 3 of 004.
        """
        most = float(self.share_at(self.snapshot.place).max(initial=0.0))
        return 1 / most if most > 0 else math.inf

    def share_at(self, place: Ints) -> Floats:
        """Compute the share of each heap that lives in a placement, (W,); 0 where not known."""
        most = self.cluster.heap_bytes
        if most is None:
            return np.zeros(len(self.cluster.workers))
        return np.nan_to_num(self._live_at(place) / most)

    def may_hold(self, fit: Fit) -> Floats:
        """Compute up to where each heap may be filled by a placement, (W,), in bytes.

        As much room is left as CPU and links keep, within `headroom.min` and `ENOUGH`. A heap may
        also be as full as the fullest is now. Infinite where not known.
        """
        most = self.cluster.heap_bytes
        if most is None:
            return np.full(len(self.cluster.workers), np.inf)
        least = max(min(fit.keeps, ENOUGH), fit.limits.headroom_min)
        share = max(1 / least, 1 / self.growth)
        return np.where(np.isnan(most), np.inf, most * share)

    def takes(self, executors: Ints, workers: Ints, place: Ints, most: float) -> Marks:
        """Mark the executors that fit into a share of the heap of the worker of the same row.

        Or that leave it no fuller than the fullest is now. Where not known, all.
        """
        heap = self.cluster.heap_bytes
        if heap is None:
            return np.ones(len(executors), np.bool_)
        left = heap * max(most, 1 / self.growth) - self._live_at(place)
        return ~(self.held[executors] > left[workers])

    def overfilled_at(self, place: Ints, most: float) -> bool:
        """Check whether a placement fills a heap above a share of it, and above the fullest now."""
        fullest = float(self.share_at(place).max(initial=0.0))
        return fullest * self.growth > 1 + ROUNDING and fullest > most + ROUNDING

    def left(self, fit: Fit, place: Ints) -> Floats:
        """Compute what each heap may still take, (W,), in bytes; negative where it is too full."""
        return self.may_hold(fit) - self._live_at(place)

    def overflows_at(self, fit: Fit, place: Ints) -> bool:
        """Check whether a placement fills a heap too much, and more than today's does."""
        if not self.is_known:
            return False
        over = self.left(fit, place) < -ROUNDING_BYTES
        fuller = self._live_at(place) > self._live_at(self.snapshot.place) + ROUNDING_BYTES
        return bool((over & fuller).any())

    def _live_at(self, place: Ints) -> Floats:
        held = np.bincount(place, self.held, len(self.cluster.workers))
        return np.where(np.bincount(place, minlength=len(held)) > 0, held + BARE_BYTES, 0.0)
