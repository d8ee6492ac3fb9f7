"""What is known of one topology besides its load, and who of it has the hooks."""

from dataclasses import dataclass

from migration.model import NodeAcks, Plan, Publication, Slot
from migration.observation import Observation


@dataclass(frozen=True, slots=True)
class TopologyView:
    """One topology as ZooKeeper shows it.

    Attributes
    ----------
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
    def observation(self) -> Observation:
        """The answers of the JVMs, by slot."""
        return Observation.of(self.publication, self.plan.cluster, self.acks)

    def hooked_slots(self) -> list[Slot]:
        """List the slots whose worker and whose supervisor both have the hooks; sorted."""
        observation = self.observation
        return [
            slot for slot in observation.live_slots() if observation.supervisor(slot) is not None
        ]
