"""What is sent over hops, counted once for the same arrays."""

import numpy as np

from controller.core.cluster import Traffic
from controller.core.hops import HopRates


def test_the_same_arrays_are_counted_once_and_others_again() -> None:
    traffic = Traffic.build(np.array([0]), np.array([1]), np.array([1000.0]))
    place, node_of, demand = np.array([0, 1]), np.array([0, 1]), np.array([0.5, 0.5])
    first = HopRates.of(traffic, 1.0, place, node_of, demand)
    assert HopRates.of(traffic, 1.0, place, node_of, demand) is first
    assert HopRates.of(traffic, 2.0, place, node_of, demand).tps.tolist() == [2000.0]
    # At most 0.6 of what an executor uses is for hops, so that these count less.
    scarce = HopRates.of(traffic, 1.0, place, node_of, np.array([0.0005, 0.5]))
    assert scarce.scale[0] < first.scale[0] == 1.0
