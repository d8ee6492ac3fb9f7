"""Brings the plans from ZooKeeper to the node's store, as soon as they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event

from kvstore.foreign import first_bytes
from kvstore.logs import log
from kvstore.watched import Watched
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session
from migration import StalePlanError, WireError
from migration.model import LocalPlan, Plan, names_a_node
from migration.recovery import credible
from migration.wire import (
    CLUSTER,
    EPOCH,
    OFF,
    OPENS,
    PLANS,
    decode,
    encode_local,
    plan_path,
    plans_of,
    topology_path,
)

ADOPT_FILE = "adopt-cluster"


class Puller:
    """Keeps the node's local plan; sets `wake` whenever `sync` has something to do."""

    def __init__(self, session: Session, writer: PlanWriter, store_dir: Path, wake: Event) -> None:
        self._watched = Watched(session, wake)
        self._writer = writer
        self._adopt_file = store_dir / ADOPT_FILE
        self._said: dict[str, str] = {}
        # The bytes that the plans of `local` came in, by topology.
        self._data: dict[str, bytes] = {}
        self.local = self._stored()  # the plans of this node, None if it has seen no cluster
        self.lost: tuple[Plan, ...] = ()  # that this node holds and ZooKeeper has lost
        self._asked: frozenset[str] = frozenset()
        self.epoch: int | None = None  # of the newest leader, None if there was none yet
        self.off = b""  # why all hooks are switched off

    @property
    def texts(self) -> Mapping[str, bytes]:
        """The plans of `local` as they came, by topology."""
        return self._data

    @property
    def cluster(self) -> str:
        """The cluster that this node follows, empty if it has seen none."""
        return "" if self.local is None else self.local.cluster

    def tend_store(self) -> None:
        """Free what dead readers of the plan's store hold, and mend it if it is damaged."""
        self._writer.check_readers()
        self._say_damage()

    def _say_damage(self) -> None:
        problem, self._writer.problem = self._writer.problem, None
        if problem is not None:
            log.error("plan_store_damaged", reason=problem)

    def _stored(self) -> LocalPlan | None:
        self._say_damage()
        if self._writer.last is None:
            return None
        payload = self._writer.last.payload
        try:
            local = decode(LocalPlan, payload)
        except WireError as error:
            log.error("plan_store_damaged", reason=str(error))
            return None
        self._data = dict(zip((p.topology for p in local.plans), plans_of(payload), strict=True))
        return local

    def invalidate_all(self) -> None:
        """Read everything again at the next `sync`."""
        self._watched.invalidate_all()

    def sync(self, node: str | None, here: frozenset[str] | None) -> bool:
        """Read what has changed and store the plans of this node; return whether any was new.

        `node` is the supervisor's id, None while no JVM has reported it. `here` has the topologies
        with a worker on the node. None, while that is not known, takes all. Raises StoreError if
        ZooKeeper does not answer or the store cannot be written.
        """
        leading = self._watched.stat(EPOCH)
        self.epoch = None if leading is None else leading.version
        switch = self._watched.node(OFF)
        off = b"" if switch is None else switch.data
        if off and not self.off:
            # A watch may report late what was written before: every move that has begun must be
            # read before the JVMs take none.
            self._watched.invalidate_all()
        self.off = off
        held = self._of_cluster()
        if held is None:
            self.lost = ()
            return False
        newest, data, lost = self._of_node(held, node, here)
        for plan in lost:
            if plan not in self.lost:
                log.info("plan_kept", topology=plan.topology, plan_version=_text(plan))
        self.lost = lost
        if newest == self.local:
            return False
        self._writer.write(encode_local(newest.cluster, data))
        if self.local is not None and self.local.cluster != newest.cluster:
            log.warning("cluster_adopted", cluster=newest.cluster, before=self.local.cluster)
        self._adopt_file.unlink(missing_ok=True)
        # Only now: what could not be stored must not be handed out either.
        self.local, self._data = newest, data
        for plan in newest.plans:
            if held.find(plan.topology) != plan:
                log.info("plan_stored", topology=plan.topology, plan_version=_text(plan))
        return True

    def _of_node(
        self, held: LocalPlan, node: str | None, here: frozenset[str] | None
    ) -> tuple[LocalPlan, dict[str, bytes], tuple[Plan, ...]]:
        """Return the newest good plans that concern the node, and their bytes by topology.

        Last, which of them are only here.
        """
        newest = LocalPlan(held.cluster)
        data, lost = {}, []
        held = self._credible(held)
        wanted = self._watched.children(PLANS) if here is None else here | self._opening(node)
        asked = frozenset(filter(names_a_node, wanted)).union(plan.topology for plan in held.plans)
        self._forget(self._asked - asked)
        self._asked = asked
        for topology in sorted(asked):
            found = self._plan(held, topology)
            kept = found or self._kept(held, topology)
            if kept is None:
                continue
            plan, came = kept
            if not (here is None or topology in here or _touches(plan, node)):
                continue
            newest = newest.with_plan(plan)
            data[topology] = came
            if found is None:
                lost.append(plan)
        return newest, data, tuple(lost)

    def _credible(self, held: LocalPlan) -> LocalPlan:
        """Drop plans that were stored unseen before an agent looked at their epochs."""
        newest = self.epoch
        if newest is None or all(credible(plan.epoch, newest) for plan in held.plans):
            return held
        for plan in held.plans:
            if not credible(plan.epoch, newest):
                advice = "its workers follow plans again once they are restarted"
                log.error(
                    "plan_dropped", topology=plan.topology, plan_version=_text(plan), advice=advice
                )
        plans = tuple(plan for plan in held.plans if credible(plan.epoch, newest))
        return LocalPlan(held.cluster, plans)

    def _opening(self, node: str | None) -> frozenset[str]:
        """Name the topologies that a move brings to this node, which may have nothing of them."""
        stored = None if node is None else self._watched.node(f"{OPENS}/{node}")
        return frozenset(stored.data.decode(errors="replace").split("\n") if stored else ())

    def _forget(self, topologies: Iterable[str]) -> None:
        """Give up what is kept of topologies that have left the node."""
        for topology in topologies:
            for path in (plan_path(topology), topology_path(topology)):
                self._watched.forget(path)
                self._said.pop(path, None)

    def _of_cluster(self) -> LocalPlan | None:
        """Return what is held, unless ZooKeeper is now another cluster's."""
        stored = self._watched.node(CLUSTER)
        if stored is None:
            return None
        found = stored.data.decode(errors="replace").strip()
        if self.local is None or found == self.local.cluster:
            return self.local or LocalPlan(found)
        if self._adopted() == found:
            return LocalPlan(found)
        self._say(
            CLUSTER,
            f"ZooKeeper is of cluster {found}, this node follows {self.local.cluster}; if it was "
            "rebuilt on purpose, run `nstorm-agent adopt-cluster` here",
        )
        return None

    def _adopted(self) -> str:
        try:
            return first_bytes(self._adopt_file).decode(errors="replace").strip()
        except OSError:
            return ""

    def _plan(self, held: LocalPlan, topology: str) -> tuple[Plan, bytes] | None:
        """Return the plan of a topology in ZooKeeper as it came, None if there is no good one."""
        stored = self._watched.node(plan_path(topology))
        if stored is None:
            return None
        try:
            if not stored.data.lstrip().startswith(b"{"):
                # It goes to the JVMs as it came: compressed, it would spoil all plans of the node.
                raise WireError("Plan", "is no plain JSON")
            plan = decode(Plan, stored.data)
            if plan.topology != topology:
                raise WireError("Plan.topology", f"is {plan.topology}")
            if not self._watched.has_version(EPOCH, plan.epoch):
                raise WireError("Plan.epoch", f"is {plan.epoch}, which no leader has had")
            held.with_plan(plan)
        except (WireError, StalePlanError) as error:
            self._say(plan_path(topology), str(error))
            return None
        self._said.pop(plan_path(topology), None)
        return plan, stored.data

    def _kept(self, held: LocalPlan, topology: str) -> tuple[Plan, bytes] | None:
        """Return the held plan where ZooKeeper has no good one; a killed topology needs none."""
        gone = self._watched.node(plan_path(topology)) is None
        if gone and self._watched.stat(topology_path(topology)) is None:
            return None
        plan = held.find(topology)
        return None if plan is None else (plan, self._data[topology])

    def _say(self, path: str, problem: str) -> None:
        """Report a problem once; the last good plan stays."""
        if self._said.get(path) != problem:
            self._said[path] = problem
            log.error("plan_ignored", node=path, reason=problem)


def _touches(plan: Plan, node: str | None) -> bool:
    return any(node in (entry.source.supervisor, entry.target.supervisor) for entry in plan.entries)


def _text(plan: Plan) -> str:
    return f"{plan.epoch}.{plan.version}"
