"""Finds the best placement on machines that differ by looking at all of them (000)."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from controller.core.cluster import Ints
from controller.policies.heterogeneity.model import Model


def instance_numbers(components: int, total: int) -> Iterator[tuple[int, ...]]:
    """List all ways to choose the numbers of instances, at least one a component, at most `total`.

    000 counts these where it speaks of the possible assignments: C(30, 4) = 27,405 for four
    components and 30 instances, ten on each of three machines. Where each instance goes comes on
    top.
    """
    for bars in combinations(range(1, total + 1), components):
        yield tuple(int(n) for n in np.diff((0, *bars)))


def best_placement(model: Model, most: int) -> tuple[Ints, float]:
    """Find the first placement, shape (C, M), that takes the most input, and that input.

    Each component gets at most `most` instances. All combinations are tried: keep the model small.
    """
    components, machines = model.cost_s.shape
    spread = [row for row in product(range(most + 1), repeat=machines) if 0 < sum(row) <= most]
    counts = np.array(spread, dtype=np.int64)
    # Load is overhead plus rate times slope, and both add up over components.
    overhead = [counts * model.overhead[c] for c in range(components)]
    each = counts / counts.sum(axis=1, keepdims=True)
    slope = [each * model.cost_s[c] * model.gain[c] for c in range(components)]
    best, best_tps = np.ones((components, machines), dtype=np.int64), -1.0
    for rows in product(range(len(counts)), repeat=components - 1):
        a = overhead[-1] + sum((overhead[c][row] for c, row in enumerate(rows)), np.zeros(machines))
        b = slope[-1] + sum((slope[c][row] for c, row in enumerate(rows)), np.zeros(machines))
        with np.errstate(divide="ignore"):
            full_at = np.where(a > 1, -1.0, np.where(b > 0, (1 - a) / b, np.inf)).min(axis=1)
        last = int(np.argmax(full_at))
        if full_at[last] > best_tps:
            best, best_tps = counts[[*rows, last]], float(full_at[last])
    return best, max(best_tps, 0.0)
