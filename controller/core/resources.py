"""Every resource in one table: what executors use, of what there is only so much."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """Whose capacity it is."""

    WORKER = "worker"
    NODE = "node"
    LINK = "link"


class MeterKind(StrEnum):
    """How a meter is read."""

    TOTAL = "total"  # it only grows, and a rate is taken
    LEVEL = "level"  # it is used as it is


class Share(StrEnum):
    """How what no executor owns is shared out to the executors of a worker."""

    BY_TUPLES = "by tuples"
    STAYS = "stays"  # with the worker


@dataclass(frozen=True, slots=True)
class Resource:
    """A row of the table."""

    name: str
    shown: str  # in a sentence
    unit: str  # of capacity and load
    level: Level
    meter: str  # the field of an executor in the load report
    kind: MeterKind
    share: Share
    limit: str  # the key in `settings.py`: the share of its capacity that may be used
    # Whether executors move away from what is above the limit. If not, it only limits moves to it.
    relieves: bool


CPU = Resource(
    name="cpu",
    shown="CPU",
    unit="cores",
    level=Level.WORKER,
    meter="cpu_ns",
    kind=MeterKind.TOTAL,
    share=Share.BY_TUPLES,
    limit="load.high",
    relieves=True,
)
RESOURCES = (CPU,)
