"""A host that takes more CPU than others for the same tuples is named, and no other one."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.cluster import LoadSnapshot
from controller.core.slow_host import slow_hosts
from tests.snapshots import cluster, topology

BOLTS = 12
HOSTS = cluster([1, 1, 1])


def world(times: float, spread: float = 0.0, cores: float = 0.3) -> LoadSnapshot:
    """Lay out bolts on three hosts, of which the last takes `times` the CPU for a tuple."""
    place = [0] + [bolt % 3 for bolt in range(BOLTS)]
    fed = 500.0 * (1 + np.arange(BOLTS) % 4)
    talk = [(0, 1 + bolt, float(tps)) for bolt, tps in enumerate(fed)]
    snapshot = topology({"spout": 1, "count": BOLTS}, place=place, talk=talk)
    uneven = 1 + spread * np.sin(5.0 * np.arange(BOLTS))
    slow = np.where(np.array(place[1:]) == 2, times, 1.0)
    return replace(snapshot, cpu_cores=np.append(0.2, cores * fed / 500.0 * slow * uneven))


@pytest.mark.parametrize(("times", "spread"), [(2.0, 0.0), (2.0, 0.1), (3.0, 0.3)])
def test_a_slow_host_is_named(times: float, spread: float) -> None:
    (named,) = slow_hosts(HOSTS, world(times, spread))
    assert named.startswith("n2 takes ")
    assert named.endswith(" times the CPU of the other hosts for the same tuples, by 4 executors")


@pytest.mark.parametrize(
    ("times", "spread", "cores"),
    [
        (1.0, 0.0, 0.3),
        (1.0, 0.6, 0.3),
        (1.3, 0.0, 0.3),  # too little
        (2.0, 0.9, 0.3),  # bolts of one host differ as much
        (3.0, 0.0, 0.001),  # they wait most of the time
        (0.5, 0.0, 0.3),  # a fast one
    ],
)
def test_what_may_be_chance_is_not(times: float, spread: float, cores: float) -> None:
    assert slow_hosts(HOSTS, world(times, spread, cores)) == []


def test_a_host_alone_and_a_topology_without_traffic_have_none() -> None:
    assert slow_hosts(cluster([3]), world(2.0)) == []
    assert slow_hosts(HOSTS, topology({"spout": 1, "count": 3}, place=[0, 1, 2, 2])) == []
