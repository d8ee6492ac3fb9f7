"""Shows what ZooKeeper holds: topologies, plans, answers and load."""

import dataclasses
import math
import operator
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

from msgspec import structs

from controller.core.controls import Controls
from controller.core.topology import TopologyView, free_slots
from controller.storm.controls import CONTROLS, read, why_off
from controller.storm.leader_status import STATUS
from controller.storm.mirror import Mirror
from controller.storm.nimbus import NimbusWatch
from kvstore.election import in_line
from kvstore.zookeeper import Session
from migration import wire
from migration.model import (
    Candidacy,
    Node,
    NodeAcks,
    NodeLoad,
    Nodes,
    Plan,
    Publication,
    Slot,
    Timing,
)
from migration.recovery import KnownPlan

# Loads also show that a node is alive; between two cycles they are read for that alone. More than a
# cycle's 5 s, also of a late one: else every report would be read twice.
_LOADS_OLD_S = 10.0
# Whoever may write plans may write ten thousand: to read and delete these must not stop a cycle.
_LEFT_AT_ONCE = 100
# After this silence the reports of a node that Storm has not got are deleted.
_NODE_GONE_S = 3600.0

DRAINED = f"{wire.ROOT}/drained"


class LiveCluster:
    """The cluster as ZooKeeper shows it; `timing` limits the age of an answer."""

    def __init__(self, mirror: Mirror, timing: Timing) -> None:
        self._mirror = mirror
        self._nimbus = NimbusWatch(mirror, mirror.now_s)
        self._timing = timing
        self._loads_read_s = -math.inf
        self._published: dict[str, tuple[Publication, Nodes, Publication]] = {}
        self._acks: dict[str, NodeAcks] = {}  # by node
        self._speak: dict[str, set[str]] = {}  # the nodes with answers on each topology
        self._places: dict[str, set[str]] = {}  # and those where it is or will be
        self._views: dict[str, TopologyView] = {}

    @classmethod
    def of_session(cls, session: Session) -> Self:
        """Make a view for people, who look when they like and need not be woken."""
        return cls(Mirror(session, threading.Event()), Timing())

    def led(self) -> None:
        """Take in that this controller has just begun to lead."""
        self._nimbus.led()

    def topologies(self) -> Sequence[TopologyView]:
        """Return every topology that the hooks in Nimbus publish, by id.

        Left out are those that Storm no longer has, or whose publication could never be read.
        """
        newest, nodes = self._nimbus.newest(), self._mirror.message(Nodes, wire.NODES)
        report = None if newest is None else newest.report
        changed, concerned = self._news()
        lowest = min((one.speaks for one in self.controllers()), default=wire.SPEAKS)
        views, before, last = [], self._published, self._views
        self._published, self._views = {}, {}
        for topology in self._mirror.children(wire.TOPOLOGIES):
            found = self._mirror.message(Publication, wire.topology_path(topology))
            named = found is not None and found.topology == topology
            if found is None or nodes is None or not named or not self._nimbus.knows(topology):
                continue
            known = before.get(topology)
            # Whoever stands by may have to end a move.
            speaks = min(found.speaks, lowest)
            # The very same object while nothing has changed: much is worked out of it and kept.
            old_word = known is None or known[0] is not found or known[2].speaks != speaks
            if known is None or old_word or known[1] is not nodes:
                known = found, nodes, structs.replace(found, nodes=nodes.nodes, speaks=speaks)
            self._published[topology] = known
            publication, plan = known[2], self.plan(topology)
            old = last.get(topology)
            stays = old is not None and old.publication is publication and old.plan == plan
            stays = stays and topology not in concerned
            if old is None or not stays or not changed.isdisjoint(self._places[topology]):
                self._places[topology] = _places(publication, plan)
                there = self._places[topology].union(self._speak.get(topology, ()))
                answers = tuple(self._acks[name] for name in sorted(there & self._acks.keys()))
                old = TopologyView(publication, plan, answers)
            view = _updated(old, nimbus=report, stand_back=None)
            stand_back = (
                self._off(view)
                or self._lost(view)
                or self._nimbus.stand_back(publication, plan, newest)
            )
            if stand_back is not None:
                view = _updated(view, stand_back=stand_back)
            if report is not None:
                view = view.at(report.time_ms / 1000)
            self._views[topology] = view
            views.append(view)
        for gone in before.keys() - self._published.keys():
            self._mirror.forget(f"/assignments/{gone}")
            self._places.pop(gone, None)
        return views

    def unpublished(self) -> dict[str, str]:
        """Return why the hooks in Nimbus cannot publish a topology, by its id."""
        newest = self._nimbus.newest()
        published = newest.report.topologies if newest else ()
        return {one.topology: one.problem for one in published if one.problem is not None}

    def _news(self) -> tuple[set[str], set[str]]:
        """Take the fresh answers; return which have changed, and the topologies in these."""
        before, self._acks = self._acks, {acks.node: acks for acks in self.acks()}
        both = {**before, **self._acks}
        changed = {name for name in both if before.get(name) is not self._acks.get(name)}
        concerned: set[str] = set()
        for name in changed:
            was, now = (_named(acks.get(name)) for acks in (before, self._acks))
            concerned |= was | now
            for topology in was | now:
                speak = self._speak.setdefault(topology, set())
                (speak.add if topology in now else speak.discard)(name)
        self._speak = {topology: nodes for topology, nodes in self._speak.items() if nodes}
        return changed, concerned

    def plan(self, topology: str) -> Plan:
        """Return the newest plan that could be read; empty and of version -1 if there is none.

        Its version is always its node's.
        """
        path = wire.plan_path(topology)
        plan = self._mirror.message(Plan, path)
        stored = self._mirror.node(path)
        version = -1 if stored is None else stored.version
        if plan is None or not self._mirror.was_led(plan.epoch):
            return Plan(self.cluster(), 0, version, topology)
        if plan.version == version:
            return plan  # the very same object while nothing has changed
        # A plan that was written by hand may have another version; the next write corrects it.
        return Plan(plan.cluster, plan.epoch, version, topology, plan.entries)

    def free(self, views: Sequence[TopologyView]) -> frozenset[Slot]:
        """List the slots where a move may start a worker, as of the look that gave these views."""
        taken = frozenset[Slot]().union(
            *(view.publication.slots | view.plan.opened_slots() for view in views)
        )
        cluster = self.cluster()
        acks = (acks for acks in self._acks.values() if acks.cluster == cluster)
        return free_slots(views[0].publication.nodes, taken, acks) if views else taken

    def nodes(self) -> tuple[Node, ...]:
        """List the nodes as the hooks in Nimbus last published them, without any other look."""
        nodes = self._mirror.message(Nodes, wire.NODES)
        return nodes.nodes if nodes else ()

    def has_moves(self) -> bool:
        """Return whether any plan of a topology that Storm has got has moves."""
        known = set(self._mirror.children("/storms")).intersection(
            self._mirror.children(wire.PLANS)
        )
        return any(self.plan(topology).entries for topology in sorted(known))

    def off(self) -> str | None:
        """Return why everything is switched off; None while it is on."""
        return why_off(self._mirror.node(wire.OFF))

    def _off(self, view: TopologyView) -> str | None:
        off = self.off()
        return view.observation.switched_off if off is None else f"nstorm is switched off: {off}"

    def _lost(self, view: TopologyView) -> str | None:
        """Return why to wait, while the JVMs follow another plan than the one in ZooKeeper."""
        path = wire.plan_path(view.id)
        there = self._mirror.node(path) is not None
        known = known_of(view, self.cluster(), self._mirror.epoch)
        lost = known.lost(self._mirror.plan(view.id), there)
        return None if lost is None else f"the plan {path} {lost}: the leader writes it again"

    def orphans(self) -> list[tuple[str, int]]:
        """List what is left of topologies and nodes that Storm no longer has, some at a time."""
        if self._mirror.stat("/storms") is None:
            return []  # no Storm here: then it has not killed a topology either
        known = set(self._mirror.children("/storms"))
        names = [name for name in self._mirror.children(wire.PLANS) if name not in known]
        paths = [wire.plan_path(name) for name in names[:_LEFT_AT_ONCE]] + self._of_gone_nodes()
        found = zip(paths, self._mirror.nodes(paths), strict=True)
        return [(path, stored.version) for path, stored in found if stored is not None]

    def _of_gone_nodes(self) -> list[str]:
        """List the reports of nodes that have been silent for long, and that Storm has not got."""
        nodes = self._mirror.message(Nodes, wire.NODES)
        there = {node.id for node in nodes.nodes} if nodes else set()
        acked = [name for name in self._mirror.children(wire.ACKS) if nodes and name not in there]
        self._mirror.watched(NodeAcks, [wire.acks_path(name) for name in acked])
        recent, ever = self._wrote(acked, _NODE_GONE_S), self._wrote(acked, math.inf)
        gone = [name for name, late, once in zip(acked, recent, ever, strict=True) if once > late]
        # The acks last: by them a node is known.
        return [path(name) for name in gone for path in (wire.load_path, wire.acks_path)]

    def cluster(self) -> str:
        """Return the cluster's UUID; empty before the first leader."""
        stored = self._mirror.node(wire.CLUSTER)
        return "" if stored is None else stored.data.decode(errors="replace")

    def controllers(self) -> list[Candidacy]:
        """Return the controllers, the leader first; none while the leader cannot be read."""
        paths = [f"{wire.LEADER}/{name}" for name in in_line(self._mirror.children(wire.LEADER))]
        known = self._mirror.watched(Candidacy, paths)
        return [one for one in known if one is not None] if known and known[0] is not None else []

    def acks(self) -> tuple[NodeAcks, ...]:
        """Return the answers of the nodes whose agents have recently reported."""
        if self._mirror.now_s() - self._loads_read_s > _LOADS_OLD_S:
            self.loads()
        names = self._mirror.children(wire.ACKS)
        read = self._mirror.watched(NodeAcks, [wire.acks_path(name) for name in names])
        found = zip(read, self._wrote(names, self._timing.ack_fresh_s), strict=True)
        return tuple(acks for acks, is_fresh in found if is_fresh and acks is not None)

    def silent_s(self) -> dict[str, float]:
        """Return for how long each node's agent has written neither acks nor a load report.

        By ZooKeeper's clock, until an agent or Nimbus has last written: who looks once has not seen
        them come.
        """
        last_ms = self._last_ms()
        now_ms = self._now_ms(last_ms)
        return {name: (now_ms - ms) / 1000 for name, ms in last_ms.items()}

    def status_s(self) -> float | None:
        """Return how old the status of the leading controller is, by the same clock.

        None where there is no status.
        """
        stored = self._mirror.stat(STATUS)
        if stored is None:
            return None
        return (self._now_ms(self._last_ms()) - stored.mtime_ms) / 1000

    def _last_ms(self) -> dict[str, int]:
        """Return when each node's agent has last written, by ZooKeeper's clock."""
        self.acks()  # which reads them
        written = self._mirror.written_ms
        return {
            name: max(written(wire.acks_path(name)), written(wire.load_path(name)))
            for name in self._mirror.children(wire.ACKS)
        }

    def _now_ms(self, last_ms: Mapping[str, int]) -> int:
        return max([self._mirror.written_ms(wire.NIMBUS), *last_ms.values()])

    def clocks_ahead_s(self) -> dict[str, float]:
        """Return by how much the clock of each node is ahead of ZooKeeper's, by its newest acks.

        It is less by what the way of the acks took, some milliseconds.
        """
        return {
            acks.node: (acks.time_ms - there.mtime_ms) / 1000
            for acks in self.acks()
            if (there := self._mirror.node(wire.acks_path(acks.node))) is not None
        }

    def loads(self) -> Sequence[NodeLoad]:
        """Read the newest report of each node."""
        paths = [wire.load_path(name) for name in self._mirror.children(wire.LOAD)]
        self._loads_read_s = self._mirror.now_s()
        return self._mirror.messages(NodeLoad, paths)

    def _wrote(self, nodes: Sequence[str], within_s: float) -> list[bool]:
        """Return which agents were recently seen to write; clocks of nodes are not compared."""
        acks = self._mirror.came_within(map(wire.acks_path, nodes), within_s)
        loads = self._mirror.came_within(map(wire.load_path, nodes), within_s)
        return list(map(operator.or_, acks, loads))

    def controls(self) -> Controls:
        """Return what operators have set."""
        return read(self._mirror.node(CONTROLS))

    def drained(self) -> dict[str, int]:
        """Return the hosts that operators drain, and how many executors each had."""
        hosts = sorted(self._mirror.children(DRAINED))
        found = self._mirror.nodes(f"{DRAINED}/{host}" for host in hosts)
        return {
            host: int(stored.data[:9]) if stored and stored.data.isdigit() else 0
            for host, stored in zip(hosts, found, strict=True)
        }


