"""Says what CPU an executor would have used elsewhere: tuples that leave a worker cost more."""

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.replay.laid import Laid
from controller.replay.recording import Span

# What a tuple costs at either end between workers of a node, and between nodes; those of the
# simulator's scenario of the demo, whose costs are scaled to a run on a real cluster.
WORKER_US, NODE_US = 0.905, 1.09
US_PER_S = 1e6


class HopCost:
    """CPU by the replayed placement, for one run.

    Parameters
    ----------
    worker_us, node_us : float
        What a tuple costs each of its two ends, between workers of a node and between nodes, more
        than inside a worker.

    Notes
    -----
    The recorded CPU, less the hops of the recorded placement, with those of the replayed one. O(P)
    after each move, then O(pairs whose hops differ + E).
    """

    def __init__(self, worker_us: float = WORKER_US, node_us: float = NODE_US) -> None:
        self._us = np.array([0.0, worker_us, node_us])
        self._of: tuple[Laid, Laid] | None = None
        self._differ: Ints = np.zeros(0, dtype=np.int64)
        self._extra_s: Floats = np.zeros(0)

    def __reduce__(self) -> tuple[type["HopCost"], tuple[float, float]]:
        """Leave behind what is kept of a span: a run that goes on elsewhere has other spans."""
        return HopCost, (float(self._us[1]), float(self._us[2]))

    def __call__(self, span: Span, row: int, replayed: Laid, recorded: Laid) -> Floats:
        """Compute the CPU of one tick.

        Parameters
        ----------
        span : Span
            Recorded load.
        row : int
            Of which tick.
        replayed, recorded : Laid
            The placements.

        Returns
        -------
        Floats, shape (E,)
            Cores, never negative.
        """
        cpu_cores: Floats = span.cpu_cores[row].astype(np.float64)
        self._compare(replayed, recorded)
        if not self._differ.size:
            return cpu_cores
        extra = span.traffic_tps[row, self._differ] * self._extra_s
        for ends in (span.source, span.target):
            cpu_cores += np.bincount(ends[self._differ], extra, len(cpu_cores))
        return np.maximum(cpu_cores, 0.0, out=cpu_cores)

    def _compare(self, replayed: Laid, recorded: Laid) -> None:
        """Find the pairs whose tuples go another way, again only when somebody has moved."""
        if self._of is not None and self._of[0] is replayed and self._of[1] is recorded:
            return
        extra_us = self._us.take(replayed.hops) - self._us.take(recorded.hops)
        self._of = replayed, recorded
        self._differ = np.flatnonzero(extra_us)
        self._extra_s = extra_us[self._differ] / US_PER_S
