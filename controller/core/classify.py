"""Which workers are high, which are low, by absolute shares of their CPU.

Thresholds relative to the mean would stop algorithm 2 of 004 long before traffic is local, and
queue lengths are left out: the paper prints no limit for them. Exactly at the upper threshold is
not yet high, so that a worker filled up to it by the fit test stays as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.compiled import compiled
from migration.settings import DEFAULT, setting

# Sums of loads in another order differ in the last digits; that must decide nothing.
TOLERANCE_CORES = 1e-9
# So do equal gains; closer than this share of all traffic they tie, and ids decide.
TIE = 1e-9
# What one executor can gain falls with their number: of a thousand hardly any has 0.2 % of all
# traffic to gain, and yet together they have most of it.
FULL_SHARE_EXECUTORS = 40


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a policy gets besides the load."""

    high_frac: float = setting("load.high")  # of a worker's CPU
    low_frac: float = setting("load.low")  # of a worker's CPU
    # A move for traffic must gain more than this share of all traffic; with more than
    # `FULL_SHARE_EXECUTORS` executors, more than this share of what that many of them have.
    gain_frac: float = setting("asc.threshold")
    gain_tps: float | None = setting("asc.threshold.tps")  # wins over the share
    # What traffic between nodes and between workers counts for `gather`.
    weight_node: float = setting("weight.node")
    weight_worker: float = setting("weight.worker")
    # How many moves one decision may have; a policy that lists a whole placement ignores it.
    max_moves: int = DEFAULT["max.moves.per.cycle"]
    # Whether a decision without a move looks once more for what came closest, to name it. If not,
    # the outcome may be NOTHING_TO_GAIN in place of a better reason.
    explain: bool = True

    @property
    def gain_unit(self) -> str:
        """Unit of gains: traffic between nodes alone is tuples, with weights it is a score."""
        literal = self.weight_node == 1 and not self.weight_worker
        return "t/s" if literal else "weighted t/s"

    def threshold_tps(self, total_tps: float, executors: int) -> float:
        """Compute the tuples per second that a move for traffic must exceed."""
        if self.gain_tps is not None:
            return self.gain_tps
        return self.gain_frac * total_tps * min(1.0, FULL_SHARE_EXECUTORS / max(executors, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The workers' load and where it stands to the thresholds, each of shape (W,).

    `room_cores` is what fits until the worker is high, negative where it is. `high` is above the
    upper threshold, `low` is below the lower one or at it.
    """

    load_cores: Floats
    load_frac: Floats
    room_cores: Floats
    high: NDArray[np.bool_]
    low: NDArray[np.bool_]


def classify(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Classes:
    """Sort workers into high, normal and low."""
    load = worker_cpu_cores(cluster, snapshot)
    capacity = cluster.capacity_cores
    room = limits.high_frac * capacity - load
    return Classes(
        load_cores=load,
        load_frac=load / capacity,
        room_cores=room,
        high=room < -TOLERANCE_CORES,
        low=load <= limits.low_frac * capacity + TOLERANCE_CORES,
    )


def worker_cpu_cores(cluster: Cluster, snapshot: LoadSnapshot) -> Floats:
    """Add up the executors' CPU of each worker, shape (W,)."""
    contiguous = np.ascontiguousarray
    place, cores = contiguous(snapshot.place), contiguous(snapshot.cpu_cores)
    return worker_sums(place, cores, len(cluster.workers))


@compiled
def worker_sums(place: Ints, cores: Floats, workers: int) -> Floats:
    """Add up something of the executors of each worker, shape (W,)."""
    sums = np.zeros(workers)
    for e in range(len(place)):
        sums[place[e]] += cores[e]
    return sums
