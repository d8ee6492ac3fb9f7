"""Rows that each have one number as their key, as sorted arrays."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Ints
from controller.core.tasks import FIRST_COMPONENT, key_of

ALL = slice(None)
N = TypeVar("N", bound=np.generic)


def joined(old: Ints, new: Ints) -> tuple[Ints, slice | Ints, slice | Ints]:
    """Put the keys of both in order, and return where those of each are."""
    if np.array_equal(old, new):
        return old, ALL, ALL
    at = np.searchsorted(old, new)
    if np.array_equal(old[at[at < len(old)]], new):  # a worker has not reported: no key has come
        return old, ALL, at
    keys = np.union1d(old, new)
    is_at = ALL if len(keys) == len(new) else np.searchsorted(keys, new)
    return keys, np.searchsorted(keys, old), is_at


def aligned(at: slice | Ints, values: NDArray[N], absent: NDArray[N]) -> NDArray[N]:
    """Lay values out by the rows of `joined`; `absent` has what stands where there is none."""
    if at is ALL:
        return values
    absent[at] = values
    return absent


def in_order(rows: Ints, ends: int) -> tuple[Ints, Ints]:
    """Give the keys of rows, and their other columns, in the order of the keys, each once.

    The first task is one, the second is below `ends`.
    """
    first, second = rows[:, 1], rows[:, 2]
    good = (first >= 0) & (first < FIRST_COMPONENT) & (second >= 0) & (second < ends)
    good &= (rows[:, 3:] >= 0).all(axis=1)
    if not good.all():
        rows = rows[good]
    keys = key_of(rows[:, 0], rows[:, 1], rows[:, 2])
    if (keys[1:] > keys[:-1]).all():
        return keys, rows[:, 3:]
    keys, at = np.unique(keys, return_index=True)
    return keys, rows[at, 3:]
