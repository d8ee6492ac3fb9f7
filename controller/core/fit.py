"""What fits where: the load of each worker, and up to where it may be filled.

The one place that adds load up, takes it away, and compares it with a limit. Amounts are in the
unit of the resource (`resources.py`).

Thresholds are absolute shares of the capacity. Relative to the mean they would stop algorithm 2 of
004 long before traffic is local. Queue lengths are left out: the paper prints no limit for them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.compiled import compiled
from controller.core.limits import Limits
from controller.core.resources import CPU, Resource
from migration.model import Node
from migration.settings import setting

Marks = NDArray[np.bool_]
# Sums of loads in another order differ in the last digits; that must decide nothing.
TOLERANCE_CORES = 1e-9
# A gain, and a worker that is high, counts from this number of standard deviations on.
SURE, SURELY_HIGH = 2.0, 3.0
# Of a worker's load: what is measured is no more exact than this, even where no variance is known.
NOISE_FRAC = 0.01


@dataclass(frozen=True, eq=False)
class Fit:
    """A placement of executors on the workers of a cluster, and what else fits there."""

    resource: ClassVar[Resource] = CPU

    cluster: Cluster
    limits: Limits
    place: Ints  # (E,), index of each executor's worker
    demand: Floats  # (E,), what each executor uses
    demand_var: Floats | None  # (E,), variance of `demand`; None: it is known exactly
    used: Floats  # (W,)

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits | None = None) -> "Fit":
        """Add up what the executors of each worker use."""
        place, demand = snapshot.place, snapshot.cpu_cores
        return cls.at(cluster, place, demand, limits or Limits(), snapshot.cpu_var)

    @classmethod
    def at(
        cls,
        cluster: Cluster,
        place: Ints,
        demand: Floats,
        limits: Limits,
        demand_var: Floats | None = None,
    ) -> "Fit":
        used = _sums(place, demand, len(cluster.workers))
        return cls(cluster, limits, place, demand, demand_var, used)

    def placed(self, place: Ints) -> "Fit":
        """Put the executors elsewhere."""
        return self._with(place, _sums(place, self.demand, len(self.used)))

    def moved(self, executor: int, worker: int) -> "Fit":
        """Put one executor elsewhere."""
        place, used, need = self.place.copy(), self.used.copy(), self.demand[executor]
        used[place[executor]] -= need
        used[worker] += need
        place[executor] = worker
        return self._with(place, used)

    def _with(self, place: Ints, used: Floats) -> "Fit":
        after = Fit(self.cluster, self.limits, place, self.demand, self.demand_var, used)
        after.__dict__["limit"] = self.limit
        return after

    def with_capacity(self, capacity: Floats) -> "Fit":
        """Let the workers have another capacity, (W,)."""
        return replace(self, cluster=replace(self.cluster, capacity_cores=capacity))

    @property
    def capacity(self) -> Floats:
        """(W,), how much there is."""
        return self.cluster.capacity_cores

    @cached_property
    def limit(self) -> Floats:
        """(W,), what may be used before a worker is high."""
        return self.limits.high_frac * self.capacity

    @cached_property
    def room(self) -> Floats:
        """(W,), what fits until the worker is high; negative where it is."""
        return self.limit - self.used

    @cached_property
    def frac(self) -> Floats:
        """(W,), the share of the capacity that is used."""
        return self.used / self.capacity

    def above(self, limit: Floats) -> Marks:
        """Mark the workers above a limit, (W,); one that was filled up to it is not."""
        return limit - self.used < -TOLERANCE_CORES

    @cached_property
    def is_high(self) -> Marks:
        """(W,), above the limit."""
        return self.above(self.limit)

    @cached_property
    def is_low(self) -> Marks:
        """(W,), below the lower limit or at it."""
        return self.used <= self.limits.low_frac * self.capacity + TOLERANCE_CORES

    @property
    def levels(self) -> list[str]:
        """List for each worker whether it is high, low or normal."""
        pairs = zip(self.is_high.tolist(), self.is_low.tolist(), strict=True)
        return ["high" if high else "low" if low else "normal" for high, low in pairs]

    @cached_property
    def deviation(self) -> Floats:
        """(W,), by how much `used` may be measured wrong."""
        var = np.zeros(len(self.place)) if self.demand_var is None else self.demand_var
        return np.sqrt(np.bincount(self.place, var, len(self.used)))

    @cached_property
    def surely_high(self) -> Ints:
        """List the workers that are high, whatever their load may be measured wrong."""
        if self.demand_var is None or not self.is_high.any():
            return np.flatnonzero(self.is_high)
        return np.flatnonzero(self.room < -SURELY_HIGH * self.deviation - TOLERANCE_CORES)

    @cached_property
    def excess(self) -> float:
        """What is used above the limits of all workers; rounded, for orders of a sum differ."""
        over = self.used - self.limit
        return round(float(over[over > TOLERANCE_CORES].sum()), 9)

    @cached_property
    def noise(self) -> Floats:
        """(W,), the change of `used` up to which a load counts as the same."""
        return np.maximum(SURE * self.deviation, NOISE_FRAC * self.used)

    @cached_property
    def most(self) -> Floats:
        """(W,), up to where an exchange may fill a worker: the limit, or more where it stays high.

        Where all open workers together are too full, one that is high may get fuller by the noise
        of its load. Executors of measured sizes are never quite alike, and on full workers none
        could ever take another's place.
        """
        is_open = self.cluster.is_open
        crowded = self.room[is_open].sum() < -TOLERANCE_CORES
        return np.where(self.is_high & crowded, self.used + self.noise, self.limit)

    def limit_or_used(self, frac: float) -> Floats:
        """Give a share of the limit; where more is used, that, up to the limit; (W,)."""
        return np.maximum(frac * self.limit, np.minimum(self.used, self.limit))

    def steadied(self, before: "Fit", workers: Marks) -> "Fit":
        """Count the load of some workers as before, unless it fell by more than its noise."""
        same = workers & (self.used >= before.used - before.noise - TOLERANCE_CORES)
        return self._with(self.place, np.where(same, before.used, self.used))

    @property
    def binding(self) -> int | None:
        """The worker that is full first as load grows; None where nothing is used."""
        return int(np.argmax(self.frac)) if self.frac.any() else None

    def largest(self, limit: Floats | None = None) -> Floats:
        """Compute the most that one more executor may use to fit on each worker, (W,).

        `limit` is up to where the workers may be filled, (W,).
        """
        return (self.limit if limit is None else limit) - self.used + TOLERANCE_CORES

    def has_room(self, executor: int, worker: int, limit: Floats | None = None) -> bool:
        """Check whether an executor fits on a worker."""
        return bool(self.demand[executor] <= self.largest(limit)[worker])

    def fits(self, executors: Ints, workers: Ints, limit: Floats | None = None) -> Marks:
        """Mark the executors that fit, each on the worker of the same row."""
        return self.demand[executors] <= self.largest(limit)[workers]

    @cached_property
    def fits_if_empty(self) -> Marks:
        """(E,), the executors that some open worker has room for once it is empty."""
        largest = np.max(self.limit, where=self.cluster.is_open, initial=0.0)
        return self.demand <= largest + TOLERANCE_CORES

    def fits_together(self, executors: Ints, workers: Ints, limit: Floats) -> Marks:
        """Mark the workers with room for all that comes once it all moves at once, (W,).

        One that is too full may stay so.
        """
        need, count = self.demand[executors], len(self.used)
        more = np.bincount(workers, need, count)
        more -= np.bincount(self.place[executors], need, count)
        return more <= self.left(limit)

    def left(self, limit: Floats) -> Floats:
        """Compute by how much the load of each worker may grow, (W,), where none may shrink."""
        return np.maximum(self.largest(limit), TOLERANCE_CORES)

    def lacks(self, executors: Ints, workers: Ints) -> Floats:
        """Compute how much more room each executor needs on the worker of the same row."""
        return self.demand[executors] - self.room[workers]

    def relief(self, executors: Ints, worker: int) -> Floats:
        """Compute how much less is too much on a worker without each of its executors."""
        relief = np.minimum(self.demand[executors], -self.room[worker])
        return np.where(relief > TOLERANCE_CORES, relief, 0.0)

    def need(self, executor: int) -> str:
        """Write what an executor uses, with its unit."""
        return f"{self.demand[executor]:.3g} {self.resource.unit}"

    def why_not(self, executor: int, worker: int, limit: Floats | None = None) -> str | None:
        """Give the reason why an executor does not fit on a worker; None if it fits."""
        if self.has_room(executor, worker, limit):
            return None
        room = float(((self.limit if limit is None else limit) - self.used)[worker])
        return f"it does not fit: {self.need(executor)}, room for {max(room, 0):.3g}"

    def why_nowhere(self, executor: int, limit: Floats) -> str:
        """Give the reason why an executor fits on no worker."""
        room = max(float((limit - self.used).max()), 0.0)
        return (
            f"needs {self.need(executor)}, and no worker or free slot elsewhere "
            f"has more than {room:.3g} below {self.limits.high_frac:g} of its {self.resource.shown}"
        )

    def too_large(self, executor: int) -> str | None:
        """Give the reason why an executor fits on no empty worker; None if it does."""
        if float(self.demand[executor]) <= float(self.limit.max()):
            return None
        high = f"{self.limits.high_frac:g}"
        return f"alone needs {self.need(executor)}, more than {high} of any worker"

    def shown_room(self, worker: int) -> str:
        """Write what fits on a worker, with its unit."""
        return f"{self.room[worker]:.3g} {self.resource.unit}"

    def why_balanced(self) -> str:
        """Give the reason why no worker has too much or too little."""
        high, low = self.limits.high_frac, self.limits.low_frac
        return f"no worker is above {high:g} or below {low:g} of its {self.resource.shown}"

    def how_high(self, worker: int) -> str:
        """Describe how far above the limit a worker is."""
        name, shown = self.cluster.workers[worker], self.resource.shown
        return (
            f"{name} at {self.frac[worker]:.3g} of its {shown} is above {self.limits.high_frac:g}"
        )

    def what_is_missing(self) -> str:
        """Name the workers above the limit, and how much they lack in all."""
        high = np.flatnonzero(self.is_high)
        names = ", ".join(self.cluster.workers[w] for w in high)
        missing = f"{float(-self.room[high].sum()):.3g} {self.resource.unit} in all"
        return f"{names} above {self.limits.high_frac:g} of the {self.resource.shown} by {missing}"

    def overfilled(self, before: "Fit") -> str | None:
        """Name the fullest of the workers that are high and fuller than before; None without."""
        found = np.flatnonzero(self.is_high & (self.used > before.used))
        if not found.size:
            return None
        w = int(found[np.argmax(self.frac[found])])
        return (
            f"{self.cluster.workers[w]} would use {self.frac[w]:.0%} of its {self.resource.shown}, "
            f"and {self.resource.limit} is {self.limits.high_frac:.0%}"
        )

    def by(self, place_of: Ints, count: int) -> tuple[Floats, Floats]:
        """Add up load and capacity of places that workers are in, such as nodes: (count,) each."""
        used = np.bincount(place_of, self.used, count).astype(np.float64)
        capacity = np.bincount(place_of, self.capacity, count).astype(np.float64)
        return used, capacity


def made_of(cluster: Cluster, snapshot: LoadSnapshot) -> tuple[Floats, Floats]:
    """Give all that a `Fit` is made of but the placement, to see whether it has changed."""
    return cluster.capacity_cores, snapshot.cpu_cores


def room_of(used: float, capacity: float, limits: Limits) -> float:
    """Compute what fits on one worker until it is high; negative where it is."""
    return limits.high_frac * capacity - used


def why_not_all(need: float, room: float, where: str) -> str | None:
    """Give the reason why some executors do not fit together; None if they do."""
    if need <= room:
        return None
    return f"need {need:.3g} {CPU.unit}, and {where} have {room:.3g} below {CPU.limit}"


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a worker may use."""

    fixed_cores: float | None = setting("worker.cpu.capacity")  # of every worker

    @property
    def is_shared(self) -> bool:
        """Whether a worker has less once its node runs one more."""
        return self.fixed_cores is None

    def of(self, node: Node, more: int) -> float:
        """Compute what a worker has where `more` slots of its node are in use than Storm counts."""
        return self.fixed_cores or node.cpu_capacity / 100 / max(node.slots_in_use + more, 1)


def _sums(place: Ints, demand: Floats, workers: int) -> Floats:
    return sums(np.ascontiguousarray(place), np.ascontiguousarray(demand), workers)


@compiled
def sums(place: Ints, demand: Floats, workers: int) -> Floats:
    """Add up what the executors of each worker use, shape (W,)."""
    used = np.zeros(workers)
    for e in range(len(place)):
        used[place[e]] += demand[e]
    return used


@compiled
def holds(largest: Floats, worker: int, need: float) -> bool:
    """Check whether a worker has room, as `Fit.largest` computes it; a need of NaN fits nowhere."""
    return bool(need <= largest[worker])


@compiled
def shift(left: Floats, source: int, target: int, need: float) -> float:
    """Take load from one worker to another, and give how much more of it is too much.

    `left` is what is left on each worker, (W,), negative where it is too full.
    """
    # What is too much there from now on, less what was too much here until now.
    more = max(need - max(left[target], 0.0), 0.0) - max(min(need, -left[source]), 0.0)
    left[source] += need
    left[target] -= need
    return float(more)
