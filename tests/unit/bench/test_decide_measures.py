"""The measures of a placement, against sums done by hand."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.classify import Limits
from tests.bench.decide.measures import CpuUse, cpu_use, weighted_cost_tps
from tests.unit.controller.policies.placement_worlds import cluster, topology

PLACES = cluster([2, 1])
# 10 in a worker, 6 between two workers of a node, 4 between nodes.
SNAPSHOT = replace(
    topology({"c": 4}, (), [(0, 1, 10), (1, 2, 6), (3, 2, 4)], [0.5, 0.25, 0.15, 0.6]),
    place=np.array([0, 0, 1, 2]),
)


def test_weighted_traffic_between_places() -> None:
    limits = Limits(weight_node=0.8, weight_worker=0.2)
    assert weighted_cost_tps(PLACES, SNAPSHOT, limits) == pytest.approx(0.8 * 4 + 0.2 * 10)
    assert weighted_cost_tps(PLACES, SNAPSHOT, Limits(weight_node=1, weight_worker=0)) == 4


def test_cpu_of_all_and_of_the_fullest() -> None:
    assert cpu_use(PLACES, SNAPSHOT) == CpuUse(pytest.approx(0.5), 0.75)  # type: ignore[arg-type]
    unlike = replace(PLACES, capacity_cores=np.array([1.0, 0.1, 1.9]))
    assert cpu_use(unlike, SNAPSHOT) == CpuUse(pytest.approx(0.5), pytest.approx(1.5))  # type: ignore[arg-type]
