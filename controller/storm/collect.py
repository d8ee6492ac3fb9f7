"""Shows what ZooKeeper holds: topologies, plans, answers and load."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from controller.core.topology import TopologyView
from controller.storm.message_cache import Mirror
from controller.storm.nimbus import NimbusWatch
from kvstore.zookeeper import Session
from migration import wire
from migration.model import NodeAcks, NodeLoad, Plan, Publication, Timing
from migration.recovery import Known

PAUSED = f"{wire.ROOT}/paused"


class LiveCluster:
    """The cluster as ZooKeeper shows it.

    Parameters
    ----------
    timing : Timing
        How old an answer may be.
    now_s : callable
        Tells monotonic seconds.
    """

    def __init__(
        self, mirror: Mirror, timing: Timing, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._mirror = mirror
        self._nimbus = NimbusWatch(mirror, now_s)
        self._timing = timing
        self._now_s = now_s
        self._came: dict[str, tuple[int, float]] = {}

    @classmethod
    def of_session(cls, session: Session) -> Self:
        """Make a view for people, who look when they like and need not be woken.

        Parameters
        ----------
        session : Session
            Connected to Storm's ZooKeeper.
        """
        return cls(Mirror(session, threading.Event()), Timing())

    def topologies(self) -> Sequence[TopologyView]:
        """Return every topology that the hooks in Nimbus publish, by id.

        Returns
        -------
        sequence of TopologyView
            Without those that Storm no longer has, or whose publication could never be read.
        """
        acks = self.acks()
        views = []
        for topology in self._mirror.children(wire.TOPOLOGIES):
            publication = self._mirror.message(Publication, wire.topology_path(topology))
            named = publication is not None and publication.topology == topology
            if publication is not None and named and self._nimbus.knows(topology):
                plan = self.plan(topology)
                stand_back = self._lost(publication, acks)
                stand_back = stand_back or self._nimbus.stand_back(publication, plan)
                views.append(TopologyView(publication, plan, acks, stand_back))
        return views

    def plan(self, topology: str) -> Plan:
        """Return the newest plan that could be read.

        Returns
        -------
        Plan
            Empty and of version -1 if there is none; its version is always its node's.
        """
        path = wire.plan_path(topology)
        plan = self._mirror.message(Plan, path)
        stored = self._mirror.node(path)
        version = -1 if stored is None else stored.version
        if plan is None:
            return Plan(self.cluster(), 0, version, topology)
        # A plan that somebody wrote by hand may say another version; the next write mends it.
        return Plan(plan.cluster, plan.epoch, version, topology, plan.entries)

    def _lost(self, publication: Publication, acks: Sequence[NodeAcks]) -> str | None:
        """Say so while the JVMs follow another plan than the one in ZooKeeper."""
        path = wire.plan_path(publication.topology)
        there = self._mirror.node(path) is not None
        stored = self._mirror.plan(publication.topology)
        lost = Known.of(publication, self.cluster(), acks).lost(stored, there)
        return None if lost is None else f"the plan {path} {lost}: the leader writes it anew"

    def orphans(self) -> list[tuple[str, int]]:
        """List the plans of topologies that Storm no longer has."""
        if self._mirror.stat("/storms") is None:
            return []  # no Storm here: then it has not killed a topology either
        names = self._mirror.children(wire.PLANS)
        paths = [wire.plan_path(name) for name in names if not self._nimbus.knows(name)]
        found = [(path, self._mirror.node(path)) for path in paths]
        return [(path, stored.version) for path, stored in found if stored is not None]

    def cluster(self) -> str:
        """Return the cluster's UUID; empty before the first leader."""
        stored = self._mirror.node(wire.CLUSTER)
        return "" if stored is None else stored.data.decode(errors="replace")

    def acks(self) -> tuple[NodeAcks, ...]:
        """Return the answers of the nodes whose agents have spoken lately."""
        found = []
        for name in self._mirror.children(wire.ACKS):
            path = wire.acks_path(name)
            acks = self._mirror.message(NodeAcks, path)
            if acks is not None and self.age_s(path) <= self._timing.ack_fresh_s:
                found.append(acks)
        return tuple(found)

    def loads(self) -> Sequence[NodeLoad]:
        """Return the newest report of each node."""
        paths = [wire.load_path(name) for name in self._mirror.children(wire.LOAD)]
        found = [self._mirror.message(NodeLoad, path) for path in paths]
        return [load for load in found if load is not None]

    def paused(self) -> str | None:
        """Return why the controller is paused.

        Returns
        -------
        str or None
            None if it is not.
        """
        stored = self._mirror.node(PAUSED)
        return None if stored is None else stored.data.decode(errors="replace") or "paused"

    def age_s(self, path: str) -> float:
        """Tell how long ago a node was seen to change; clocks of nodes are not compared.

        Returns
        -------
        float
            Seconds; infinite if it is not there.
        """
        stored = self._mirror.node(path)
        if stored is None:
            return float("inf")
        now_s = self._now_s()
        mzxid, since_s = self._came.get(path, (-1, now_s))
        if mzxid != stored.mzxid:
            since_s = now_s
        self._came[path] = (stored.mzxid, since_s)
        return now_s - since_s
