"""Traffic by executor, and sums of it by place."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from controller.core.cluster import Floats, Ints, Traffic

# So many rows are added up to so many pairs of executor and node at once; as floats they fit into
# the cache, and into memory that need not be mapped anew each time.
ROWS, CELLS = 1 << 13, 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Who talks to whom, to be asked by executor, in both directions.

    Attributes
    ----------
    source, target : Ints, shape (P,)
        The executors of each pair, sorted by source.
    tps : Floats, shape (P,)
        Tuples per second.
    sends : Ints, shape (E + 1,)
        Where the pairs of each executor that sends begin, and the end.
    into : Ints, shape (P,)
        The pairs sorted by target.
    receives : Ints, shape (E + 1,)
        Where in `into` those of each executor that receives begin, and the end.
    """

    source: Ints
    target: Ints
    tps: Floats
    sends: Ints
    into: Ints
    receives: Ints

    @classmethod
    def of(cls, traffic: Traffic, count: int) -> "Neighbours":
        """Index traffic by executor; done once for a traffic, however often it is asked for.

        Parameters
        ----------
        traffic : Traffic
            Sorted by source.
        count : int
            Number of executors.

        Returns
        -------
        Neighbours
            Without what an executor sends itself: that never crosses anything.
        """
        known = _INDEXED.get(traffic)
        if known is None or len(known.sends) != count + 1:
            known = _INDEXED[traffic] = cls._build(traffic, count)
        return known

    @classmethod
    def _build(cls, traffic: Traffic, count: int) -> "Neighbours":
        source, target, tps = traffic.source, traffic.target, traffic.tps
        apart = source != target
        if not apart.all():
            source, target, tps = source[apart], target[apart], tps[apart]
        sends, receives = _begins(source, count), _begins(target, count)
        return cls(source, target, tps, sends, sorted_by(target), receives)

    def rows(self, executors: Ints) -> tuple[Ints, Ints, Floats]:
        """Find all that some executors send, and then all that they receive.

        Parameters
        ----------
        executors : Ints, shape (K,)
            Which; rising.

        Returns
        -------
        which : Ints
            Position in `executors` of each row; one of two that send to each other has two rows.
        peer : Ints
            The executor at the other end.
        tps : Floats
            Tuples per second.
        """
        which, sent, received = self._rows(executors)
        into = self.into[received]
        peer = np.concatenate([self.target[sent], self.source.take(into)])
        return which, peer, np.concatenate([self.tps[sent], self.tps.take(into)])

    def peers(self, executors: Ints) -> Ints:
        """List whom some executors talk to.

        Parameters
        ----------
        executors : Ints, shape (K,)
            Which; rising.

        Returns
        -------
        Ints
            Once a pair.
        """
        _, sent, received = self._rows(executors)
        return np.concatenate([self.target[sent], self.source.take(self.into[received])])

    def _rows(self, executors: Ints) -> tuple[Ints, Ints | slice, Ints | slice]:
        """Number the rows by the position of their executor, and find them in both orders."""
        begin = np.concatenate([self.sends.take(executors), self.receives.take(executors)])
        after = executors + 1
        length = np.concatenate([self.sends.take(after), self.receives.take(after)]) - begin
        count, ends = len(executors), length.cumsum()
        everyone = np.arange(count)
        which = np.concatenate([everyone, everyone]).repeat(length)
        if not count:
            return which, slice(0), slice(0)
        sent = int(ends[count - 1])
        if executors[-1] - executors[0] == count - 1:
            sends, receives = int(begin[0]), int(begin[count])
            return which, slice(sends, sends + sent), slice(receives, receives + len(which) - sent)
        rows = np.arange(len(which)) + (begin - ends + length).repeat(length)
        return which, rows[:sent], rows[sent:]


def _begins(ends: Ints, count: int) -> Ints:
    """Tell where the rows of each executor begin, once they are sorted."""
    begins = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=count), out=begins[1:])
    return begins


# Indexing costs as much as a decision, and traffic outlives many: every step of a walk, and both
# looks of a policy at one cycle.
_INDEXED: WeakKeyDictionary[Traffic, Neighbours] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """What holds some executors where they are, and what draws them most.

    Attributes
    ----------
    node_tps, worker_tps : Floats, shape (K,)
        Traffic with the other executors of the own node and of the own worker.
    strongest_tps : Floats, shape (K,)
        Traffic with the node that an executor talks to most, be it its own.
    """

    node_tps: Floats
    worker_tps: Floats
    strongest_tps: Floats

    def updated(self, executors: Ints, to: "Ties") -> "Ties":
        """Change some rows.

        Parameters
        ----------
        executors : Ints, shape (K,)
            Which.
        to : Ties
            Their new rows.

        Returns
        -------
        Ties
            With the others as they were.
        """
        after = Ties(self.node_tps.copy(), self.worker_tps.copy(), self.strongest_tps.copy())
        after.node_tps[executors] = to.node_tps
        after.worker_tps[executors] = to.worker_tps
        after.strongest_tps[executors] = to.strongest_tps
        return after


