"""What fits where: what is used of each worker's CPU, and up to where it may be filled.

The one place that adds load up, takes it away, and compares it with a limit. Amounts are in the
unit of the resource (`resources.py`). Workers share the CPU of their node. Where something limits
each worker, it has CPU of its own. What has the shape (W,) is of the CPU that a worker uses, so
workers of one node have the same number there.

Where workers share, the load of a placement counts the hops that it adds and saves (`hops.py`). A
placement may then leave no less room for input than today's.

Thresholds are absolute shares of the capacity. Relative to the mean they would stop algorithm 2 of
004 long before traffic is local. Queue lengths are left out: the paper prints no limit for them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from controller.core.capacity import Capacity
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Marks, Traffic, place_after
from controller.core.distance import TrafficWeights
from controller.core.hops import FREE, HOP, HopRates, hop_cores
from controller.core.limits import Limits
from controller.core.loops import moves as loops
from controller.core.node_memory import NodeMemory
from controller.core.pairs import Pairs
from controller.core.resources import CPU, Resource
from migration.model import Node

# Sums of loads in another order differ in the last digits; that must decide nothing.
TOLERANCE_CORES = 1e-9
# A gain, and a worker that is high, counts from this number of standard deviations on.
SURE, SURELY_HIGH = 2.0, 3.0
# What an executor can use: it is one thread.
THREAD_CORES = 1.0
# Of a worker's load: what is measured is no more exact than this, even where no variance is known.
NOISE_FRAC = 0.01
# No node has to leave more room than if each used by this share more than all do in the mean.
UNEVEN_FRAC = 0.1
# A move for room leaves at least this share of it more.
ROOM_FRAC = 0.05


_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Fit:
    """A placement of executors on the workers of a cluster, and what else fits there."""

    resource: ClassVar[Resource] = CPU

    cluster: Cluster
    limits: Limits
    place: Ints  # (E,), index of each executor's worker
    demand: Floats  # (E,), what each executor uses
    demand_var: Floats | None  # (E,), variance of `demand`; None: it is known exactly
    used: Floats  # (W,), also by others
    traffic: Traffic | None = None  # None: hops cost nothing
    kept: float | None = None  # by what factor load has to be able to grow; None: as now
    peak_times: float = 1.0  # as in `LoadSnapshot`
    memory: NodeMemory | None = None  # None: nothing counts it

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits | None = None) -> "Fit":
        """Add up what the executors use.

        Where a CPU is not low, one that lags counts with what it would use to keep up.
        """
        place, demand = snapshot.place, snapshot.cpu_cores
        found = cls.at(cluster, place, demand, limits or Limits(), snapshot.cpu_var)
        if snapshot.wanted_times is not None:
            times = np.where(found.is_low[place], 1.0, snapshot.wanted_times)
            demand = np.maximum(np.minimum(demand * times, THREAD_CORES), demand)
            found = cls.at(cluster, place, demand, found.limits, snapshot.cpu_var)
        memory = NodeMemory.of(cluster, snapshot)
        if cluster.node_cores is None:
            return found if memory is None else replace(found, memory=memory)
        traffic, peak_times = snapshot.traffic, snapshot.peak_times
        return replace(found, traffic=traffic, peak_times=peak_times, memory=memory)

    @classmethod
    def at(
        cls,
        cluster: Cluster,
        place: Ints,
        demand: Floats,
        limits: Limits,
        demand_var: Floats | None = None,
    ) -> "Fit":
        """Let hops cost nothing."""
        used = _used(cluster, place, demand)
        return cls(cluster, limits, place, demand, demand_var, used)

    def placed(self, place: Ints) -> "Fit":
        """Put the executors elsewhere."""
        if self.traffic is None:
            return self._with(place, self.demand, _used(self.cluster, place, self.demand))
        hops = self._hops_at(place)
        demand = self.demand + (hops - self.hops)
        after = self._with(place, demand, _used(self.cluster, place, demand))
        after.__dict__["hops"] = hops
        return after

    @property
    def hop(self) -> TrafficWeights:
        """What a tuple to the same node, and to the same worker, saves at each end."""
        return FREE if self.traffic is None else HOP

    @cached_property
    def hop_rates(self) -> HopRates:
        """What is sent, by what it costs on hops."""
        if self.traffic is None:
            return HopRates.free(len(self.place))
        cluster = self.cluster
        times, node_of = cluster.hop_times, cluster.node_of
        return HopRates.of(self.traffic, times, self.place, node_of, self.demand)

    @cached_property
    def hops(self) -> Floats:
        """(E,), what of `demand` is for hops."""
        return self._hops_at(self.place)

    def _hops_at(self, place: Ints) -> Floats:
        if self.traffic is None:
            return np.zeros(len(place))
        ends, rates = (self.traffic.source, self.traffic.target), self.hop_rates
        at, node_of = np.ascontiguousarray(place), self.cluster.node_of
        return hop_cores(*ends, rates.tps, rates.scale, at, node_of)

    def beside(self, others: Floats, unheard: Floats, peak: Floats) -> "Fit":
        """Let others use a part of each node, (N,), and keep one for those not heard of.

        And one for how much more others use at their peaks.
        """
        cluster = replace(
            self.cluster,
            other_cores=np.maximum(others, 0.0),
            peak_cores=np.maximum(peak, 0.0),
            unheard_cores=unheard if unheard.any() else None,
        )
        return replace(self, cluster=cluster, used=_used(cluster, self.place, self.demand))

    def keeping(self, growth: float) -> "Fit":
        """Let a placement leave as much room as load needs to grow by a factor."""
        return replace(self, kept=growth)

    def moved(self, executor: int, worker: int) -> "Fit":
        """Put one executor elsewhere."""
        return self.placed(place_after(self.place, [(executor, worker)]))

    def _with(self, place: Ints, demand: Floats, used: Floats) -> "Fit":
        after = replace(self, place=place, demand=demand, used=used)
        # As of the placement that it was made for.
        for name in ("hop_rates", "limit", "may_fill", "spared", "on_the_way"):
            after.__dict__[name] = getattr(self, name)
        return after

    @cached_property
    def capacity(self) -> Floats:
        """(W,), how much there is."""
        return self.cluster.unit_cores[self.cluster.unit_of]

    @cached_property
    def others(self) -> Floats:
        """(W,), what others than these executors use."""
        other = self.cluster.other_cores
        return np.zeros(len(self.used)) if other is None else other[self.cluster.unit_of]

    @cached_property
    def each_unit(self) -> Ints:
        """List one worker of each node whose CPU workers share; else all workers."""
        if self.cluster.node_cores is None:
            return np.arange(len(self.used))
        return np.unique(self.cluster.unit_of, return_index=True)[1].astype(np.int64)

    def by_unit(self, values: Floats) -> Floats:
        """Give values of workers, (W,), by whose CPU they use, (U,); infinite without a worker."""
        found = np.full(len(self.cluster.unit_cores), np.inf)
        found[self.cluster.unit_of] = values
        return found

    @property
    def own(self) -> Floats:
        """(W,), what the executors of each worker use."""
        return _sums(self.place, self.demand, len(self.used))

    @cached_property
    def limit(self) -> Floats:
        """(W,), what may be used before a worker is high."""
        return self.limits.high_frac * self.capacity

    def high_share(self, frac: float = 1.0) -> float:
        """Compute a part of the share of CPU or of a space above which a worker is relieved."""
        return frac * self.limits.high_frac

    @cached_property
    def may_fill(self) -> Floats:
        """(W,), up to where what comes may fill a CPU: the limit, less what is not heard of."""
        unheard = self.cluster.unheard_cores
        if unheard is None:
            return self.limit
        left = self.limit - unheard[self.cluster.node_of]
        return np.maximum(left, np.minimum(self.used, self.limit))

    @cached_property
    def growth(self) -> float:
        """The factor by which load may grow until a CPU is used whole; infinite without load.

        Equation 3 of 004 for the CPU: what others leave at their peaks, divided by what is used.
        """
        most = float(self.share.max(initial=0.0))
        return 1 / most if most > 0 else math.inf

    @property
    def growth_at_best(self) -> float:
        """The factor by which load may grow if no hop costs anything and all is spread evenly.

        No placement leaves more room. Infinite without load.
        """
        own, left = float((self.demand - self.hops).sum()), self.left_at_peaks[self.each_unit]
        return float(left.sum()) / own if own > 0 else math.inf

    @property
    def keeps(self) -> float:
        """The factor by which load has to be able to grow in another placement."""
        return self.kept or self.growth

    @cached_property
    def share(self) -> Floats:
        """(W,), what is used of all that others leave at their peaks."""
        return (self.used - self.others) / np.maximum(self.left_at_peaks, TOLERANCE_CORES)

    @cached_property
    def left_at_peaks(self) -> Floats:
        """(W,), what others than these executors leave at their peaks."""
        peak, left = self.cluster.peak_cores, self.capacity - self.others
        return left if peak is None else left - peak[self.cluster.unit_of]

    @cached_property
    def spared(self) -> Floats:
        """(W,), up to where a placement may use CPU and leave as much room for input as this one.

        Infinite where workers have CPU of their own: there a worker is no measure of the room. A
        node that does not bear the peak now may stay as it is, and no other becomes like it.
        """
        growth = self.keeps
        if self.cluster.node_cores is None or not 0 < growth < math.inf:
            return np.full(len(self.used), np.inf)
        leaving = self._leaving(growth)
        if growth >= self.peak_times:
            return leaving
        return np.maximum(self._leaving(self.peak_times), np.minimum(self.used, leaving))

    @cached_property
    def wanted(self) -> float:
        """The factor by which load should be able to grow on each node.

        It is `headroom.min` times the peak. Where all nodes together have less it is nearly as much
        as they have, and where a link has less, as much as that. But the peak at least.
        """
        left = float(np.maximum(self.left_at_peaks, 0.0)[self.each_unit].sum())
        of_all = left / max((1 + UNEVEN_FRAC) * float(self.demand.sum()), TOLERANCE_CORES)
        wanted = min(self.limits.headroom_min * self.peak_times, of_all, self.kept or math.inf)
        return max(wanted, self.peak_times)

    @property
    def roomy(self) -> Floats:
        """(W,), up to where CPU may be used if as much room is left as is `wanted`."""
        return self._leaving(self.wanted)

    @cached_property
    def _growth_where_any(self) -> float:
        """As `growth`, without nodes of which others leave nothing at their peaks."""
        most = float(self.share[self.left_at_peaks > TOLERANCE_CORES].max(initial=0.0))
        return 1 / most if most > 0 else math.inf

    @cached_property
    def roomier(self) -> Floats:
        """(W,), up to where CPU may be used if `ROOM_FRAC` more room is left than now."""
        return self._leaving((1 + ROOM_FRAC) * self._growth_where_any)

    def _leaving(self, growth: float) -> Floats:
        """Compute up to where CPU may be used if load can then grow by a factor, (W,)."""
        return self.others + np.maximum(self.left_at_peaks, 0.0) / growth

    @cached_property
    def on_the_way(self) -> Floats:
        """(W,), up to where CPU may be used on the way to another placement: the limit, or less.

        Input may then still grow to `headroom.min` times its peak, or by as much as now where that
        is less.
        """
        if self.cluster.node_cores is None:
            return self.limit
        growth = min(self.keeps, self.limits.headroom_min * self.peak_times)
        most = np.maximum(self._leaving(max(growth, 1.0)), self.used)
        return self.at_most(most)

    def at_most(self, limit: Floats) -> Floats:
        """(W,), a limit, or less where a CPU may not be filled so far."""
        return np.minimum(limit, self.may_fill)

    def filled(self, frac: float) -> Floats:
        """(W,), a share of the limit, or less where more would leave less room for input."""
        return np.minimum(self.at_most(frac * self.limit), self.spared)

    @cached_property
    def room(self) -> Floats:
        """(W,), what fits until the worker is high; negative where it is."""
        return self.limit - self.used

    @cached_property
    def frac(self) -> Floats:
        """(W,), the share of the capacity that is used; not finite where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
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
        unit_of = self.cluster.unit_of
        by_unit = np.bincount(unit_of[self.place], var, len(self.cluster.unit_cores))
        return np.sqrt(by_unit[unit_of])

    @cached_property
    def surely_high(self) -> Ints:
        """List the workers that are high, whatever their load may be measured wrong.

        None has no executor: what makes its node high is not there.
        """
        return self._surely_above(self.limit)

    @property
    def short(self) -> Ints:
        """List the workers of the one node that leaves less room than is `wanted`, surely.

        All others would leave `ROOM_FRAC` more, but for those of which others leave nothing: these
        no move mends. None where workers have CPU of their own: there a worker is no measure of the
        room.
        """
        if self.cluster.node_cores is None:
            return _NONE
        if not (1 + ROOM_FRAC) * self._growth_where_any <= self.wanted:
            return _NONE
        is_above = self.above(self.roomier) & (self.left_at_peaks > TOLERANCE_CORES)
        above, unit_of = np.flatnonzero(is_above), self.cluster.unit_of
        is_one = len(np.unique(unit_of[above])) == 1
        return np.intersect1d(self._surely_above(self.roomy), above) if is_one else _NONE

    def _surely_above(self, limit: Floats) -> Ints:
        above = self.above(limit)
        if self.demand_var is not None and above.any():
            above = limit - self.used < -SURELY_HIGH * self.deviation - TOLERANCE_CORES
        return np.intersect1d(np.flatnonzero(above), self.place) if above.any() else _NONE

    def high_behind(self, share: float) -> Ints:
        """List those of the `surely_high` that are less full than something else, which is high.

        `share` is what is used of all that others leave of that. Of a CPU that is full more room
        always counts. Workers with CPU of their own are no measure of the room for input.
        """
        if self.cluster.node_cores is None or share <= self.limits.high_frac:
            return _NONE
        high = self.surely_high
        return high[self.share[high] < min(share, 1.0)]

    @cached_property
    def excess(self) -> float:
        """What is used above the limits of all workers."""
        return self.excess_above(self.limit)

    def excess_of(self, worker: int, limit: Floats) -> float:
        """Compute what is used above a limit, (W,), of one worker; negative where it is not."""
        return float(self.used[worker] - limit[worker])

    def surely_freed(self, limit: Floats, place: Ints, other: Ints) -> bool:
        """Check whether of two placements the other has less above a limit, (W,), beyond noise."""
        above, less = (self.placed(one).excess_above(limit) for one in (place, other))
        var = 0.0 if self.demand_var is None else float(self.demand_var[place != other].sum())
        return above - less > SURELY_HIGH * math.sqrt(var) + TOLERANCE_CORES

    def excess_above(self, limit: Floats) -> float:
        """Add up what is used above a limit, (W,); rounded, for orders of a sum differ."""
        over = (self.used - limit)[self.each_unit]
        return round(float(over[over > TOLERANCE_CORES].sum()), 9)

    @cached_property
    def noise(self) -> Floats:
        """(W,), the change of `used` up to which a load counts as the same."""
        return np.maximum(SURE * self.deviation, NOISE_FRAC * self.used)

    @cached_property
    def most(self) -> Floats:
        """(W,), up to where an exchange may fill a worker: `on_the_way`, or more if it stays high.

        Where all open workers together are too full, one that is high may get fuller by the noise
        of its load. Executors of measured sizes are never quite alike, and on full workers none
        could ever take another's place.
        """
        open_to = np.isin(self.cluster.unit_of, self.cluster.unit_of[self.cluster.is_open])
        units = self.each_unit[open_to[self.each_unit]]
        crowded = self.room[units].sum() < -TOLERANCE_CORES
        return np.where(self.is_high & crowded, self.used + self.noise, self.on_the_way)

    def limit_or_used(self, frac: float) -> Floats:
        """Give a share of the limit; where more is used, that, up to the limit; (W,).

        It is less where more would leave less room for input.
        """
        most = np.maximum(frac * self.limit, np.minimum(self.used, self.limit))
        return np.minimum(self.at_most(most), self.spared)

    def steadied(self, before: "Fit", workers: Marks) -> "Fit":
        """Count the load of some workers as before, unless it fell by more than its noise."""
        same = workers & (self.used >= before.used - before.noise - TOLERANCE_CORES)
        return self._with(self.place, self.demand, np.where(same, before.used, self.used))

    @property
    def binding(self) -> int | None:
        """The worker that is full first as load grows; None where nothing is used."""
        return int(np.argmax(self.share)) if self.share.any() else None

    def room_by_node(self) -> dict[str, float]:
        """Compute what fits on each node until it is high; infinite where workers have their own.

        Also on nodes without a worker.
        """
        cluster = self.cluster
        if cluster.node_cores is None:
            return dict.fromkeys(cluster.nodes, math.inf)
        used = np.bincount(cluster.node_of, self.own, len(cluster.nodes)).astype(np.float64)
        if cluster.other_cores is not None:
            used = used + cluster.other_cores
        if cluster.unheard_cores is not None:
            used = used + cluster.unheard_cores
        room = self.limits.high_frac * cluster.node_cores - used
        return dict(zip(cluster.nodes, room.tolist(), strict=True))

    def largest(self, limit: Floats | None = None) -> Floats:
        """Compute the most that one more executor may use to fit on each worker, (W,).

        `limit` is up to where the workers may be filled, (W,).
        """
        return (self.limit if limit is None else limit) - self.used + TOLERANCE_CORES

    def largest_for(self, executor: int, limit: Floats) -> Floats:
        """As `largest`, of workers on nodes that have the memory for one executor; else -inf."""
        largest, everywhere = self.largest(limit), np.arange(len(self.used))
        if self.memory is None:
            return largest
        takes = self.memory.takes(np.full(len(everywhere), executor), everywhere, self.place)
        return np.where(takes, largest, -np.inf)

    def has_room(self, executor: int, worker: int, limit: Floats | None = None) -> bool:
        """Check whether an executor fits on a worker."""
        return bool(self.fits(np.array([executor]), np.array([worker]), limit)[0])

    def fits(self, executors: Ints, workers: Ints, limit: Floats | None = None) -> Marks:
        """Mark the executors that fit, each on the worker of the same row."""
        largest, homes = self.largest(limit), self.place[executors]
        saved, need = self._saved(executors, workers), self.demand[executors]
        fits = loops.hold(largest, self.cluster.unit_of, homes, workers, need, saved)
        if self.memory is not None:
            fits &= self.memory.takes(executors, workers, self.place)
        return fits

    def _saved(self, executors: Ints, workers: Ints) -> Floats:
        """Compute what hops save, (3, K), as in `near_each`."""
        if self.traffic is None or not len(executors):
            return np.zeros((3, len(executors)))
        pairs, rates = Pairs.of(self.traffic, len(self.place)), self.hop_rates
        links = pairs.begin, pairs.peer, pairs.row, rates.tps, rates.scale
        place, node_of = (np.ascontiguousarray(one) for one in (self.place, self.cluster.node_of))
        return loops.near_each(*links, place, node_of, self.hop, executors, workers)

    def more(self, executors: Ints, workers: Ints) -> tuple[Floats, Floats]:
        """Compute how much more each move uses where it comes to, and where it leaves, (K,) each.

        Within one node both are the same.
        """
        saved = self._saved(executors, workers)
        return loops.change_each(self._stays(executors, workers), self.demand[executors], saved)

    def _stays(self, executors: Ints, workers: Ints) -> Marks:
        """Mark the moves within a node whose CPU workers share, (K,)."""
        homes, unit_of = self.place[executors], self.cluster.unit_of
        stays: Marks = (unit_of[homes] == unit_of[workers]) & (homes != workers)
        return stays

    @cached_property
    def fits_if_empty(self) -> Marks:
        """(E,), the executors that some open worker has room for once it is empty."""
        largest = np.max(self.limit - self.others, where=self.cluster.is_open, initial=0.0)
        return self.demand <= largest + TOLERANCE_CORES

    def fits_together(self, executors: Ints, workers: Ints, limit: Floats) -> Marks:
        """Mark the workers with room for all that comes once it all moves at once, (W,).

        One that is too full may stay so.
        """
        place = self.place.copy()
        place[executors] = workers
        fits: Marks = self.placed(place).used - self.used <= self.left(limit)
        if self.memory is not None:
            over = self.memory.overfilled(place, self.place)
            fits &= ~np.isin(self.cluster.node_of, over)
        return fits

    def overfills_memory(self, place: Ints) -> bool:
        """Check whether a node holds more declared memory than it has, and than in this one."""
        return self.memory is not None and self.memory.overfilled(place, self.place).size > 0

    def left(self, limit: Floats) -> Floats:
        """Compute by how much the load of each worker may grow, (W,), where none may shrink."""
        return np.maximum(self.largest(limit), TOLERANCE_CORES)

    def lacks(self, executors: Ints, workers: Ints) -> Floats:
        """Compute how much more room each executor needs on the worker of the same row."""
        return self.more(executors, workers)[0] - self.room[workers]

    def relief(self, executors: Ints, workers: Ints, worker: int, limit: Floats) -> Floats:
        """Compute how much less is above a limit on a worker after each move away from it, surely.

        What stays there has to send over the network to what leaves. That may cost more than it is
        believed to.
        """
        saved, stays = self._saved(executors, workers), self._stays(executors, workers)
        went = loops.change_each(stays, self.demand[executors], saved)[1]
        went += self.cluster.hop_doubt * np.where(stays, 0.0, saved[1] - saved[0])
        excess = self.excess_of(worker, limit)
        relief = np.minimum(-went, excess)
        # A move within a node saves at most some hops, which alone are no relief.
        least = NOISE_FRAC * np.minimum(self.demand[executors], excess)
        return np.where(relief > np.maximum(least, TOLERANCE_CORES), relief, 0.0)

    def need(self, executor: int) -> str:
        """Write what an executor uses, with its unit."""
        return f"{self.demand[executor]:.3g} {self.resource.unit}"

    def why_not(self, executor: int, worker: int, limit: Floats | None = None) -> str | None:
        """Give the reason why an executor does not fit on a worker; None if it fits."""
        if self.has_room(executor, worker, limit):
            return None
        if (lacking := self.why_no_memory(executor, worker)) is not None:
            return f"it does not fit: {lacking}"
        # One that brings more hops to where it leaves than it takes away fits nowhere else.
        most = self.limit if limit is None else limit
        room = max(float((most - self.used)[worker]), 0.0)
        why = f"it does not fit: {self.need(executor)}, room for {room:.3g}"
        keeps_head_room = self.spared[worker] <= most[worker] < self.limit[worker]
        return f"{why} if head-room stays at {self.keeps:.3g}" if keeps_head_room else why

    def why_no_memory(self, executor: int, worker: int) -> str | None:
        """Give the reason why an executor may not come to a node for the memory it declares."""
        ends = np.array([executor]), np.array([worker])
        if self.memory is None or self.memory.takes(*ends, self.place)[0]:
            return None
        return self.memory.why_not(executor, worker, self.place)

    def why_nowhere(self, executor: int, limit: Floats) -> str:
        """Give the reason why an executor fits on no worker."""
        roomiest = int(np.argmax(limit - self.used))
        if (lacking := self.why_no_memory(executor, roomiest)) is not None:
            return f"fits on no worker or free slot elsewhere: {lacking}"
        room = max(float((limit - self.used).max()), 0.0)
        return (
            f"needs {self.need(executor)}, and no worker or free slot elsewhere "
            f"has more than {room:.3g} below {self.limits.high_frac:g} of its {self.resource.shown}"
        )

    def too_large(self, executor: int) -> str | None:
        """Give the reason why an executor fits on no empty worker; None if it does."""
        need, left = float(self.demand[executor]), float((self.limit - self.others).max())
        if need <= left:
            return None
        high = f"{self.limits.high_frac:g}"
        if need <= float(self.limit.max()):
            room = f"{max(left, 0.0):.3g} {self.resource.unit}"
            return f"needs {self.need(executor)}, and others leave {room} below {high} at most"
        return f"alone needs {self.need(executor)}, more than {high} of any worker"

    def shown_room(self, worker: int) -> str:
        """Write what fits on a worker, with its unit."""
        return f"{self.room[worker]:.3g} {self.resource.unit}"

    def why_balanced(self) -> str:
        """Give the reason why no worker has too much or too little."""
        high, low = self.limits.high_frac, self.limits.low_frac
        return f"no worker is above {high:g} or below {low:g} of its {self.resource.shown}"

    def name_of(self, worker: int) -> str:
        """Name the node whose CPU a worker uses, or the worker if it has its own."""
        unit = int(self.cluster.unit_of[worker])
        return self.cluster.unit_names[unit]

    def how_high(self, worker: int) -> str:
        """Describe how far above the limit a worker is."""
        name, shown = self.name_of(worker), self.resource.shown
        whole = max(float(self.capacity[worker]), TOLERANCE_CORES)
        others = float(self.others[worker]) / whole
        by_others = f", {others:.2g} of it by others," if others >= NOISE_FRAC else ""
        high = f"{self.limits.high_frac:g}"
        return f"{name} at {self.frac[worker]:.3g} of its {shown}{by_others} is above {high}"

    def how_short(self, worker: int) -> str:
        """Describe how little room a worker leaves."""
        return (
            f"input can grow {1 / self.share[worker]:.3g} times until {self.name_of(worker)} is "
            f"full, and {self.wanted:.3g} times is wanted"
        )

    def what_is_missing(self) -> str:
        """Name the workers above the limit, and how much they lack in all."""
        high = self.each_unit[self.is_high[self.each_unit]]
        names = ", ".join(map(self.name_of, high.tolist()))
        missing = f"{float(-self.room[high].sum()):.3g} {self.resource.unit} in all"
        return f"{names} above {self.limits.high_frac:g} of the {self.resource.shown} by {missing}"

    def overfilled(self, before: "Fit") -> str | None:
        """Name the fullest of the workers that are high and fuller than before; None without.

        Else a node that holds too much declared memory, and more than before.
        """
        found = np.flatnonzero(self.is_high & (self.used > before.used))
        if not found.size:
            memory = self.memory
            return None if memory is None else memory.why_overfilled(self.place, before.place)
        w = int(found[np.argmax(self.frac[found])])
        return (
            f"{self.name_of(w)} would use {self.frac[w]:.0%} of its {self.resource.shown}, "
            f"and {self.resource.limit} is {self.limits.high_frac:.0%}"
        )

    def seen_by(self, place_of: Ints, count: int) -> tuple[Floats, Floats]:
        """Compute what is used of each place, and by what factor load may grow: (count,) each.

        Of nodes with what others use there. NaN where there is no capacity, or no load.
        """
        used, capacity = self.by(place_of, count)
        other = self.cluster.other_cores
        others = np.zeros(count)
        if other is not None and place_of is self.cluster.node_of:
            others = other
        unknown = np.full(count, np.nan)
        return (
            np.divide(used + others, capacity, out=unknown.copy(), where=capacity > 0),
            np.divide(capacity - others, used, out=unknown, where=used > 0),
        )

    def by(self, place_of: Ints, count: int) -> tuple[Floats, Floats]:
        """Add up load and capacity of places that workers are in, such as nodes: (count,) each."""
        used = np.bincount(place_of, self.own, count).astype(np.float64)
        units = len(self.cluster.unit_cores)
        place, unit = np.divmod(np.unique(place_of * units + self.cluster.unit_of), units)
        capacity = np.bincount(place, self.cluster.unit_cores[unit], count)
        return used, capacity.astype(np.float64)


