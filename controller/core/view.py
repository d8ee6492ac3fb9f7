"""The world of one decision: what may move, what fits, and what a move gains."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, place_after
from controller.core.distance import TrafficWeights, weighed
from controller.core.fit import SURE, Fit
from controller.core.kept import keeping
from controller.core.limits import Limits
from controller.core.loops import moves as loops
from controller.core.pairs import Pairs
from controller.core.reserve import Reserve

# A move for traffic fills a worker up to this share of the upper threshold. A worker filled to the
# threshold would be relieved at the next jitter of its load, and then filled again, for ever.
FILL_FRAC = 0.95

_NONE = np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Candidate moves, one a row, each array of shape (K,).

    `asc_tps` is the traffic brought inside nodes, unweighted; `score` is what the policy maximises.
    """

    executors: Ints
    workers: Ints
    asc_tps: Floats
    score: Floats

    def only(self, keep: NDArray[np.bool_] | Ints) -> "Moves":
        """Keep some rows, by mark or by index."""
        return Moves(self.executors[keep], self.workers[keep], self.asc_tps[keep], self.score[keep])


@dataclass(frozen=True, eq=False)
class View:
    """All that one decision looks at."""

    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    reserve: Reserve  # of the placement that the view was made for
    fit: Fit
    total_tps: float
    pairs: Pairs
    movable: NDArray[np.bool_]  # (E,), executors that may move
    # Pairs of nodes between which nothing more may move: the lower index, times N, plus the higher.
    taken: Ints
    # (N,), the open worker with most room of each node, of equal ones the first; -1 where none is
    # open.
    roomiest: Ints
    room: Floats  # (W,), what a move for traffic may bring; -inf where nothing may move to
    doubt: Floats  # (E,), what the gain of a move of the executor may be too high, in weighted t/s
    is_barring: bool = True  # whether moves for traffic are barred that fill a link or a space

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> "View":
        """Classify the workers and index the traffic."""
        reserve = Reserve.of(cluster, snapshot, limits)
        fit = reserve.fit
        pairs = Pairs.of(snapshot.traffic, len(snapshot.executors))
        return cls(
            cluster=cluster,
            snapshot=snapshot,
            limits=limits,
            reserve=reserve,
            fit=fit,
            total_tps=snapshot.traffic.total_tps,
            pairs=pairs,
            movable=snapshot.is_movable,
            taken=np.zeros(0, dtype=np.int64),
            roomiest=_roomiest(cluster, fit),
            room=fit.largest(_filled(fit)),
            doubt=_doubt(snapshot, limits),
        )

    @cached_property
    def world(self) -> loops.World:
        memory = self.fit.memory
        return loops.World(
            begin=self.pairs.begin,
            peer=self.pairs.peer,
            row=self.pairs.row,
            tps=self.snapshot.traffic.tps,
            hop_tps=self.fit.hop_rates.tps,
            hop_scale=self.fit.hop_rates.scale,
            place=self.snapshot.place,
            demand=self.fit.demand,
            doubt=self.doubt,
            node_of=self.cluster.node_of,
            unit_of=self.cluster.unit_of,
            hop=self.fit.hop,
            room=self.room,
            roomiest=self.roomiest,
            taken=self.taken,
            memory=_NONE if memory is None else memory.each_mb,
            memory_left=_NONE if memory is None else memory.left_mb(self.fit.place),
            weights=TrafficWeights.of(self.limits),
            bars=self.reserve.bars_of(self.fit) if self.is_barring else None,
        )

    @cached_property
    def bounds(self) -> tuple[Floats, Floats, Floats]:
        """Bounds on what the moves of an executor for traffic score, (E,) each.

        The last two are of moves within its node, and to others. The first one is of both, and is
        lowered, in place, to what was found when the executor was last looked at. That changes no
        answer, only how many executors have to be looked at again.
        """
        near, far = loops.bounds(self.world, self.movable)
        return np.maximum(near, far), near, far

    @property
    def loudest(self) -> Floats:
        """The most that each executor sends to one other or gets from it, (E,)."""
        traffic = self.snapshot.traffic
        return _loudest(traffic.source, traffic.target, traffic.tps, self.pairs.begin)

    def moved(self, executor: int, worker: int) -> "View":
        """View the placement after a move."""
        fit = self.fit.moved(executor, worker)
        return replace(
            self,
            snapshot=self.snapshot.moved(executor, worker),
            fit=fit,
            roomiest=_roomiest(self.cluster, fit),
            room=fit.largest(_filled(fit)),
        )

    def without(self, executor: int, worker: int) -> "View":
        """Leave out what must not move together with a move, which is not made yet.

        The executor stays, and so does everything between its node and the worker's.
        """
        node_of = self.cluster.node_of
        ends = np.sort(node_of[[self.snapshot.place[executor], worker]])
        movable = self.movable.copy()
        movable[executor] = False
        taken = np.append(self.taken, ends[0] * len(self.cluster.nodes) + ends[1])
        return replace(self, movable=movable, taken=taken)

    def overfills_a_link(self, executor: int, worker: int) -> bool:
        """Check whether a move uses more than `load.high` of a link, and more of it than now."""
        after = place_after(self.snapshot.place, [(executor, worker)])
        return self.reserve.links.fuller_at(after, self.limits.high_frac)

    def narrows(self, executor: int, worker: int) -> bool:
        """Check whether a move leaves too little room elsewhere than on the CPU."""
        return self.reserve.narrows(place_after(self.snapshot.place, [(executor, worker)]))

    def holding(self, executor: int) -> "View":
        """Let an executor stay."""
        movable = self.movable.copy()
        movable[executor] = False
        return replace(self, movable=movable)

    @property
    def threshold_tps(self) -> float:
        return self.limits.threshold_tps(self.total_tps, len(self.movable))

    def score(self, executors: Ints, workers: Ints) -> Moves:
        """Score the moves of all these executors to all these workers, executor by executor.

        Left out are those where the executor stays where it is, and those between nodes where
        nothing more may move.
        """
        return Moves(*loops.score(self.world, executors, workers))

    def movable_on(self, worker: int) -> Ints:
        """List what may move off a worker."""
        return np.flatnonzero(self.movable & (self.snapshot.place == worker))

    def why_not(self, executor: int, worker: int) -> str | None:
        """Give the reason why an executor that moves for traffic does not fit; None if it fits."""
        return self.fit.why_not(executor, worker, _filled(self.fit))

    def below(self, limit: Floats, moves: Moves) -> Moves:
        """Keep what goes to an open worker with room for it up to a limit, (W,)."""
        limit, ends = _if_open(self.fit, limit), (moves.executors, moves.workers)
        takes = self.reserve.takes(*ends, self.snapshot.place)
        return moves.only(self.fit.fits(*ends, limit) & takes)


@keeping
def _loudest(source: Ints, target: Ints, tps: Floats, begin: Ints) -> Floats:
    """Find it once for all placements of a decision."""
    return loops.loudest(source, target, tps, begin)


def _doubt(snapshot: LoadSnapshot, limits: Limits) -> Floats:
    traffic, movable = snapshot.traffic, snapshot.is_movable
    if traffic.var is None:
        return np.zeros(len(movable))
    times = SURE * weighed(TrafficWeights.of(limits), 1.0, 1.0)
    return loops.doubts(traffic.source, traffic.target, traffic.var, times, movable)


def _filled(fit: Fit) -> Floats:
    return _if_open(fit, fit.filled(FILL_FRAC))


def _if_open(fit: Fit, limit: Floats) -> Floats:
    return np.where(fit.cluster.is_open, limit, -np.inf)


def _roomiest(cluster: Cluster, fit: Fit) -> Ints:
    return loops.roomiest(fit.room, cluster.is_open, cluster.node_of, len(cluster.nodes))


def rounded(values: Floats) -> Floats:
    """Drop digits that come from the order of a sum, so that equal values compare equal."""
    return values.round(9)
