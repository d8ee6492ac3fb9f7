"""What the loop asks of the world it runs in: the live one, a simulated or a recorded one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from migration.model import Entry, NodeAcks, NodeLoad, Plan, Publication


@dataclass(frozen=True, slots=True)
class TopologyView:
    """What is known of one topology besides its load.

    Attributes
    ----------
    publication : Publication
        What Storm knows.
    plan : Plan
        As it is written; version -1 if there is none yet.
    acks : tuple of NodeAcks
        The fresh answers of all nodes.
    stand_back : str or None
        Why nothing may be moved now.
    """

    publication: Publication
    plan: Plan
    acks: tuple[NodeAcks, ...]
    stand_back: str | None = None


class ClusterView(Protocol):
    """Shows the topologies."""

    def topologies(self) -> Sequence[TopologyView]:
        """Return every topology that the hooks in Nimbus publish, by id."""

    def paused(self) -> str | None:
        """Return who paused the controller and why, None if nobody has."""


class LoadSource(Protocol):
    """Delivers load."""

    def loads(self) -> Sequence[NodeLoad]:
        """Return the newest report of each node."""


class PlanSink(Protocol):
    """Takes moves."""

    def begin(self, plan: Plan, entry: Entry) -> Plan | None:
        """Write the plan with one more move; None if somebody else changed it meanwhile."""


class Leadership(Protocol):
    """Tells whether this controller leads."""

    @property
    def epoch(self) -> int | None:
        """The epoch to write under; None while another leads."""


class Clock(Protocol):
    """Tells the time."""

    def now_s(self) -> float:
        """Return monotonic seconds, for limits and ages."""

    def time_s(self) -> float:
        """Return Unix seconds, for people and files."""
