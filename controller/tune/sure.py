"""How sure a mean of days is: what comes within a day depends on itself, so days are the blocks."""

from functools import cache

import numpy as np

# This number of days shows how sure a gain is, and this is how sure it has to be.
LEAST_DAYS, SURE_FRAC = 3, 0.95
# Draws for a quantile of Student's distribution; they give it to 1 %.
_DRAWS = 200_000


@cache
def student(freedom: int, tests: int = 1) -> float:
    """Give how many deviations an interval of `SURE_FRAC` has to either side.

    Of several tests, all of their intervals hold together that surely.
    """
    draws = np.random.default_rng(0).standard_t(freedom, _DRAWS)
    return float(np.quantile(draws, 1 - (1 - SURE_FRAC) / 2 / tests))
