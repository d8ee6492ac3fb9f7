"""What a hop costs on the running cluster: seen at rest, and learnt from moves.

Some threads of a worker do nothing but send tuples to other workers and read theirs. Their CPU is
known without a move. What executors' own threads do for a hop is added as the lab has it. That is
what a hop is believed to cost, but no less than in the lab.

A run of moves changes how many tuples make a hop, and leaves all other work as it was. So the
change of a tuple's CPU is compared with what it would be by the lab's costs. The stays before and
after a run, each in one placement, make an equation:

    change of CPU = times · change of hops + cores of a JVM · change of JVMs

all divided by the tuples/s, so that the input's own change is taken out. What a JVM needs without
tuples is the other unknown: a worker that is left saves it. The equations are weighted by their own
noise and solved by ridge regression to the prior (A. E. Hoerl, R. W. Kennard, "Ridge regression",
Technometrics 12, 1970). One that does not agree with the others is given less weight (P. J. Huber,
"Robust estimation of a location parameter", Ann. Math. Stat. 35, 1964).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import structs

from controller.core.cluster import Floats, Ints
from controller.core.cold import COLD_S, cold_s
from controller.core.figures import LEAST, PRIOR_DEVIATION, HopFigures
from controller.core.hops import lab_hop_cores
from controller.core.metrics import Rates
from controller.core.picture import Picture

# How sure it is, in cores, that a JVM needs none at rest.
REST_DEVIATION = 0.1
# What the threads between workers may use without any tuple, in cores a worker: 0.002 in the lab.
IDLE_CORES = 0.005
# What executors' own threads do for a hop, as times what those between workers do: 0.65 in the lab.
OWN_TIMES = 0.65
# A stranger result is taken as far as this, as times what was believed before.
MOST_TIMES = 4.0
# After a move rates have something of before in them for so long.
SETTLE_S = 30.0
LOOK_S = 10.0
MOST_LOOKS = 18
# Smoothed rates of two looks have much in common. So their mean has this times the variance that it
# would have if they had nothing.
COMMON = 3.0
# A single look is no more exact than the first, and the mean of many than the second: caches, the
# collector, other work.
LOOK_FRAC, FLOOR_FRAC = 0.02, 0.01
# An equation more than this number of deviations off counts as if it was that many off.
HUBER = 3.0
# Batches grow with the input, and tuples get cheaper: beyond this factor nothing is compared.
INPUT_FACTOR = 1.25
# So does code that is compiled, with the time.
OLD_S = 1800.0
# With each equation those of before count less: a cluster changes.
FADE = 0.95


@dataclass(frozen=True, slots=True)
class Stay:
    """The means of a placement, for each tuple/s: CPU, that of hops in the lab, and JVMs."""

    begun_s: float  # monotonic; so is the next
    looked_s: float = 0.0
    looks: int = 0
    tps: float = 0.0
    cores: float = 0.0
    variance: float = 0.0  # of `cores`, in single looks
    hops: float = 0.0
    workers: float = 0.0

    def looked_at(
        self, now_s: float, tps: float, cores: float, hops: float, workers: int
    ) -> "Stay":
        """Take a look in; of many the last ones count."""
        part = 1 / (min(self.looks, MOST_LOOKS - 1) + 1)
        off = cores / tps - self.cores
        return Stay(
            self.begun_s,
            now_s,
            self.looks + 1,
            self.tps + part * (tps - self.tps),
            self.cores + part * off,
            (1 - part) * (self.variance + part * off * off),
            self.hops + part * (hops / tps - self.hops),
            self.workers + part * (workers / tps - self.workers),
        )

    @property
    def error(self) -> float:
        """The variance of the mean `cores`."""
        variance = max(self.variance, (LOOK_FRAC * self.cores) ** 2)
        return COMMON * variance / min(self.looks, MOST_LOOKS)


@dataclass(frozen=True, slots=True)
class Known:
    """Equations, added up; of two unknowns, the second is the cores of a JVM at rest.

    `prior` is what hops are believed to cost without them, as times the lab's.
    """

    matrix: Floats = field(default_factory=lambda: np.zeros((2, 2)))
    right: Floats = field(default_factory=lambda: np.zeros(2))
    runs: int = 0

    def found(self, prior: float) -> Floats:
        """(2,), not below 0, nor above what is believed of hops."""
        weight = _weight(prior)
        found = np.linalg.solve(self.matrix + weight, self.right + weight @ (prior, 0.0))
        return np.asarray(found.clip(0.0, (MOST_TIMES * prior, math.inf)), np.float64)

    def deviation(self, prior: float) -> float:
        return math.sqrt(np.linalg.inv(self.matrix + _weight(prior))[0, 0])

    def with_run(self, before: Stay, after: Stay, prior: float) -> "Known":
        """Add what a run of moves shows."""
        row = np.array([after.hops - before.hops, after.workers - before.workers])
        right = after.cores - before.cores
        noise = before.error + after.error + (FLOOR_FRAC * before.cores) ** 2
        off = right - float(row @ self.found(prior))
        doubt = float(row @ np.linalg.solve(self.matrix + _weight(prior), row))
        noise *= max(abs(off) / (HUBER * (noise + doubt) ** 0.5), 1.0) ** 2
        return Known(
            FADE * self.matrix + np.outer(row, row) / noise,
            FADE * self.right + row * right / noise,
            self.runs + 1,
        )


def _weight(prior: float) -> Floats:
    deviation = np.array([PRIOR_DEVIATION * prior, REST_DEVIATION])
    weight: Floats = np.diag(deviation**-2.0)
    return weight


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """What is remembered of a topology."""

    workers: tuple[str, ...] = ()  # of the cluster that was seen; so is the next
    place: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    incarnations: Mapping[str, str] = field(default_factory=dict)  # of the JVMs, by slot
    stay: Stay | None = None  # None while moves are under way
    before: Stay | None = None  # the last one that was looked at
    known: Known = field(default_factory=Known)  # of the runs before that
    prior: float = 1.0  # what hops cost by the threads between workers, as times the lab's
    looks_at_rest: int = 0  # that it is the mean of; of many the last ones count
    placed_s: float = -math.inf  # monotonic, when executors were last placed otherwise

    def with_rest(self, seen: float | None) -> "Learnt":
        """Take in what hops cost by the threads between workers; None if that cannot be seen.

        From the first report on: before code is compiled, all else costs more as well.
        """
        if seen is None:
            return self
        looks = self.looks_at_rest + 1
        prior = self.prior + (seen - self.prior) / min(looks, MOST_LOOKS)
        return replace(self, prior=prior, looks_at_rest=looks)

    @property
    def is_run(self) -> bool:
        """Whether the stays before and after the last run can be compared."""
        stay, before = self.stay, self.before
        if stay is None or before is None or not stay.looks:
            return False
        if stay.begun_s - before.looked_s > OLD_S:
            return False
        return max(stay.tps, before.tps) <= INPUT_FACTOR * min(stay.tps, before.tps)

    @property
    def all_known(self) -> Known:
        """With the last run, as far as it has been looked at."""
        if not self.is_run:
            return self.known
        assert self.before is not None and self.stay is not None
        return self.known.with_run(self.before, self.stay, self.prior)

    @property
    def figures(self) -> HopFigures:
        known, prior = self.all_known, self.prior
        times = round(float(known.found(prior)[0]), 3)
        deviation = known.deviation(prior)
        found = HopFigures(times, round(prior, 3), deviation, known.runs)
        if not self.is_run:
            return found
        assert self.before is not None and self.stay is not None
        was, now = self.before, self.stay
        hop, at_rest = self.known.found(prior)
        predicted = hop * (now.hops - was.hops) + at_rest * (now.workers - was.workers)
        return structs.replace(
            found,
            predicted_change=float(predicted / was.cores),
            measured_change=now.cores / was.cores - 1,
        )


def learn_each(
    before: Mapping[str, Learnt],
    pictures: Mapping[str, object],
    rates: Mapping[str, Rates],
    *,
    now_s: float,
) -> dict[str, Learnt]:
    """Look at topologies once more; one that cannot be measured stays as it was."""
    found = {}
    for topology, made in pictures.items():
        was = before.get(topology, Learnt())
        if isinstance(made, Picture):
            was = learn(was, made, rates[topology], now_s=now_s)
        found[topology] = was
    return found


def learn(was: Learnt, made: Picture, rates: Rates, *, now_s: float) -> Learnt:
    """Look at a topology once more; `now_s` is monotonic."""
    cluster, snapshot = made.cluster, made.snapshot
    if cluster.node_cores is None:
        return was
    if made.view.plan.entries:
        return _left(was)
    names = map(str, rates.slots)
    jvms = dict(zip(names, rates.incarnations, strict=True))
    same = was.workers == cluster.workers and np.array_equal(was.place, snapshot.place)
    if not same or was.stay is None:
        cold = cold_s(made.view.publication, snapshot.time_s)
        begun_s = now_s if was.workers else now_s - SETTLE_S + cold
        was = replace(
            _left(was),
            stay=Stay(begun_s),
            workers=cluster.workers,
            place=snapshot.place,
            placed_s=now_s if was.workers else -math.inf,
        )
    if any(was.incarnations.get(slot, jvm) != jvm for slot, jvm in jvms.items()):
        # A new JVM has not compiled its code.
        was = replace(was, before=None, stay=Stay(now_s - SETTLE_S + COLD_S))
    was = replace(was, incarnations=jvms)
    stay, tps = was.stay, snapshot.traffic.total_tps
    hops = float(lab_hop_cores(snapshot.traffic, snapshot.place, cluster.node_of).sum())
    if now_s - was.placed_s >= SETTLE_S:
        was = was.with_rest(times_at_rest(rates, hops))
    assert stay is not None
    if now_s - stay.begun_s < SETTLE_S or now_s - stay.looked_s < LOOK_S or tps <= LEAST:
        return was
    used, workers = float(snapshot.cpu_cores.sum()), len(np.unique(snapshot.place))
    return replace(was, stay=stay.looked_at(now_s, tps, used, hops, workers))


def times_at_rest(rates: Rates, hops: float) -> float | None:
    """Compute what hops cost, as times the lab's, by the threads between workers.

    Parameters
    ----------
    hops : float
        What they would cost in the lab, in cores.

    Returns
    -------
    float or None
        At least 1. None where workers do not report it, or send too little to each other.
    """
    carrying = rates.transport_cores
    idle = IDLE_CORES * len(carrying)
    # Of few tuples too much would be what the threads use without any.
    if not hops > idle or np.isnan(carrying).any():
        return None
    return max((1 + OWN_TIMES) * (float(carrying.sum()) - idle) / hops, 1.0)


def _left(was: Learnt) -> Learnt:
    """End a stay: keep what the run before it has shown."""
    stay = was.stay
    if stay is None or not stay.looks:
        return replace(was, stay=None)
    return replace(was, stay=None, before=stay, known=was.all_known)
