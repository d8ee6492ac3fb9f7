"""What the move of an executor costs users: its pause, by the way that its worker names."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from controller.core.cluster import Floats
from migration.model import ExecutorId, Way

# A move without a pause takes 0.2 s, and weighs 1. A pause weighs as much for each 0.2 s of it. In
# docs/measured.md a state of 1 MB paused a bolt for 0.14 to 0.23 s. In docs/moves.md a spout paused
# for 0.3 to 0.8 s. A bolt that is renewed goes through the same phases as a spout.
WEIGHTS = MappingProxyType({Way.CARRY: 2.0, Way.SPOUT: 4.0, Way.RENEW: 4.0})


def move_weights(ways: Mapping[ExecutorId, Way], executors: Sequence[ExecutorId]) -> Floats | None:
    """Weigh the move of each executor, (E,); None where no move pauses one, or no way is known."""
    found = np.array([WEIGHTS.get(ways.get(one, Way.LIVE), 1.0) for one in executors], np.float64)
    return None if (found == 1.0).all() else found
