"""Plays the agents, the JVMs and Nimbus of a paper cluster against a real ZooKeeper.

``python -m tests.bench.scale.imitator``, started by `run`. What is written is what an agent writes:
its own `Pusher` makes it. What is read, an agent reads: the same nodes, watches and polls.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from agent.daemon import LOOK_EVERY_S
from agent.push import Pusher
from agent.samples import Samples
from controller.core.cluster import Floats
from kvstore.zookeeper import Session
from migration import wire
from migration.model import (
    AppliedPlan,
    Entry,
    EntryAck,
    EntryState,
    ExecutorId,
    ExecutorLoad,
    NimbusReport,
    PersistedSlot,
    Phase,
    PinnedExecutor,
    Plan,
    PublishedTopology,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from migration.settings import DEFAULT, load_s
from tests.bench.scale.client import Count, Wire, connected
from tests.bench.scale.cluster import (
    CORES_AN_EXECUTOR,
    PaperCluster,
    Sent,
    Topology,
    paper_cluster,
)

ROOT = "/storm"
LOAD_S, SYNC_S = load_s({}), DEFAULT["agent.sync.secs"]
SIGN_OF_LIFE_S = 4.5
# From an agent's commit until its workers have applied the plan and reported it.
JVM_S = 0.03
# From a plan in STOP to Storm's new assignment, and until a worker has read that in SETTLE.
ABSORB_S, REFRESH_S = 0.3, 1.0
TELL_S = 0.5
# Totals are those of JVMs that have run for a day.
AGE_S = 86_400.0
OTHER_CORES = 0.05
PID = 4711
# What the hooks name of a worker's pairs.
ALL_NAMED, STANDS_OUT = 100, 1.5
# The state that each end of a move reports in each phase; a target ROUTED where it has no row.
SOURCE_STATES = {
    Phase.PREPARE: EntryState.READY,
    Phase.SWITCH: EntryState.ROUTED,
    Phase.DRAIN: EntryState.DRAINED,
    Phase.STOP: EntryState.STOPPED,
    Phase.SETTLE: EntryState.STOPPED,
    Phase.UNDO: EntryState.ROUTED,
}
TARGET_STATES = {Phase.PREPARE: EntryState.READY, Phase.UNDO: EntryState.STOPPED}


@dataclass(slots=True)
class Worker:
    """One JVM: who runs in it, and what it has sent."""

    topology: Topology
    slot: Slot
    source: list[int]
    target: list[int]
    tps: Floats
    folded_tps: dict[tuple[int, str], float]
    came_s: dict[int, float]

    @classmethod
    def of(cls, topology: Topology, slot: Slot, began_s: float) -> "Worker":
        """Start it with the executors that Storm has put there first."""
        sent, folded_tps = folded(topology, topology.sent_by(slot))
        tasks = [task for task, at in topology.slot_of.items() if at == slot]
        rows = sent.source.tolist(), sent.target.tolist()
        return cls(topology, slot, *rows, sent.tps, folded_tps, dict.fromkeys(tasks, began_s))

    @property
    def executors(self) -> tuple[ExecutorId, ...]:
        """Who runs here."""
        return tuple(ExecutorId(task, task) for task in sorted(self.came_s))

    def ack(self, plan: Plan | None, places: dict[int, Slot], time_ms: int) -> WorkerAck:
        """Report how far it has come."""
        topology = self.topology
        component, kind = topology.component_of, topology.kind_of
        pinned = [
            PinnedExecutor(one, kind[component[one.start]])
            for one in self.executors
            if kind[component[one.start]] != "bolt"
        ]
        entries = () if plan is None else plan.entries
        return WorkerAck(
            topology=topology.id,
            slot=self.slot,
            pid=PID,
            incarnation=f"{PID}-1700000000000",
            hooks="0.2.0",
            speaks=wire.SPEAKS,
            time_ms=time_ms,
            cluster="" if plan is None else plan.cluster,
            epoch=0 if plan is None else plan.epoch,
            version=-1 if plan is None else plan.version,
            entries=tuple(
                EntryAck(e.id, self._state(e), places.get(e.executor.start)) for e in entries
            ),
            executors=self.executors,
            pinned=tuple(pinned),
        )

    def _state(self, entry: Entry) -> EntryState:
        if self.slot == entry.source:
            return SOURCE_STATES[entry.phase]
        if self.slot == entry.target:
            return TARGET_STATES.get(entry.phase, EntryState.ROUTED)
        return EntryState.NONE if entry.phase is Phase.PREPARE else EntryState.ROUTED

    def load(self, now_s: float, began_s: float) -> WorkerLoad:
        """Report what it has measured."""
        since_s = now_s - began_s
        spent_ns = {
            task: int(1e9 * CORES_AN_EXECUTOR * (now_s - came_s))
            for task, came_s in self.came_s.items()
        }
        totals = (self.tps * since_s).astype(np.int64).tolist()
        cores = OTHER_CORES + CORES_AN_EXECUTOR * len(spent_ns)
        component = self.topology.component_of
        return WorkerLoad(
            topology=self.topology.id,
            slot=self.slot,
            incarnation=f"{PID}-1700000000000",
            time_ms=int(now_s * 1000),
            process_cpu_ns=int(1e9 * cores * since_s),
            executors=tuple(
                ExecutorLoad(ExecutorId(task, task), component[task], spent_ns[task], 0, None)
                for task in sorted(spent_ns)
            ),
            traffic=traffic_of(zip(self.source, self.target, totals, strict=True)),
            folded=tuple(
                (source, name, int(tps * since_s))
                for (source, name), tps in self.folded_tps.items()
            ),
        )


def folded(topology: Topology, sent: Sent) -> tuple[Sent, dict[tuple[int, str], float]]:
    """Name pairs and fold the rest, as `TrafficFigures` in the hooks does under steady traffic."""
    if len(sent.tps) <= ALL_NAMED:
        return sent, {}
    rows: dict[tuple[int, str], list[int]] = {}
    for row, ends in enumerate(zip(sent.source.tolist(), sent.target.tolist(), strict=True)):
        rows.setdefault((ends[0], topology.component_of[ends[1]]), []).append(row)
    tasks = Counter(topology.component_of.values())
    stands_out = np.zeros(len(sent.tps), np.bool_)
    folded_tps = {}
    for (source, name), group in rows.items():
        tps = sent.tps[group]
        named = tps > STANDS_OUT * tps.sum() / tasks[name]
        stands_out[group] = named
        folded_tps[source, name] = float(tps[~named].sum())
    kept = Sent(sent.source[stands_out], sent.target[stands_out], sent.tps[stands_out])
    return kept, {group: tps for group, tps in folded_tps.items() if tps}


@dataclass
class World:
    """What is true of the cluster, and what is counted of it."""

    paper: PaperCluster
    address: tuple[str, int]
    began_s: float = field(default_factory=lambda: time.time() - AGE_S)
    count: Count = field(default_factory=Count)
    reports: int = 0
    acks: int = 0
    late_s: float = 0.0
    plan_ms: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start the workers."""
        self.places = {topology.id: dict(topology.slot_of) for topology in self.paper.topologies}
        self.workers = {
            slot: Worker.of(topology, slot, self.began_s)
            for topology in self.paper.topologies
            for slot in topology.slots
        }
        self.agents: dict[str, Agent] = {}

    def absorb(self, topology: str, entry: Entry) -> None:
        """Let Storm have the executor at the target."""
        task = entry.executor.start
        self.places[topology][task] = entry.target
        self.workers[entry.source].came_s.pop(task, None)
        self.workers[entry.target].came_s[task] = time.time()


