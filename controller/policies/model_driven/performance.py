"""Measures and reads what some threads of a task reach together on one slot (001, section 5).

A table of performance is a tuple of `Performance`, by rising number of threads.
"""

from collections.abc import Sequence

import numpy as np

from controller.core.cluster import Performance


def peak(table: Sequence[Performance]) -> Performance:
    """Find the full bundle, τ̂ and ω̂ of 001: the fewest threads with the highest rate of all."""
    return max(table, key=lambda point: (point.rate_tps, -point.threads))


def enough(table: Sequence[Performance], rate_tps: float) -> Performance:
    """Find the fewest profiled threads that reach a rate, at most the peak's: T(ω) of 001."""
    return next(point for point in table if point.rate_tps >= rate_tps)


def at(table: Sequence[Performance], threads: float) -> Performance:
    """Read rate, CPU and memory of any number of threads: I(q), C(q) and M(q) of 001.

    Linear between the profiled numbers and below the first, as at the last one above it.
    """
    known = [0.0, *(point.threads for point in table)]

    def read(values: list[float]) -> float:
        return float(np.interp(threads, known, [0.0, *values]))

    return Performance(
        int(threads),
        read([point.rate_tps for point in table]),
        read([point.cpu_frac for point in table]),
        read([point.memory_frac for point in table]),
    )
