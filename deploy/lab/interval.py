"""Computes how sure a measured ratio is: its interval over paired rounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit  # type: ignore[import-untyped]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio with its 95 per cent interval.

    Attributes
    ----------
    ratio : float
        The geometric mean over the pairs.
    low, high : float
        The ends of the interval; 0 and infinity with fewer than two pairs.
    """

    ratio: float
    low: float
    high: float

    def within(self, half_width: float) -> bool:
        """Check whether both ends are near enough to the ratio."""
        return max(self.ratio - self.low, self.high - self.ratio) <= half_width

    def __str__(self) -> str:
        return f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]"


def paired_ratio(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Give the ratio of two quantities that were measured side by side.

    Parameters
    ----------
    over, under : Sequence of float
        One pair a round, all above 0; at least one round.

    Raises
    ------
    ValueError
        If a value is not above 0, or the lengths differ, or there is no round.

    Notes
    -----
    Student's t interval of the mean of the logarithms, taken back by the exponential. What all of a
    round shares, such as other work on the machine, falls out of its ratio.
    """
    if len(over) != len(under) or not over or min(*over, *under) <= 0:
        raise ValueError(f"no pairs of values above 0: {list(over)} over {list(under)}")
    logs = np.log(np.asarray(over, dtype=float)) - np.log(np.asarray(under, dtype=float))
    mean, rounds = float(logs.mean()), len(logs)
    if rounds < 2:
        return Ratio(math.exp(mean), 0.0, math.inf)
    standard_error = float(logs.std(ddof=1)) / math.sqrt(rounds)
    half = float(stdtrit(rounds - 1, (1 + CONFIDENCE) / 2)) * standard_error
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def quantile(values: Sequence[float], share: float) -> float:
    """Give the smallest value that at least a share of all values does not exceed.

    Returns
    -------
    float
        One of the values: the nearest rank, nothing in between.
    """
    ordered = sorted(values)
    # Rounded first: 0.99 x 100 is a little above 99.
    return ordered[max(math.ceil(round(share * len(ordered), 9)), 1) - 1]
