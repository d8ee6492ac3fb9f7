"""How large tuples are between two components, by those that workers have looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.rows import aligned, in_order, joined
from controller.core.tasks import FIRST_COMPONENT, ends_of, key_of, worker_of
from migration.model import SizeRow


def _no_keys() -> Ints:
    return np.zeros(0, np.int64)


def _no_totals() -> Ints:
    return np.zeros((0, 2), np.int64)


def _no_sums() -> Floats:
    return np.zeros((0, 2))


def pair_keys(source: Ints, target: Ints) -> Ints:
    """Make one number of two components, which are numbers from 0 here."""
    return key_of(np.zeros_like(source), source, target)


@dataclass(frozen=True, slots=True, eq=False)
class TupleSizes:
    """Tuples of S pairs of components in single workers, and of Q pairs in all workers."""

    rows: Ints = field(default_factory=_no_keys)  # (S,), keys: worker, source, target component
    # (S, 2), tuples and their bytes until the newest report
    totals: Ints = field(default_factory=_no_totals)
    pairs: Ints = field(default_factory=_no_keys)  # (Q,), keys as of `pair_keys`
    # (Q, 2), tuples and their bytes, smoothed, so that few tuples change little
    recent: Floats = field(default_factory=_no_sums)

    def observed(
        self,
        told: Sequence[tuple[int, tuple[SizeRow, ...] | UnsetType]],  # new reports, by worker
        targets: Mapping[str, int],  # from `component_targets`
        *,
        is_new: NDArray[np.bool_],  # (W,), another report than before
        goes_on: NDArray[np.bool_],  # (W,), of the same JVM
        ewma: float,  # weight of what is new
    ) -> "TupleSizes":
        """Take the newest reports in; a pair of which they have no further tuple stays as it is."""
        keys, totals = _read(told, targets)
        if not len(keys) and not len(self.rows):
            return self
        rows, was_at, is_at = joined(self.rows, keys)
        worker = worker_of(rows)
        before = aligned(was_at, self.totals, np.zeros((len(rows), 2), np.int64))
        # Another JVM begins without rows.
        now = aligned(is_at, totals, np.where(is_new[worker, None], 0, before))
        more = np.where(goes_on[worker, None], np.maximum(now - before, 0), 0)
        found = pair_keys(*ends_of(rows))
        pairs = np.union1d(self.pairs, found)
        at, count = np.searchsorted(pairs, found), len(pairs)
        added = np.column_stack([np.bincount(at, column, count) for column in more.T])
        recent = np.zeros((count, 2))
        recent[np.searchsorted(pairs, self.pairs)] = self.recent
        smooth = ewma * added + (1 - ewma) * recent
        return TupleSizes(rows, now, pairs, np.where(added[:, :1] > 0, smooth, recent))

    def of_workers(self, kept: NDArray[np.bool_], rows: Ints) -> "TupleSizes":
        """Keep some rows, under other keys since workers have other numbers."""
        return TupleSizes(rows, self.totals[kept], self.pairs, self.recent)

    def mean_bytes(self, keys: Ints) -> Floats:
        """Give how large a tuple is, of pairs by their keys; NaN where that is not known."""
        if not len(self.pairs):
            return np.full(len(keys), np.nan)
        at = np.searchsorted(self.pairs, keys)
        at[at == len(self.pairs)] = 0
        tuples, size = self.recent[at].T
        known = (self.pairs[at] == keys) & (tuples > 0)
        return np.where(known, size / np.where(known, tuples, 1.0), np.nan)


def _read(
    told: Sequence[tuple[int, tuple[SizeRow, ...] | UnsetType]], targets: Mapping[str, int]
) -> tuple[Ints, Ints]:
    """Give the rows of reports: their keys, and tuples and bytes; unknown components have none."""
    number = {name: target - FIRST_COMPONENT for name, target in targets.items()}.get
    found = [
        (w, number(source, -1), number(target, -1), tuples, size)
        for w, rows in told
        if rows is not UNSET
        for source, target, tuples, size in rows
    ]
    table = np.fromiter(chain.from_iterable(found), np.int64, 5 * len(found)).reshape(-1, 5)
    return in_order(table, FIRST_COMPONENT)
