"""What executors keep in the heaps of their workers."""

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from deploy.sim.flow.nodes import Hardware


class Heaps:
    """The state of E executors in W workers; it goes with an executor that moves."""

    def __init__(self, hardware: Hardware, state_mb: Floats) -> None:
        self._hardware, self._state_mb = hardware, state_mb
        self._workers = hardware.nodes * hardware.workers
        self._frac = np.full_like(state_mb, hardware.heap_start)  # (E,), what of its state is there

    def lose(self, which: NDArray[np.bool_]) -> None:
        """Forget the state of the marked executors, (E,): their worker has ended."""
        self._frac[which] = 0.0

    def fill(self, works: NDArray[np.bool_], dt_s: float) -> None:
        """Let state that was lost come back where executors work, (E,)."""
        if self._frac.min() < 1:
            more = dt_s / max(self._hardware.heap_fill_s, dt_s)
            self._frac = np.minimum(self._frac + more * works, 1.0)

    def live_mb(self, place: Ints) -> Floats:
        """Compute what lives in each worker, (W,); 0 where there is no executor."""
        return self._of(place, self._state_mb * self._frac)

    def full_mb(self, place: Ints) -> Floats:
        """Compute what lives in each worker once all state is there, (W,)."""
        return self._of(place, self._state_mb)

    def _of(self, place: Ints, by_executor: Floats) -> Floats:
        has_any = np.bincount(place, minlength=self._workers) > 0
        base_mb = self._hardware.heap_base_mb * has_any
        live_mb: Floats = np.bincount(place, by_executor, self._workers) + base_mb
        return live_mb