def made_of(cluster: Cluster, snapshot: LoadSnapshot) -> tuple[Floats, ...]:
    """Give all that a `Fit` is made of but the placement, to see whether it has changed."""
    if cluster.node_cores is None:
        return cluster.capacity_cores, snapshot.cpu_cores
    fit = Fit.of(cluster, snapshot)
    # In another placement it differs by rounding.
    return cluster.node_cores, fit.others, (fit.demand - fit.hops).round(9)


def predicted(cluster: Cluster, snapshot: LoadSnapshot, place: Ints) -> LoadSnapshot:
    """Place executors elsewhere, with the CPU that they then use."""
    if cluster.node_cores is None:
        return snapshot.placed(place)
    return snapshot.placed(place, Fit.of(cluster, snapshot).placed(place).demand)


def beside_each_other(
    fits: Mapping[str, Fit],
    unmeasured: Iterable[Node],
    outside: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Fit]:
    """Count, for each topology, what all others use of the nodes whose CPU workers share.

    And how much more they use at their peaks. A heap does not count so: what lives there grows with
    state, and hardly with the input.

    `unmeasured` has the node of each worker whose load is not known. An even share of its node is
    no room then. It is no load either: one that restarts must not make others move. `outside` has
    the cores of each node that no worker uses and Storm cannot have. Those may be of a worker whose
    load is not known.
    """
    used: defaultdict[str, float] = defaultdict(float)
    peak: defaultdict[str, float] = defaultdict(float)
    unheard: defaultdict[str, float] = defaultdict(float)
    for node in unmeasured:
        unheard[node.id] += Capacity().of(node, more=0)
    for node_id, cores in outside.items():
        if node_id in unheard:
            unheard[node_id] = max(unheard[node_id], cores)
        else:
            used[node_id] += cores
    own = {
        name: fit.by(fit.cluster.node_of, len(fit.cluster.nodes))[0] for name, fit in fits.items()
    }
    for name, fit in fits.items():
        for node_id, cores in zip(fit.cluster.nodes, own[name].tolist(), strict=True):
            used[node_id] += cores
            peak[node_id] += cores * (fit.peak_times - 1)
    return {
        name: fit.beside(
            np.array([used[node] for node in fit.cluster.nodes]) - own[name],
            np.array([unheard[node] for node in fit.cluster.nodes]),
            np.array([peak[node] for node in fit.cluster.nodes]) - own[name] * (fit.peak_times - 1),
        )
        for name, fit in fits.items()
    }


