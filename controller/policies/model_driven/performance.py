"""Measures and reads what some threads of a task reach together on one slot (001, section 5).

A table of performance is a tuple of `Performance`, by rising number of threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Performance

# 001 section 5.1: latency may grow by so much over the trial.
LATENCY_SLOPE = 0.001
# The text prints -0.001 and says that it stops where the rate is flat; so: rising is above this.
RATE_SLOPE = 0.001
# Not printed: how many of the last peak rates tell whether it still rises.
WINDOW = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run of a task between a source and a sink showed, after its warm-up.

    `latency_slope` is by how much latency grew over the run; CPU and memory are shares of the slot.
    """

    latency_slope: float
    cpu_frac: float
    memory_frac: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """How far and how finely to look: threads and rates are 1, 1 + step, … up to the most."""

    max_threads: int
    max_rate_tps: float
    thread_step: int = 1
    rate_step_tps: float = 1.0


def perf_model(trial: Callable[[int, float], Trial], sweep: Sweep) -> tuple[Performance, ...]:
    """Find the highest stable rate of every number of threads that was stable at any rate.

    `trial` runs a number of threads on one slot at a rate in tuples/s. 001, algorithm 1. The loop
    over threads is printed as "λω ≤ λω_max"; what is meant by the text is to go on while the peak
    rate of the last numbers of threads still rises.
    """
    points: list[Performance] = []
    peaks: list[tuple[int, float]] = []
    for threads in range(1, sweep.max_threads + 1, sweep.thread_step):
        point = _peak_of(trial, threads, sweep)
        points += [point] if point else []
        peaks.append((threads, point.rate_tps if point else 0.0))
        if len(peaks) >= WINDOW and _slope(peaks[-WINDOW:]) <= RATE_SLOPE:
            break
    return tuple(points)


def _peak_of(
    trial: Callable[[int, float], Trial], threads: int, sweep: Sweep
) -> Performance | None:
    best = None
    rate = 1.0
    while rate <= sweep.max_rate_tps:
        seen = trial(threads, rate)
        if seen.latency_slope > LATENCY_SLOPE:
            break
        best = Performance(threads, rate, seen.cpu_frac, seen.memory_frac)
        rate += sweep.rate_step_tps
    return best


def _slope(peaks: Sequence[tuple[int, float]]) -> float:
    threads, rates = np.array(peaks).T
    spread = threads - threads.mean()
    return float((spread * rates).sum() / (spread * spread).sum())


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
