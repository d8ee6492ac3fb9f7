"""Measures what some threads of a task reach together on one slot (001, algorithm 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from controller.policies.profiles import Performance

# 001 section 5.1: latency may grow by so much over the trial.
LATENCY_SLOPE = 0.001
# The text prints -0.001, and stops where the rate is flat; so: rising is above this.
RATE_SLOPE = 0.001
# Not printed: how many of the last peak rates decide whether it still rises.
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
    over threads is printed as "λω ≤ λω_max". By the text it goes on while the peak rate of the last
    numbers of threads still rises.
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
