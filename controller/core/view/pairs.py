"""Who talks to whom, indexed by executor; it stays while only how much they say changes."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Ints, Traffic


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Pairs:
    """Pairs of executors that talk, to be asked by executor, in both directions.

    Attributes
    ----------
    traffic_source, traffic_target : Ints
        The rows of the traffic that it was made of.
    rows : Ints, shape (P,), or None
        Those that are between two executors; None if all are.
    source, target : Ints, shape (P,)
        The executors of each pair, sorted by source.
    sends : Ints, shape (E + 1,)
        Where the pairs of each executor that sends begin, and the end.
    into : Ints, shape (P,)
        The pairs sorted by target.
    receives : Ints, shape (E + 1,)
        Where in `into` those of each executor that receives begin, and the end.
    """

    traffic_source: Ints
    traffic_target: Ints
    rows: Ints | None
    source: Ints
    target: Ints
    sends: Ints
    into: Ints
    receives: Ints

    @classmethod
    def of(cls, traffic: Traffic, count: int) -> "Pairs":
        """Index traffic by executor, anew only if other executors talk than lately.

        Parameters
        ----------
        traffic : Traffic
            Sorted by source.
        count : int
            Number of executors.

        Returns
        -------
        Pairs
            Without what an executor sends itself: that never crosses anything.
        """
        for known in tuple(_LATELY):
            if known._are_of(traffic, count):
                return known
        made = cls._build(traffic, count)
        _LATELY.append(made)
        return made

    @classmethod
    def _build(cls, traffic: Traffic, count: int) -> "Pairs":
        source, target = traffic.source, traffic.target
        apart, rows = source != target, None
        if not apart.all():
            rows = apart.nonzero()[0]
            source, target = source.take(rows), target.take(rows)
        sends, receives = _begins(source, count), _begins(target, count)
        into = sorted_by(target)
        return cls(traffic.source, traffic.target, rows, source, target, sends, into, receives)

    def _are_of(self, traffic: Traffic, count: int) -> bool:
        same = len(self.sends) == count + 1 and _equal(self.traffic_source, traffic.source)
        return same and _equal(self.traffic_target, traffic.target)

    def find(self, executors: Ints) -> tuple[Ints, Ints, Ints | slice, Ints]:
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
        sent : Ints or slice
            The pairs of the first rows.
        received : Ints
            The pairs of the others.
        """
        begin = np.concatenate([self.sends.take(executors), self.receives.take(executors)])
        after = executors + 1
        length = np.concatenate([self.sends.take(after), self.receives.take(after)]) - begin
        count, ends = len(executors), length.cumsum()
        everyone = np.arange(count)
        which = np.concatenate([everyone, everyone]).repeat(length)
        sent_count = int(ends[count - 1]) if count else 0
        sent: Ints | slice
        if count and executors[-1] - executors[0] == count - 1:
            sends, receives = int(begin[0]), int(begin[count])
            sent = slice(sends, sends + sent_count)
            received = self.into[receives : receives + len(which) - sent_count]
        else:
            rows = np.arange(len(which)) + (begin - ends + length).repeat(length)
            sent, received = rows[:sent_count], self.into.take(rows[sent_count:])
        peer = np.concatenate([self.target[sent], self.source.take(received)])
        return which, peer, sent, received

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
        return self.find(executors)[1]


# Indexing costs more than a decision, and mostly the same executors talk from cycle to cycle. A
# few, for a controller may look after several topologies.
_LATELY: deque[Pairs] = deque(maxlen=4)


def _equal(one: Ints, other: Ints) -> bool:
    return one is other or np.array_equal(one, other)


def _begins(ends: Ints, count: int) -> Ints:
    """Tell where the rows of each executor begin, once they are sorted."""
    begins = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=count), out=begins[1:])
    return begins


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
