"""Holds the two topologies of 000 whose profiles are known, and weighs what machines do.

The profiles are from the authors' simulator (github.com/h-nasiri/Scheduling-Simulator). They have
one point at which IR0 tuples per second use a share U0 of the machine. They also have how many
more it takes for one per cent. Table 3 of the paper is missing in our copy; which machine is which
is not stated.
"""

import numpy as np

from controller.policies.heterogeneity import Model

# By component and machine: IR0 in tuples/s, tuples/s for one per cent of CPU, U0 in per cent.
_ROLLING_COUNT = (
    ((295, 160, 10), (244, 72, 10), (277, 60, 40)),
    ((2872, 1586, 10), (2300, 697, 10), (1853, 299, 30)),
)
_UNIQUE_VISITOR = (
    ((2866, 927, 10), (2806, 680, 10), (300, 239, 30)),
    ((3013, 790, 10), (2909, 774, 10), (381, 91, 40)),
)


def _chain(points: tuple[tuple[tuple[int, int, int], ...], ...], alpha: float) -> Model:
    """Build two components in a row; the first puts out `alpha` tuples for one."""
    at_tps, per_cent_tps, used = np.moveaxis(np.array(points, dtype=np.float64), 2, 0)
    cost = 1 / (100 * per_cent_tps)
    return Model(np.array([1.0, alpha]), cost, used / 100 - at_tps * cost)


def rolling_count() -> Model:
    """Build RollingCount on one machine of each kind: two components, ten tuples for one."""
    return _chain(_ROLLING_COUNT, 10.0)


def unique_visitor() -> Model:
    """Build UniqueVisitor on one machine of each kind: two components, one tuple for one."""
    return _chain(_UNIQUE_VISITOR, 1.0)
