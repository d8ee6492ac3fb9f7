"""Measures a run's throughput and a policy's moves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats

# 004 section 5.2.1.
DEGRADATION_LEVELS = (0.2, 0.4, 0.6, 0.8, 1.0)
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class NodeMove:
    """An executor that changed its node: ids of the executor and of the two nodes."""

    cycle: int
    executor: str
    source: str
    target: str


def degradation_s(
    throughput_tps: Sequence[float] | Floats, window_s: float, baseline_tps: float
) -> tuple[float, ...]:
    """Add up for how long a run was worse than undisturbed, by how much at least.

    One value a level, in seconds; a level is a share of the baseline that is missing. All are 0 if
    the baseline is 0, nothing can be lost then. 004, section 5.2.1: a window counts for a level if
    1 - throughput/baseline is at least that, so for 100 % only if nothing came through.
    """
    if baseline_tps <= 0:
        return (0.0,) * len(DEGRADATION_LEVELS)
    missing = 1 - np.asarray(throughput_tps, dtype=np.float64) / baseline_tps
    return tuple(
        float(window_s * (missing >= level - _SLACK).sum()) for level in DEGRADATION_LEVELS
    )


def thrash(series: Sequence[float] | Floats) -> float:
    """Compute how much a series went up and down beyond what led it from its start to its end.

    In the unit of the series; 0 if it only rises, only falls, or has no two values. Total variation
    less the trend: Σ|x[i+1] - x[i]| - |x[last] - x[first]|. The idea of discounting the trend is
    from CockroachDB's allocator simulator; this definition is ours. Every return trip counts twice
    its height.
    """
    values = np.asarray(series, dtype=np.float64)
    if values.size < 2:
        return 0.0
    # Rounding must not make it negative.
    return max(0.0, float(np.abs(np.diff(values)).sum() - abs(values[-1] - values[0])))


def ping_pongs(moves: Iterable[NodeMove], within_cycles: float) -> int:
    """Count the moves that bring an executor back to a node it left not long ago.

    At most `within_cycles` lie between leaving and coming back. Moves are in the order of time;
    those inside a node do not count.
    """
    left: dict[tuple[str, str], int] = {}
    returns = 0
    for move in moves:
        if move.source == move.target:
            continue
        since = left.get((move.executor, move.target))
        returns += since is not None and move.cycle - since <= within_cycles
        left[move.executor, move.source] = move.cycle
    return returns
