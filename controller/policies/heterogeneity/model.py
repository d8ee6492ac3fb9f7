"""Predicts the CPU that instances of components take on machines of different kinds (000).

Axes: C components, M machines. A placement counts the instances of each component on each machine.
"""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints

# Sums of shares in another order differ in the last digits; that must decide nothing.
SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What instances cost, as shares of machines.

    `gain` is what a component takes in, all instances together, for one tuple into the
    topology. `cost_s` is the share of the machine times seconds that a tuple takes,
    e of equation 5; `overhead` the share that an instance takes without tuples, MET
    of it.
    """

    gain: Floats  # (C,)
    cost_s: Floats  # (C, M)
    overhead: Floats  # (C, M)

    def tcu(self, instances: Ints, rate_tps: float) -> Floats:
        """Predict the share of CPU of one instance of each component on each machine, shape (C, M).

        The component's tuples are spread over `instances`; 0 counts as 1. 000, equations 5 and 6.
        """
        each_tps = rate_tps * self.gain / np.maximum(instances, 1)
        return np.asarray(self.cost_s * each_tps[:, None] + self.overhead)

    def load(self, placement: Ints, rate_tps: float) -> Floats:
        """Predict the share of CPU in use of each machine, 1 less MAC."""
        return np.asarray((placement * self.tcu(placement.sum(axis=1), rate_tps)).sum(axis=0))

    def reachable_tps(self, placement: Ints) -> float:
        """Compute the input at which the first machine is full, with at least one instance a
        component.

        0 if overhead alone is too much, infinite if nothing costs anything.
        """
        overhead = (placement * self.overhead).sum(axis=0)
        slope = self.load(placement, 1.0) - overhead
        return max(float(np.min(full_at(1 - overhead, slope))), 0.0)


def full_at(room: Floats, used: Floats) -> Floats:
    """Tell at which rate machines are full: what is free at rate 0, over what a tuple/s takes.

    Infinite if a tuple takes nothing; below 0, by how much, where nothing is free.
    """
    room = np.where(abs(room) <= SLACK, 0.0, room)
    rate = np.divide(
        room, used, out=np.full(np.broadcast(room, used).shape, np.inf), where=used > 0
    )
    return np.where(room < 0, room, rate)
