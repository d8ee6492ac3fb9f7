"""Least squares over rows that follow each other, which are alike: the errors count that."""

import math
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats

# Neighbours are no more alike than this, as far as so few can show.
_MOST_ALIKE = 0.95
_NEXT_TO_NOTHING = 1e-12
# By how many deviations a normal number is exceeded in 1 of 10,000 draws.
_NORMAL = 3.719016485455709


@dataclass(frozen=True, slots=True, eq=False)
class Squares:
    """Columns fitted to values, and how sure their K coefficients are."""

    coefficients: Floats  # (K,)
    inverse: Floats  # (K, K), of the products of the columns
    variance: float  # of what is left
    fewer: float  # by what factor the rows count as fewer, as neighbours are alike
    free: float  # how many rows show the variance

    @classmethod
    def of(cls, values: Floats, columns: Floats, apart: int | None = None) -> "Squares":
        """Fit columns, (T, K), to values, (T,) with T > K; rows `apart - 1` and `apart` are apart.

        Only there a row does not follow the one before it.
        """
        rows, count = columns.shape
        inverse = np.linalg.pinv(columns.T @ columns).astype(np.float64)
        found = inverse @ (columns.T @ values)
        left = values - columns @ found
        free = rows - count
        squares = float(left @ left)
        neighbours = left[1:] * left[:-1]
        if apart is not None:
            neighbours[apart - 1] = 0.0
        alike = float(neighbours.sum()) / max(squares, _NEXT_TO_NOTHING**2)
        # Fitted columns make what is left less alike than it was.
        alike = min(max((rows * alike + count) / free, 0.0), _MOST_ALIKE)
        fewer = (1 + alike) / (1 - alike)
        return cls(found, inverse, squares / free, fewer, max(free / fewer, 3.0))

    def error(self, column: int) -> float:
        """Give the standard error of a coefficient."""
        own = max(float(self.inverse[column, column]), 0.0)
        return math.sqrt(self.variance * own * self.fewer)

    def most_by_chance(self, column: int) -> float:
        """Give what a coefficient exceeds by chance in less than 1 of 10,000 fits."""
        return _times(self.free) * self.error(column)


def standard(values: Floats) -> Floats:
    """Centre values, and scale them to a deviation of 1."""
    centred: Floats = values - values.mean()
    return centred / max(float(centred.std()), _NEXT_TO_NOTHING)


def _times(free: float) -> float:
    """Give the quantile of Student's t for that chance, by its expansion about `_NORMAL`."""
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / free + second / free**2 + third / free**3