def known_of(view: TopologyView, cluster: str, epoch: int) -> KnownPlan:
    """Gather what the nodes know of a topology's plan, once for each view.

    Plans of other lineages than `cluster` do not count, nor of epochs far above `epoch`.
    """
    asked = cluster, view.read_by_nimbus, epoch
    of, known = vars(view).get("known", (None, None))
    if known is None or of != asked:
        known = KnownPlan.of(view.id, cluster, view.acks, view.read_by_nimbus, epoch)
        vars(view)["known"] = asked, known
    return cast(KnownPlan, known)


def _updated(old: TopologyView, **new: Any) -> TopologyView:
    """Change a view, and keep what is worked out of publication, plan and answers alone."""
    view = dataclasses.replace(old, **new)
    kept = ("observation", "allowed", "known")
    vars(view).update({name: vars(old)[name] for name in kept if name in vars(old)})
    return view


def _places(publication: Publication, plan: Plan) -> set[str]:
    """Name the supervisors where Storm or the plan has the topology."""
    ends = {end for entry in plan.entries for end in (entry.source, entry.target)}
    return {slot.supervisor for slot in publication.slots | ends}


def _named(node: NodeAcks | None) -> set[str]:
    """Name the topologies in the answers of a node."""
    if node is None:
        return set()
    named = {worker.topology for worker in node.workers}
    named.update(plan.topology for plan in node.held)
    if node.supervisor is not None:
        named.update(slot.topology for slot in node.supervisor.slots)
        named.update(plan.topology for plan in node.supervisor.plans)
    return named