def outside_cores(
    nodes: Sequence[Node], workers: Iterable[tuple[str, float]], busy: Floats, cores: Floats
) -> dict[str, float]:
    """Compute, by node, the CPU that Storm counts for it and that is not left for workers.

    It is what Storm counts, less what workers use and what the machine has idle. So processes
    outside of Storm count once they use what Storm was given. `workers` has the node and the cores
    of each. `busy` is what all processes of each machine use of its `cores`, (N,), NaN where that
    is not known. Those nodes are left out.
    """
    used: defaultdict[str, float] = defaultdict(float)
    for node_id, each in workers:
        used[node_id] += each
    idle = np.maximum(cores - busy, 0.0).tolist()
    left = ((one.id, used[one.id] + n) for one, n in zip(nodes, idle, strict=True))
    given = {one.id: one.cpu_capacity / 100 for one in nodes}
    return {name: given[name] - n for name, n in left if n < given[name]}


def shifted_cores(
    snapshot: LoadSnapshot, moves: Iterable[tuple[str, str, str]]
) -> Iterator[tuple[str, float]]:
    """List by how much more is used of nodes after moves: executor, and the nodes of its ends.

    What hops add or save is left out.
    """
    for executor, source, target in moves:
        need = float(snapshot.cpu_cores[snapshot.executors.index(executor)])
        yield source, -need
        yield target, need


def with_others(cluster: Cluster, more: Mapping[str, float]) -> Cluster:
    """Let others use so much more of some nodes whose CPU workers share."""
    if cluster.node_cores is None or not more:
        return cluster
    others = np.array([more.get(node, 0.0) for node in cluster.nodes])
    if cluster.other_cores is not None:
        others += cluster.other_cores
    return replace(cluster, other_cores=np.maximum(others, 0.0))


def _used(cluster: Cluster, place: Ints, demand: Floats) -> Floats:
    if cluster.node_cores is None:
        return _sums(place, demand, len(cluster.workers))
    used = _sums(cluster.node_of[place], demand, len(cluster.nodes))
    return (used if cluster.other_cores is None else used + cluster.other_cores)[cluster.node_of]


def _sums(place: Ints, demand: Floats, places: int) -> Floats:
    return loops.sums(place, demand, places)