class _Outbox:
    """What a `Pusher` takes for its session."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    def put(self, path: str, data: bytes) -> int:
        """Write a node that is there, and do not wait for it."""
        agent = self._agent
        load = path.startswith(wire.LOAD)
        agent.world.reports += load
        agent.world.acks += not load
        agent.unanswered.append(agent.wire.set(path, data))
        return 0


class Agent:
    """One node: its agent, its supervisor and its workers.

    Parameters
    ----------
    name : str
        The supervisor's id.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.workers = [w for slot, w in sorted(world.workers.items()) if slot.supervisor == name]
        self.unanswered: list[asyncio.Future[Any]] = []
        self.wire: Wire = cast(Wire, None)
        self.wake = asyncio.Event()
        self._pusher = Pusher(cast(Session, _Outbox(self)), LOAD_S)
        self._cluster = ""
        self._loaded_s = -LOAD_S
        self._plans: dict[str, Plan] = {}
        self._read: dict[str, int] = {}
        self._stale: set[str] = set()
        self._watched: set[str] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until asked to stop, at a pace of its own."""
        world = self.world
        loop, number = asyncio.get_running_loop(), world.paper.nodes.index(self.name)
        await asyncio.sleep(random.uniform(0, LOAD_S))
        host = f"127.1.{number // 250}.{1 + number % 250}"
        self.wire = await connected(world.address, ROOT, self._changed, world.count, host=host)
        due_s = sync_s = loop.time()
        while not stop.is_set():
            now_s = loop.time()
            if now_s >= sync_s:
                sync_s = max(sync_s + SYNC_S, now_s)
                plans = map(wire.plan_path, self._topologies())
                self._stale |= {wire.EPOCH, wire.CLUSTER, *plans}
            if self._stale:
                await self._sync()
            if now_s >= due_s:
                world.late_s = max(world.late_s, now_s - due_s)
            self._push(loop.time())
            # An agent looks each 50 ms whether it is due.
            due_s = self._loaded_s + LOAD_S + random.uniform(0, LOOK_EVERY_S)
            await asyncio.gather(*self.unanswered)
            self.unanswered.clear()
            pause_s = max(min(due_s, sync_s) - loop.time(), 0.0)
            try:
                await asyncio.wait_for(self.wake.wait(), pause_s)
            except TimeoutError:
                continue
            self.wake.clear()
        await self.wire.close()

    def _topologies(self) -> list[str]:
        return [worker.topology.id for worker in self.workers]

    def _changed(self, path: str) -> None:
        self._watched.discard(path)
        self._stale.add(path)
        self.wake.set()

    def _watch(self, path: str) -> bool:
        """Watch a node unless it is watched already."""
        new = path not in self._watched
        self._watched.add(path)
        return new

    async def _sync(self) -> None:
        """Read what `Puller` reads."""
        stale, self._stale = self._stale, set()
        if wire.EPOCH in stale:
            leading = await self.wire.exists(wire.EPOCH, self._watch(wire.EPOCH))
            self._pusher.led_by(None if leading is None else leading.version)
        if wire.CLUSTER in stale:
            found = await self.wire.get(wire.CLUSTER, self._watch(wire.CLUSTER))
            self._cluster = "" if found is None else found[0].decode()
        news = False
        for topology in self._topologies():
            if wire.plan_path(topology) in stale:
                news = await self._sync_plan(topology) or news
        if news:
            await asyncio.sleep(JVM_S)

    async def _sync_plan(self, topology: str) -> bool:
        """Read a plan; return whether it is another."""
        path = wire.plan_path(topology)
        new = self._watch(path)
        found = await self.wire.get(path, new)
        if found is None:
            if new:
                await self.wire.exists(path, True)
            published = wire.topology_path(topology)
            await self.wire.exists(published, self._watch(published))
            return False
        data, stat = found
        if self._read.get(topology) == stat.mzxid:
            return False
        self._read[topology] = stat.mzxid
        self._plans[topology] = wire.decode(Plan, data)
        if new:  # else a poll has found it, or it was there before
            self.world.plan_ms.append(time.time() * 1000 - stat.mtime)
        return True

    def _push(self, clock_s: float) -> None:
        world, now_s = self.world, time.time()
        now_ms = int(now_s * 1000)
        read = tuple(
            AppliedPlan(plan.topology, plan.epoch, plan.version) for plan in self._plans.values()
        )
        kept = tuple(PersistedSlot(w.slot.port, w.topology.id, w.executors) for w in self.workers)
        acks = tuple(
            w.ack(self._plans.get(w.topology.id), world.places[w.topology.id], now_ms)
            for w in self.workers
        )
        said = (self.name, PID, "0.2.0", wire.SPEAKS, now_ms, self._cluster, read, kept)
        supervisor = SupervisorAck(*said)
        due = self._pusher.load_is_due(clock_s)
        self._loaded_s = clock_s if due else self._loaded_s
        measuring = self.workers if due else ()
        loads = tuple(w.load(now_s, world.began_s) for w in measuring)
        samples = Samples(acks, loads, supervisor)
        self._pusher.push(samples, self.name, self._cluster, clock_s)


class Nimbus:
    """The hook in Nimbus: publishes, and absorbs what the plans ask for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._plans: dict[str, Plan] = {}
        self._stale = {topology.id for topology in world.paper.topologies}
        self._wake = asyncio.Event()
        self.wire: Wire = cast(Wire, None)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until asked to stop."""
        world = self._world
        self.wire = await connected(world.address, ROOT, self._changed, world.count)
        loop, said_s = asyncio.get_running_loop(), 0.0
        while not stop.is_set():
            stale, self._stale = self._stale, set()
            changed = [await self._read(topology) for topology in sorted(stale)]
            if any(changed):
                await asyncio.sleep(ABSORB_S)
                for topology in changed:
                    if topology is not None:
                        await self._absorb(topology)
            if any(changed) or loop.time() - said_s >= SIGN_OF_LIFE_S:
                said_s = loop.time()
                await self.wire.set(wire.NIMBUS, wire.encode(self.report()))
            try:
                await asyncio.wait_for(self._wake.wait(), SIGN_OF_LIFE_S - (loop.time() - said_s))
            except TimeoutError:
                continue
            self._wake.clear()
        await self.wire.close()

    def _changed(self, path: str) -> None:
        self._stale.add(path.rpartition("/")[2])
        self._wake.set()

    async def _read(self, topology: str) -> str | None:
        """Read a plan; name its topology if it asks for what Storm has not done."""
        path = wire.plan_path(topology)
        found = await self.wire.get(path, True)
        if found is None:
            await self.wire.exists(path, True)
            return None
        plan = self._plans[topology] = wire.decode(Plan, found[0])
        return topology if self._wanted(plan) else None

    def _wanted(self, plan: Plan) -> list[Entry]:
        places = self._world.places[plan.topology]
        return [
            entry
            for entry in plan.entries
            if entry.absorbable
            and entry.void is None
            and places[entry.executor.start] != entry.target
        ]

    async def _absorb(self, topology: str) -> None:
        world = self._world
        for entry in self._wanted(self._plans[topology]):
            world.absorb(topology, entry)
        await self.wire.set(f"/assignments/{topology}", b"")
        await self.wire.set(wire.topology_path(topology), self.publication(topology))
        (of,) = (one for one in world.paper.topologies if one.id == topology)
        loop = asyncio.get_running_loop()
        for node in of.nodes:
            # Each worker reads it from its supervisor within a second.
            loop.call_later(random.uniform(0, REFRESH_S), world.agents[node].wake.set)

    def publication(self, topology: str) -> bytes:
        """Write the publication of a topology."""
        (of,) = (one for one in self._world.paper.topologies if one.id == topology)
        return wire.packed(wire.encode(of.publication(self._world.places[topology])))

    def report(self) -> NimbusReport:
        """Make the report of Nimbus."""
        said = []
        for topology in self._world.paper.topologies:
            plan = self._plans.get(topology.id)
            said.append(PublishedTopology(topology.id, None if plan is None else plan.stamp))
        names = ("0.2.0", wire.SPEAKS, "org.apache.storm.scheduler.DefaultScheduler")
        return NimbusReport(int(time.time() * 1000), *names, tuple(said))


def make_nodes(hosts: str, world: World, nimbus: Nimbus) -> None:
    """Make every node that the controller does not write."""
    with Session(hosts) as session:
        assert session.connect()
        session.create(ROOT)
    with Session(hosts + ROOT) as session:
        assert session.connect()
        for topology in world.paper.topologies:
            for folder in ("storms", "assignments"):
                session.create(f"/{folder}/{topology.id}")
            session.create(wire.topology_path(topology.id), nimbus.publication(topology.id))
        session.create(wire.NODES, wire.packed(wire.encode(world.paper.supervisors())))
        session.create(wire.NIMBUS, wire.encode(nimbus.report()))
        for name in world.paper.nodes:
            session.create(wire.acks_path(name), b"")
            session.create(wire.load_path(name), b"")


async def _told(world: World, stop: asyncio.Event) -> None:
    """Report to the parent what was counted, line by line."""
    while not stop.is_set():
        count, world_plan_ms = world.count, world.plan_ms
        world.plan_ms = []
        told = {
            "at_s": time.monotonic(),
            "into_bytes": count.sent_bytes,
            "out_bytes": count.received_bytes,
            "reports": world.reports,
            "acks": world.acks,
            "late_s": round(world.late_s, 3),
            "plan_ms": world_plan_ms,
        }
        world.late_s = 0.0
        print(json.dumps(told), flush=True)
        await asyncio.sleep(TELL_S)


async def imitate(hosts: str, nodes: int) -> None:
    """Play until standard input ends.

    Parameters
    ----------
    hosts : str
        Host and port of ZooKeeper, which is unused yet.
    """
    host, _, port = hosts.partition(":")
    world = World(paper_cluster(nodes), (host, int(port)))
    nimbus = Nimbus(world)
    make_nodes(hosts, world, nimbus)
    world.agents = {name: Agent(world, name) for name in world.paper.nodes}
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), stop.set)
    works = [nimbus.run(stop), _told(world, stop)]
    works += [agent.run(stop) for agent in world.agents.values()]
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(imitate(sys.argv[1], int(sys.argv[2])))
