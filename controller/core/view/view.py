"""The world of one decision: what may move, what fits, and what a move gains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import TOLERANCE_CORES, Classes, Limits, classify
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.view.neighbours import Neighbours, found, sums
from controller.core.view.ties import Ties, ties, ties_of

# A move for traffic leaves so much of the upper threshold free: a worker filled to the brim would
# be relieved at the next jitter of its load, and filled again after that, for ever.
FILL_FRAC = 0.95
# Where so many pairs at most are added up for one that is asked for, a table is fastest.
SPARE_CELLS = 8


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
        rows = keep.nonzero()[0] if keep.dtype == np.bool_ else keep
        executors, workers = self.executors.take(rows), self.workers.take(rows)
        return Moves(executors, workers, self.asc_tps.take(rows), self.score.take(rows))


def joined(parts: Sequence[Moves]) -> Moves:
    """Put lists of moves together.

    Parameters
    ----------
    parts : sequence of Moves
        Any number.

    Returns
    -------
    Moves
        All rows, in order.
    """
    return Moves(
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.executors for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.workers for part in parts)]),
        np.concatenate([np.zeros(0), *(part.asc_tps for part in parts)]),
        np.concatenate([np.zeros(0), *(part.score for part in parts)]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All that one decision looks at; after a move most of it is carried on to the next.

    Attributes
    ----------
    cluster, snapshot, limits : Cluster, LoadSnapshot, Limits
        What it is of.
    classes : Classes
        The workers' load.
    total_tps : float
        All traffic.
    neighbours : Neighbours
        The traffic by executor.
    node : Ints, shape (E,)
        Node of each executor.
    ties : Ties
        What holds and draws each executor.
    movable : array of bool, shape (E,)
        Executors that may move.
    taken : Ints
        Pairs of nodes, as `pair_codes`, between which nothing more may move.
    roomiest : Ints, shape (N,)
        The open worker with most room of each node; -1 where none is open.
    room : Floats, shape (W,)
        How much a move for traffic may bring; nothing where nothing may move to.
    most : Floats, shape (E,)
        No move of the executor for traffic scores more, wherever there is room.
    bound : Floats, shape (E,)
        The same, but lowered to what was found when the executor was last looked at. It changes
        in place, which changes no answer: only how many executors have to be looked at again.
    """

    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    classes: Classes
    total_tps: float
    neighbours: Neighbours
    node: Ints
    ties: Ties
    movable: NDArray[np.bool_]
    taken: Ints
    roomiest: Ints
    room: Floats
    most: Floats
    bound: Floats

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
        neighbours = Neighbours.of(snapshot.traffic, len(snapshot.executors))
        node = cluster.node_of[snapshot.place]
        held = ties(neighbours, snapshot.place, node, len(cluster.nodes))
        most = np.where(snapshot.is_movable, _most(limits, held), -np.inf)
        nowhere = np.full(len(cluster.nodes), -1, dtype=np.int64)
        return cls(
            cluster=cluster,
            snapshot=snapshot,
            limits=limits,
            classes=classes,
            total_tps=snapshot.traffic.total_tps,
            neighbours=neighbours,
            node=node,
            ties=held,
            movable=snapshot.is_movable,
            taken=np.zeros(0, dtype=np.int64),
            roomiest=_roomiest(cluster, classes, nowhere, np.arange(len(cluster.workers))),
            room=_room_for_traffic(cluster, classes, limits),
            most=most,
            bound=most.copy(),
        )

    def moved(self, executor: int, worker: int) -> "View":
        """Carry everything on to the placement after a move.

        Parameters
        ----------
        executor, worker : int
            Indices.

        Returns
        -------
        View
            Equal to a new one of the snapshot after the move.

        Notes
        -----
        The ties of the executor and of its neighbours change. What was found out about the others
        still bounds what they gain, but for those that may fit now where they did not.
        """
        before, there = int(self.node[executor]), int(self.cluster.node_of[worker])
        snapshot = self.snapshot.moved(executor, worker)
        classes = classify(self.cluster, snapshot, self.limits)
        at = self.cluster.node_of
        at_either = ((at == before) | (at == there)).nonzero()[0]
        roomiest = _roomiest(self.cluster, classes, self.roomiest, at_either)
        node, most, bound = self.node.copy(), self.most.copy(), self.bound.copy()
        node[executor] = there
        is_touched = np.zeros(len(node), dtype=np.bool_)
        is_touched[self.neighbours.pairs.peers(np.array([executor]))] = True
        is_touched[executor] = True
        touched = is_touched.nonzero()[0]
        held = ties_of(self.neighbours, touched, snapshot.place, node, len(self.cluster.nodes))
        most[touched] = np.where(self.movable[touched], _most(self.limits, held), -np.inf)
        for stale in (touched, *self._newly_fitting(executor, there, roomiest)):
            bound[stale] = most.take(stale)
        return replace(
            self,
            snapshot=snapshot,
            classes=classes,
            node=node,
            ties=self.ties.updated(touched, held),
            roomiest=roomiest,
            room=_room_for_traffic(self.cluster, classes, self.limits),
            most=most,
            bound=bound,
        )

    def _newly_fitting(self, executor: int, there: int, roomiest: Ints) -> Iterator[Ints]:
        """List who talks to the two nodes of a move and was too big for what is offered there now.

        The worker that was left has more room, and another one may be the roomiest of its node.
        """
        before, cores = int(self.node[executor]), self.snapshot.cpu_cores
        changed = {n for n in (before, there) if roomiest[n] != self.roomiest[n]} | {before}
        biggest = cores.max()
        for n in sorted(changed):
            was = self.room[self.roomiest[n]]
            if n == before:
                was = min(was, self.room[self.snapshot.place[executor]])
            if biggest > was:
                talking = self.neighbours.pairs.peers((self.node == n).nonzero()[0])
                yield talking[cores.take(talking) > was]

    def without(self, executor: int, worker: int) -> "View":
        """Leave out what must not move together with a move.

        Parameters
        ----------
        executor, worker : int
            Indices, before the move is made.

        Returns
        -------
        View
            The executor stays, and so does everything between its node and the worker's.
        """
        pair = self.pair_codes(np.array([executor]), np.array([worker]))
        movable, most, bound = self.movable.copy(), self.most.copy(), self.bound.copy()
        movable[executor] = False
        most[executor] = bound[executor] = -np.inf
        taken = np.append(self.taken, pair)
        return replace(self, movable=movable, most=most, bound=bound, taken=taken)

    @property
    def threshold_tps(self) -> float:
        """What a move for traffic must gain."""
        return self.limits.threshold_tps(self.total_tps, len(self.node))

    def pair_codes(self, executors: Ints, workers: Ints) -> Ints:
        """Number the pairs of nodes that moves are between, whatever the direction.

        Parameters
        ----------
        executors, workers : Ints, shape (K,)
            Moves.

        Returns
        -------
        Ints, shape (K,)
            One number a pair of nodes.
        """
        source, target = self.node[executors], self.cluster.node_of[workers]
        low, high = np.minimum(source, target), np.maximum(source, target)
        return np.asarray(low * len(self.cluster.nodes) + high)

    def may(self, executors: Ints, workers: Ints) -> NDArray[np.bool_]:
        """Tell which pairs are moves at all, and between nodes where something may still move.

        Parameters
        ----------
        executors, workers : Ints, shape (K,)
            Pairs.

        Returns
        -------
        array of bool, shape (K,)
            False where the executor stays where it is.
        """
        away: NDArray[np.bool_] = self.snapshot.place[executors] != workers
        if self.taken.size:
            away &= ~np.isin(self.pair_codes(executors, workers), self.taken)
        return away

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
        keep = self.may(executors, workers)
        executors, workers = executors[keep], workers[keep]
        nodes, workers_count = len(self.cluster.nodes), len(self.cluster.workers)
        target = self.cluster.node_of[workers]
        asc = self._talk(executors, target, self.node, nodes) - self.ties.node_tps[executors]
        if not self.limits.weight_worker:
            return self.weighed(executors, workers, asc, np.zeros(len(asc)))
        talk = self._talk(executors, workers, self.snapshot.place, workers_count)
        return self.weighed(executors, workers, asc, talk - self.ties.worker_tps[executors])

    def score_to(self, executors: Ints, worker: int) -> Moves:
        """Score moves to one worker, as `score` does but looking only at whom it is near to.

        Parameters
        ----------
        executors : Ints, shape (K,)
            Who moves.
        worker : int
            Where to.

        Returns
        -------
        Moves
            In the same order.
        """
        executors = executors[self.may(executors, np.full_like(executors, worker))]
        near = (self.node == self.cluster.node_of[worker]).nonzero()[0]
        which, peer, tps = self.neighbours.rows(near)
        inside = (self.snapshot.place.take(near) == worker).take(which)
        node, own = (
            np.bincount(who, much, len(self.node)).take(executors)
            for who, much in ((peer, tps), (peer[inside], tps[inside]))
        )
        return self.weighed(
            executors,
            np.full_like(executors, worker),
            node - self.ties.node_tps.take(executors),
            own - self.ties.worker_tps.take(executors),
        )

    def _talk(self, executors: Ints, places: Ints, home: Ints, count: int) -> Floats:
        """Look up the traffic of executors with places, given the place of every executor."""
        is_asked = np.zeros(len(home), dtype=np.bool_)
        is_asked[executors] = True
        asked, row = is_asked.nonzero()[0], is_asked.cumsum() - 1
        which, peer, tps = self.neighbours.rows(asked)
        codes = which * count + home.take(peer)
        wanted = row.take(executors) * count + places
        if len(asked) * count <= SPARE_CELLS * len(wanted):
            cells = np.bincount(codes, tps, len(asked) * count)
            return cells.astype(np.float64, copy=False).take(wanted)
        codes, tps = sums(codes, tps)
        return found(codes, tps, wanted)

    def weighed(self, executors: Ints, workers: Ints, asc: Floats, asc_worker: Floats) -> Moves:
        """Put together moves whose gains are known.

        Parameters
        ----------
        executors, workers : Ints, shape (K,)
            Moves.
        asc, asc_worker : Floats, shape (K,)
            What each brings inside nodes and inside workers.

        Returns
        -------
        Moves
            With their scores.
        """
        # Sums in another order differ in the last digits; inside a node that is no gain.
        asc = np.where(self.cluster.node_of[workers] == self.node[executors], 0.0, asc)
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
        return np.flatnonzero(self.movable & (self.snapshot.place == worker))

    def fits(self, executors: Ints, workers: Ints, fill: float = FILL_FRAC) -> NDArray[np.bool_]:
        """Tell which moves go to an open worker with room for the executor.

        Parameters
        ----------
        executors, workers : Ints, shape (K,)
            Moves.
        fill : float
            How much of the upper threshold may be used.

        Returns
        -------
        array of bool, shape (K,)
            True where it fits; a rounding error does not matter.
        """
        more = (fill - FILL_FRAC) * self.limits.high_frac * self.cluster.capacity_cores
        room = self.room + more if fill != FILL_FRAC else self.room
        return np.asarray(self.snapshot.cpu_cores.take(executors) <= room.take(workers))

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
        return moves.only(self.fits(moves.executors, moves.workers, fill))


def _roomiest(cluster: Cluster, classes: Classes, before: Ints, workers: Ints) -> Ints:
    """Find the roomiest open worker of each node, given all workers of those that changed."""
    usable = workers[cluster.is_open[workers]]
    falling = usable[(-rounded(classes.room_cores[usable])).argsort(kind="stable")][::-1]
    roomiest = before.copy()
    roomiest[cluster.node_of[falling]] = falling  # the last one written stays
    return roomiest


def _room_for_traffic(cluster: Cluster, classes: Classes, limits: Limits) -> Floats:
    kept_free = (1 - FILL_FRAC) * limits.high_frac * cluster.capacity_cores
    room = classes.room_cores - kept_free + TOLERANCE_CORES
    return np.where(cluster.is_open, room, -np.inf)


def _most(limits: Limits, held: Ties) -> Floats:
    """Bound the score: all that an executor may find on one worker of its strongest node."""
    drawn = (limits.weight_node + limits.weight_worker) * held.strongest_tps
    return np.asarray(
        drawn - limits.weight_node * held.node_tps - limits.weight_worker * held.worker_tps
    )


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
    return values.round(9)
