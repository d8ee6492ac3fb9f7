"""What is known of one topology besides its load, and which of its slots have the hooks."""

from dataclasses import dataclass
from functools import cached_property

from migration.model import NimbusReport, NodeAcks, Plan, PlanVersion, Publication, Slot
from migration.observation import Observation


# Without slots, so that what is worked out of it is kept.
@dataclass(frozen=True)
class TopologyView:
    """One topology as ZooKeeper shows it."""

    publication: Publication
    plan: Plan  # as it is written; version -1 if there is none yet
    acks: tuple[NodeAcks, ...]  # the fresh answers of all nodes
    stand_back: str | None = None  # why nothing may be moved now
    # The newest sign of life of the hook in Nimbus; no decision depends on it.
    nimbus: NimbusReport | None = None

    @property
    def id(self) -> str:
        return self.publication.topology

    @property
    def read_by_nimbus(self) -> PlanVersion | None:
        """The newest plan that the hook in Nimbus has read."""
        found = None if self.nimbus is None else self.nimbus.find(self.id)
        return None if found is None else found.plan

    @cached_property
    def observation(self) -> Observation:
        """The answers of the JVMs, by slot."""
        return Observation.of(self.publication, self.plan.cluster, self.acks)

    @cached_property
    def hooked_slots(self) -> tuple[Slot, ...]:
        """The slots whose worker and whose supervisor both have the hooks; sorted."""
        live = self.observation.live_slots()
        return tuple(slot for slot in live if self.observation.supervisor(slot) is not None)
