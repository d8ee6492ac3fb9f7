"""A plan as the nodes know it, for the case that ZooKeeper has lost it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from migration.model import NodeAcks, Plan, PlanVersion

NOTHING_READ = PlanVersion(0, -1)
# A ZooKeeper that was restored from a copy has lost fewer leaders than that.
MOST_LOST_EPOCHS = 10_000


def credible(epoch: int, newest: int) -> bool:
    """Return whether a leader may have had an epoch, given the newest that ZooKeeper has.

    To regain an epoch takes a write for each; one that is out of reach would lock out every leader.
    """
    return epoch <= newest + MOST_LOST_EPOCHS


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """The newest plan of a topology that a node holds, and the newest that a JVM has read.

    Agents name `plan` only while ZooKeeper has not got it. A JVM refuses each plan older than
    `read`.
    """

    plan: Plan | None
    read: PlanVersion

    @classmethod
    def of(
        cls,
        topology: str,
        cluster: str,
        acks: Iterable[NodeAcks],
        nimbus: PlanVersion | None,
        newest: int,
    ) -> KnownPlan:
        """Gather what the nodes of a cluster hold, and what they and Nimbus have read.

        `newest` is the epoch of ZooKeeper; an epoch that is not credible against it does not count.
        """
        nodes = [node for node in acks if node.cluster == cluster]
        held = [
            plan
            for node in nodes
            for plan in node.held
            if (plan.topology, plan.cluster) == (topology, cluster) and credible(plan.epoch, newest)
        ]
        read = [nimbus or NOTHING_READ, *(plan.stamp for plan in held)]
        for node in nodes:
            read += [
                worker.stamp
                for worker in node.workers
                if (worker.topology, worker.cluster) == (topology, cluster)
            ]
            supervisor = node.supervisor
            if supervisor is not None and supervisor.cluster == cluster:
                read += [plan.stamp for plan in supervisor.plans if plan.topology == topology]
        read = [stamp for stamp in read if credible(stamp.epoch, newest)]
        return cls(
            max(held, key=lambda plan: plan.stamp, default=None), max(read, default=NOTHING_READ)
        )

    def lost(self, stored: Plan | None, there: bool) -> str | None:
        """Return what is wrong with the plan in ZooKeeper, None if it is the newest.

        `stored` is None if it cannot be read; `there` is whether its node exists.
        """
        if stored is None:
            if there:
                return "is garbled"
            return None if self.read == NOTHING_READ else "is gone, but JVMs have read it"
        if stored.stamp >= self.read:
            return None
        ages = [f"{one.epoch}.{one.version}" for one in (stored, self.read)]
        return f"is {ages[0]}, but JVMs have read {ages[1]}"
