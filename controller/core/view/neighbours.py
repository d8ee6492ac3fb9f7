"""How much executors say to each other, and sums of it by place."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from controller.core.cluster import Floats, Ints, Traffic
from controller.core.view.pairs import Pairs, sorted_by


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Neighbours:
    """Who talks to whom, and how much.

    Attributes
    ----------
    pairs : Pairs
        Who.
    tps : Floats, shape (P,)
        Tuples per second of each pair.
    """

    pairs: Pairs
    tps: Floats

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
        if known is None or len(known.pairs.sends) != count + 1:
            pairs = Pairs.of(traffic, count)
            tps = traffic.tps if pairs.rows is None else traffic.tps.take(pairs.rows)
            known = _INDEXED[traffic] = cls(pairs, tps)
        return known

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
        which, peer, sent, received = self.pairs.find(executors)
        return which, peer, np.concatenate([self.tps[sent], self.tps.take(received)])


# A traffic outlives many decisions: every step of a walk, and both looks of a policy at one cycle.
_INDEXED: WeakKeyDictionary[Traffic, Neighbours] = WeakKeyDictionary()


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
