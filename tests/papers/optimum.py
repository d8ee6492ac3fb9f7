"""Finds the best placement on machines that differ by looking at all of them (000)."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from controller.core.cluster import Ints
from controller.policies.heterogeneity import Model


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
    machines = model.cost_s.shape[1]
    spread = [row for row in product(range(most + 1), repeat=machines) if 0 < sum(row) <= most]
    return _best(model, [np.array(spread, dtype=np.int64)] * len(model.cost_s))


def best_placement_of(model: Model, numbers: Ints) -> tuple[Ints, float]:
    """Do the same where the number of instances of each component is given, shape (C,)."""
    machines = model.cost_s.shape[1]
    every = [product(range(number + 1), repeat=machines) for number in numbers]
    rows = [[row for row in each if sum(row) == n] for each, n in zip(every, numbers, strict=True)]
    return _best(model, [np.array(one, dtype=np.int64) for one in rows])


def _best(model: Model, counts: list[Ints]) -> tuple[Ints, float]:
    """Try all combinations of the rows of each component, each of shape (rows, M)."""
    components, machines = model.cost_s.shape
    # Load is overhead plus rate times slope, and both add up over components.
    overhead = [rows * model.overhead[c] for c, rows in enumerate(counts)]
    each = [rows / rows.sum(axis=1, keepdims=True) for rows in counts]
    slope = [rows * model.cost_s[c] * model.gain[c] for c, rows in enumerate(each)]
    best, best_tps = np.ones((components, machines), dtype=np.int64), -1.0
    for rows in product(*(range(len(one)) for one in counts[:-1])):
        a = overhead[-1] + sum((overhead[c][row] for c, row in enumerate(rows)), np.zeros(machines))
        b = slope[-1] + sum((slope[c][row] for c, row in enumerate(rows)), np.zeros(machines))
        with np.errstate(divide="ignore"):
            full_at = np.where(a > 1, -1.0, np.where(b > 0, (1 - a) / b, np.inf)).min(axis=1)
        last = int(np.argmax(full_at))
        if full_at[last] > best_tps:
            best = np.array([one[row] for one, row in zip(counts, (*rows, last), strict=True)])
            best_tps = float(full_at[last])
    return best, max(best_tps, 0.0)


def random_model(random: np.random.Generator, components: int, machines: int) -> Model:
    """Draw costs of 0.1 to 0.9 ms a tuple and overheads of 1 to 12 % of a machine, in a row."""
    shape = components, machines
    gain = np.concatenate([[1.0], np.cumprod(random.choice([0.5, 1.0, 2.0], components - 1))])
    return Model(gain, random.uniform(1e-4, 9e-4, shape), random.uniform(0.01, 0.12, shape))
