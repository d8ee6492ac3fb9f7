"""Lists the moves a decision may choose from, and what each of them gains."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.affinity import Affinity, by_node, by_worker
from controller.core.classify import TOLERANCE_CORES, Classes, Limits, classify
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot

# Of the executors that relieve a hot worker (nearly) as much as the best, traffic decides.
RELIEF_SLACK = 0.999
# A move for traffic leaves so much of the upper threshold free: a worker filled to the brim would
# be relieved at the next jitter of its load, and filled again after that, for ever.
FILL_FRAC = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Candidate moves, one a row.

    Attributes
    ----------
    executors, workers : Ints, shape (K,)
        What would move, and where to.
    asc_tps : Floats, shape (K,)
        Traffic brought inside nodes, unweighted.
    score : Floats, shape (K,)
        What the policy maximises.
    """

    executors: Ints
    workers: Ints
    asc_tps: Floats
    score: Floats

    def only(self, keep: NDArray[np.bool_] | Ints) -> "Moves":
        """Keep some rows.

        Parameters
        ----------
        keep : array of bool, shape (K,), or of indices
            Which.

        Returns
        -------
        Moves
            Those.
        """
        return Moves(self.executors[keep], self.workers[keep], self.asc_tps[keep], self.score[keep])


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All that one decision looks at."""

    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    classes: Classes
    node: Affinity
    worker: Affinity

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> "View":
        """Classify the workers and add up the traffic.

        Parameters
        ----------
        cluster : Cluster
            Places.
        snapshot : LoadSnapshot
            Load and traffic.
        limits : Limits
            Thresholds and weights.

        Returns
        -------
        View
            Ready to ask.
        """
        classes = classify(cluster, snapshot, limits)
        node, worker = by_node(cluster, snapshot), by_worker(cluster, snapshot)
        return cls(cluster, snapshot, limits, classes, node, worker)

    def score(self, executors: Ints, workers: Ints) -> Moves:
        """Score moves, leaving out those where the executor stays where it is.

        Parameters
        ----------
        executors, workers : Ints, shape (K,)
            Pairs.

        Returns
        -------
        Moves
            In the same order.
        """
        away = self.snapshot.place[executors] != workers
        executors, workers = executors[away], workers[away]
        asc = self.node.gain(executors, self.cluster.node_of[workers])
        asc_worker = self.worker.gain(executors, workers)
        score = self.limits.weight_node * asc + self.limits.weight_worker * asc_worker
        return Moves(executors, workers, asc, score)

    def movable_on(self, worker: int) -> Ints:
        """List what may move off a worker.

        Parameters
        ----------
        worker : int
            Index.

        Returns
        -------
        Ints
            Executors.
        """
        return np.flatnonzero(self.snapshot.is_movable & (self.snapshot.place == worker))

    def room_cores(self, fill: float) -> Floats:
        """Measure how much fits into each worker.

        Parameters
        ----------
        fill : float
            How much of the upper threshold may be used.

        Returns
        -------
        Floats, shape (W,)
            Cores, negative where it is full; a rounding error does not matter.
        """
        kept_free = (1 - fill) * self.limits.high_frac * self.cluster.capacity_cores
        return self.classes.room_cores - kept_free + TOLERANCE_CORES

    def fitting(self, moves: Moves, fill: float = FILL_FRAC) -> Moves:
        """Keep what goes to an open worker with room for it.

        Parameters
        ----------
        moves : Moves
            Candidates.
        fill : float
            How much of the upper threshold may be used.

        Returns
        -------
        Moves
            Those that pass.
        """
        fits = self.snapshot.cpu_cores[moves.executors] <= self.room_cores(fill)[moves.workers]
        return moves.only(fits & self.cluster.is_open[moves.workers])


def relieving(view: View, hot: int) -> Moves:
    """List the moves off a hot worker that fit and remove most of its excess.

    Parameters
    ----------
    view : View
        The world.
    hot : int
        A worker above the upper threshold.

    Returns
    -------
    Moves
        None if nobody can relieve it.
    """
    everywhere = np.arange(len(view.cluster.workers))
    moves = view.fitting(view.score(*product(view.movable_on(hot), everywhere)), fill=1.0)
    relief = np.minimum(view.snapshot.cpu_cores[moves.executors], -view.classes.room_cores[hot])
    best = relief.max(initial=0.0)
    return moves.only((relief > TOLERANCE_CORES) & (relief >= RELIEF_SLACK * best))


def gathering(view: View) -> Moves:
    """List the moves that fit and bring an executor to somebody it talks to.

    Parameters
    ----------
    view : View
        The world.

    Returns
    -------
    Moves
        To every worker it talks to, and to the roomiest worker of every node it talks to: of all
        moves that gain, the best is among these.
    """
    to_worker_e, to_worker = view.worker.neighbours()
    to_node_e, nodes = view.node.neighbours()
    roomiest = _roomiest_worker_of_each_node(view)[nodes]
    executors = np.concatenate([to_worker_e, to_node_e[roomiest >= 0]])
    workers = np.concatenate([to_worker, roomiest[roomiest >= 0]])
    movable = view.snapshot.is_movable[executors]
    return view.fitting(view.score(executors[movable], workers[movable]))


def opening_pairs(view: View, moves: Moves, threshold_tps: float) -> Moves:
    """List first moves that gain little or nothing, but open the way for a second that does.

    Parameters
    ----------
    view : View
        The world.
    moves : Moves
        What `gathering` found, none of it above the threshold.
    threshold_tps : float
        What one move has to gain; two have to gain twice as much.

    Returns
    -------
    Moves
        First moves; their score is the gain of both.

    Notes
    -----
    Two halves that each keep their own spout, split and counts are stable under single moves
    though they exchange half of all tuples. A pair is two executors that talk to each other and
    go to the same worker, the best one of either. Once the first is there, the second is the best
    single move and gains more than was lost, so this brings no placement back either.
    """
    traffic, snapshot = view.snapshot.traffic, view.snapshot
    movable = snapshot.is_movable
    talk = movable[traffic.source] & movable[traffic.target] & (traffic.source != traffic.target)
    one, other, tps = traffic.source[talk], traffic.target[talk], traffic.tps[talk]
    best = _best_worker_of_each_executor(view, moves)
    one, other, tps = np.tile(one, 2), np.tile(other, 2), np.tile(tps, 2)
    to = np.concatenate([best[one[: len(one) // 2]], best[other[: len(one) // 2]]])
    need = snapshot.cpu_cores[one] + snapshot.cpu_cores[other]
    fits = (to >= 0) & (need <= view.room_cores(FILL_FRAC)[to])
    fits &= (snapshot.place[one] != to) & (snapshot.place[other] != to)
    one, other, to, tps = one[fits], other[fits], to[fits], tps[fits]
    first, second = view.score(one, to), view.score(other, to)
    both = first.score + second.score + _counted_wrongly(view, one, other, to) * tps
    swap = second.score > first.score
    lead = Moves(
        np.where(swap, other, one), to, np.where(swap, second.asc_tps, first.asc_tps), both
    )
    single = np.maximum(np.maximum(first.score, second.score), 0.0)
    return lead.only(both > 2 * threshold_tps + single)


def _counted_wrongly(view: View, one: Ints, other: Ints, to: Ints) -> Floats:
    """Weigh what two single gains miss of the traffic between the two that move together."""
    place, node_of = view.snapshot.place, view.cluster.node_of
    n1, n2, n = node_of[place[one]], node_of[place[other]], node_of[to]
    node = 1.0 + (n1 == n2) - (n1 == n) - (n2 == n)
    worker = 1.0 + (place[one] == place[other])
    return np.asarray(view.limits.weight_node * node + view.limits.weight_worker * worker)


def _best_worker_of_each_executor(view: View, moves: Moves) -> Ints:
    """Index by executor; -1 where there is no candidate."""
    best = np.full(len(view.snapshot.executors), -1, dtype=np.int64)
    rising = np.lexsort((-moves.workers, rounded(moves.score)))
    best[moves.executors[rising]] = moves.workers[rising]
    return best


def _roomiest_worker_of_each_node(view: View) -> Ints:
    """Index by node; -1 where no worker is open."""
    usable = np.flatnonzero(view.cluster.is_open)
    falling = usable[np.argsort(-rounded(view.classes.room_cores[usable]), kind="stable")]
    nodes, first = np.unique(view.cluster.node_of[falling], return_index=True)
    roomiest = np.full(len(view.cluster.nodes), -1, dtype=np.int64)
    roomiest[nodes] = falling[first]
    return roomiest


def product(executors: Ints, workers: Ints) -> tuple[Ints, Ints]:
    """Pair all with all.

    Parameters
    ----------
    executors, workers : Ints
        Indices.

    Returns
    -------
    executors, workers : Ints
        Every pair, executors first.
    """
    return np.repeat(executors, len(workers)), np.tile(workers, len(executors))


def rounded(values: Floats) -> Floats:
    """Drop digits that come from the order of a sum, so that equal values compare equal.

    Parameters
    ----------
    values : Floats
        Any.

    Returns
    -------
    Floats
        With nine decimals.
    """
    return np.round(values, 9)
