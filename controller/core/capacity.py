"""How much CPU a worker may use, what a link carries, and what still fits: by single numbers."""

from dataclasses import dataclass
from typing import NamedTuple

from controller.core.limits import Limits
from controller.core.resources import CPU
from migration.meters import BYTES_PER_MBIT
from migration.model import Node
from migration.settings import setting


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a worker may use, and a link may carry."""

    fixed_cores: float | None = setting("worker.cpu.capacity")  # of every worker
    link_mbit: float | None = setting("link.capacity.mbit")  # in each direction of every node

    @property
    def is_shared(self) -> bool:
        """Whether workers share the CPU of their node: nothing else limits them."""
        return self.fixed_cores is None

    @property
    def link_bytes_s(self) -> float | None:
        """Bytes per second in one direction; None where that is not known."""
        return None if self.link_mbit is None else self.link_mbit * BYTES_PER_MBIT

    def of(self, node: Node, more: int) -> float:
        """Compute what a worker has where `more` slots of its node are in use than Storm counts."""
        return self.fixed_cores or node.cpu_capacity / 100 / max(node.slots_in_use + more, 1)


class Spare(NamedTuple):
    """A free slot where a worker of the topology could be started."""

    worker: str  # its id, once it runs
    node: str
    capacity: float  # as `Capacity.of` gives it


def room_at(load_frac: float | None, capacity: float, limits: Limits) -> float:
    """Compute what fits where a share of the capacity is used."""
    return room_of((load_frac or 0.0) * capacity, capacity, limits)


def room_of(used: float, capacity: float, limits: Limits) -> float:
    """Compute what fits on one worker until it is high; negative where it is."""
    return limits.high_frac * capacity - used


def why_not_all(need: float, room: float, where: str) -> str | None:
    """Give the reason why some executors do not fit together; None if they do."""
    if need <= room:
        return None
    return f"need {need:.3g} {CPU.unit}, and {where} have {room:.3g} below {CPU.limit}"
