"""What is known of one topology besides its load, and who of it has the hooks."""

from dataclasses import dataclass

from migration.events import Sight
from migration.model import NodeAcks, Plan, Publication, Slot


@dataclass(frozen=True, slots=True)
class TopologyView:
    """One topology as ZooKeeper shows it.

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

    @property
    def id(self) -> str:
        """The topology's id."""
        return self.publication.topology

    @property
    def sight(self) -> Sight:
        """The answers of the JVMs, by slot."""
        return Sight.of(self.publication, self.plan.cluster, self.acks)

    def hooked_slots(self) -> list[Slot]:
        """List the slots whose worker and whose supervisor both have the hooks; sorted."""
        sight = self.sight
        return [slot for slot in sight.live_slots() if sight.supervisor(slot) is not None]