def ties(neighbours: Neighbours, place: Ints, node: Ints, nodes: int) -> Ties:
    """Measure the ties of all executors.

    Parameters
    ----------
    neighbours : Neighbours
        Traffic.
    place, node : Ints, shape (E,)
        Worker and node of every executor.
    nodes : int
        How many nodes there are.

    Returns
    -------
    Ties
        One row an executor.
    """
    rows = 2 * len(neighbours.tps)
    step = max(min(CELLS // max(nodes, 1), ROWS * len(place) // max(rows, 1)), 1)
    blocks = [
        ties_of(neighbours, np.arange(at, min(at + step, len(place))), place, node, nodes)
        for at in range(0, max(len(place), 1), step)
    ]
    return Ties(
        np.concatenate([block.node_tps for block in blocks]),
        np.concatenate([block.worker_tps for block in blocks]),
        np.concatenate([block.strongest_tps for block in blocks]),
    )


def ties_of(neighbours: Neighbours, executors: Ints, place: Ints, node: Ints, nodes: int) -> Ties:
    """Measure the ties of some executors.

    Parameters
    ----------
    neighbours : Neighbours
        Traffic.
    executors : Ints, shape (K,)
        Which; K times the number of nodes should fit into the cache.
    place, node : Ints, shape (E,)
        Worker and node of every executor.
    nodes : int
        How many nodes there are.

    Returns
    -------
    Ties
        One row an executor of these.
    """
    which, peer, tps = neighbours.rows(executors)
    count, own = len(executors), node.take(executors)
    there = node.take(peer)
    near = np.flatnonzero(there == own.take(which))
    cells = np.bincount(which * nodes + there, tps, count * nodes)
    talk_tps = cells.astype(np.float64, copy=False).reshape(count, nodes)
    near = near[place.take(peer.take(near)) == place.take(executors).take(which.take(near))]
    here = np.bincount(which.take(near), tps.take(near), count)
    return Ties(
        talk_tps[np.arange(count), own],
        here.astype(np.float64, copy=False),
        talk_tps.max(axis=1, initial=0.0),
    )


def sums(codes: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Add up the values of equal codes.

    Parameters
    ----------
    codes : Ints, shape (K,)
        Not negative.
    values : Floats, shape (K,)
        One a code.

    Returns
    -------
    codes : Ints
        Each once, rising.
    sums : Floats
        Of each.
    """
    order = sorted_by(codes)
    codes = codes.take(order)
    first = firsts(codes)
    return codes.take(first), run_sums(values.take(order), first)


def found(codes: Ints, values: Floats, wanted: Ints) -> Floats:
    """Look values up.

    Parameters
    ----------
    codes : Ints, shape (K,)
        Each once, rising.
    values : Floats, shape (K,)
        One a code.
    wanted : Ints, shape (Q,)
        Codes asked for.

    Returns
    -------
    Floats, shape (Q,)
        0 where a code is missing.
    """
    if not codes.size:
        return np.zeros(len(wanted))
    at = np.minimum(codes.searchsorted(wanted), len(codes) - 1)
    return np.where(codes[at] == wanted, values[at], 0.0)


def firsts(ordered: Ints) -> Ints:
    """Find where runs of equal values begin.

    Parameters
    ----------
    ordered : Ints, shape (K,)
        Equal values stand together.

    Returns
    -------
    Ints
        Indices, the first one 0.
    """
    change = np.empty(len(ordered), dtype=np.bool_)
    change[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=change[1:])
    return np.flatnonzero(change)


def run_sums(values: Floats, first: Ints) -> Floats:
    """Add up runs.

    Parameters
    ----------
    values : Floats, shape (K,)
        To add.
    first : Ints
        Where each run begins.

    Returns
    -------
    Floats
        One a run.
    """
    return np.add.reduceat(values, first) if first.size else np.zeros(0)


def sorted_by(codes: Ints) -> Ints:
    """Tell the order that sorts codes, equal ones as they came.

    Parameters
    ----------
    codes : Ints, shape (K,)
        Not negative.

    Returns
    -------
    Ints, shape (K,)
        Indices.

    Notes
    -----
    Sorting code and index packed into one number takes a third of the time of an argsort. Where
    they do not fit into 63 bits (a million executors on ten thousand workers with a hundred million
    pairs need 62) it is an argsort.
    """
    bits = len(codes).bit_length()
    if codes.size and int(codes.max()).bit_length() + bits > 63:
        return np.argsort(codes, kind="stable")
    packed = codes << bits
    packed |= np.arange(len(codes))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed
