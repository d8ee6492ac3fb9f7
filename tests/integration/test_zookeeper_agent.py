"""The agent as a process between a real ZooKeeper and real stores; the JVMs are played here."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.config import AgentConfig, AgentError
from agent.daemon import adopt_cluster
from kvstore.env import Env
from kvstore.envelope import pack
from kvstore.errors import StoreError
from kvstore.reader import StoreReader
from kvstore.zookeeper import Session
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    LocalPlan,
    NodeAcks,
    NodeLoad,
    PersistedSlot,
    Phase,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from migration.wire import (
    CLUSTER,
    EPOCH,
    PLANS,
    acks_path,
    decode,
    encode,
    load_path,
    plan_path,
    topology_path,
)
from tests.messages import replace

pytestmark = pytest.mark.zookeeper

HERE, THERE = Slot("s1", 6700), Slot("s2", 6700)
MOVE = Entry("m1", ExecutorId(7, 7), HERE, THERE, Phase.PREPARE, Base(HERE, 100))
RUN = """
import json, sys
from pathlib import Path
import structlog
from agent.config import AgentConfig
from agent.daemon import run
from kvstore.service import ended_by_signals
structlog.configure(processors=[structlog.processors.format_exc_info,
                                structlog.processors.JSONRenderer()],
                    logger_factory=structlog.WriteLoggerFactory())  # one write a line
hosts, store, node, sync_s = json.loads(sys.argv[1])
with ended_by_signals() as stop:
    sys.exit(run(AgentConfig(hosts, Path(store), node, sync_s=sync_s, load_s=0.2), stop))
"""


@dataclass
class World:
    """A node's folder, its ZooKeeper, and the agents that a test has started."""

    hosts: str
    store: Path
    session: Session
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)
    # So long that only a watch brings a plan at once.
    sync_s: float = 3600.0

    def start(self, node: str | None = "s1", hosts: str | None = None) -> subprocess.Popen[bytes]:
        arguments = json.dumps([hosts or self.hosts, str(self.store), node, self.sync_s])
        with (self.store / "log").open("ab") as log:
            agent = subprocess.Popen([sys.executable, "-c", RUN, arguments], stdout=log, stderr=log)
        self.agents.append(agent)
        return agent

    def started(self, node: str | None = "s1") -> subprocess.Popen[bytes]:
        before = len(self.logged("agent_started"))
        agent = self.start(node)
        eventually(lambda: len(self.logged("agent_started")) > before)
        return agent

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = (self.store / "log").read_text().splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        return [entry for entry in entries if entry["event"] == event]

    def plan(self) -> LocalPlan | None:
        """Return what the JVMs of the node would read."""
        try:
            with contextlib.closing(StoreReader(self.store / "plan")) as reader:
                envelope = reader.read(b"plan").envelope
        except StoreError:
            return None
        return None if envelope is None else decode(LocalPlan, envelope.payload)

    def holds(self, *plans: Plan) -> bool:
        local = self.plan()
        return local is not None and local.plans == plans

    def write(self, plan: Plan) -> None:
        self.session.put(plan_path(plan.topology), encode(plan))

    def say(self, key: str, payload: bytes, count: int, port: int = 6700) -> None:
        """Play a worker whose process is this one."""
        self._put(self.store / "w" / f"{port}-{os.getpid()}", key, payload, count)

    def supervise(self, count: int, *topologies: str) -> None:
        """Play a supervisor that has workers of these topologies."""
        slots = tuple(PersistedSlot(6700 + i, name, ()) for i, name in enumerate(topologies))
        said = SupervisorAck(
            "s1", os.getpid(), "0.2.0", 1, int(time.time() * 1000), "c1", (), slots
        )
        self._put(self.store / "s" / str(os.getpid()), "ack", encode(said), count)

    @staticmethod
    def _put(folder: Path, key: str, payload: bytes, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "next").write_bytes(pack(count, payload))
        (folder / "next").rename(folder / f"{key}.bin")
        os.utime(folder, (time.time() - 60,) * 2)

    def close(self) -> None:
        for agent in self.agents:
            agent.kill()
            agent.wait()


def eventually(true: Callable[[], object], limit_s: float = 120.0) -> None:
    until_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until_s, "it did not happen"
        time.sleep(0.005)


@pytest.fixture
def world(zookeeper: str, tmp_path: Path) -> Iterator[World]:
    place = f"/test-{uuid.uuid4().hex}"
    with Session(zookeeper) as root:
        root.connect()
        root.create(place)
    with Session(zookeeper + place) as session:
        session.connect()
        session.create(CLUSTER, b"c1")
        session.create(PLANS)
        session.create("/storms")
        session.create(EPOCH)
        while session.set(EPOCH, b"") < 5:  # as many leaders as the plans are of
            pass
        made = World(zookeeper + place, tmp_path / "nstorm", session)
        made.store.mkdir()
        (made.store / "log").touch()
        try:
            yield made
        finally:
            made.close()


def ack(**changes: object) -> WorkerAck:
    now_ms = int(time.time() * 1000)
    made = WorkerAck("wc-1", HERE, os.getpid(), "1-1", "0.2.0", 1, now_ms, "", 0, -1)
    return replace(made, **changes)


def publication(topology: str, *slots: Slot) -> Publication:
    placed = tuple(
        PlacedExecutor(ExecutorId(i, i), "b", slot, 100) for i, slot in enumerate(slots, 1)
    )
    return Publication(topology, "wc", "ACTIVE", 10, (), (), placed)


def test_a_plan_reaches_the_store_by_the_watch(world: World) -> None:
    world.started()
    for version in range(20):
        plan = Plan("c1", 1, version, "wc-1", (MOVE,))
        world.write(plan)
        # The fallback poll is an hour away.
        eventually(partial(world.holds, plan))


def test_what_was_written_while_the_agent_was_away_is_there_after_its_start(world: World) -> None:
    world.write(Plan("c1", 1, 0, "wc-1", (MOVE,)))
    agent = world.started()
    eventually(lambda: world.holds(Plan("c1", 1, 0, "wc-1", (MOVE,))))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    world.write(Plan("c1", 1, 1, "wc-1"))
    world.started()
    eventually(lambda: world.holds(Plan("c1", 1, 1, "wc-1")))


def test_a_killed_agent_leaves_the_plan_and_the_next_goes_on(world: World) -> None:
    plan = Plan("c1", 1, 0, "wc-1", (MOVE,))
    world.write(plan)
    agent = world.started()
    eventually(lambda: world.holds(plan))
    agent.kill()
    agent.wait()
    assert world.holds(plan)
    with contextlib.closing(StoreReader(world.store / "plan")) as reader:
        before = reader.read(b"plan").envelope
    world.started()
    world.write(Plan("c1", 1, 1, "wc-1"))
    eventually(lambda: world.holds(Plan("c1", 1, 1, "wc-1")))
    with contextlib.closing(StoreReader(world.store / "plan")) as reader:
        after = reader.read(b"plan").envelope
    assert before is not None and after is not None and after.version > before.version


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage",
        b"",
        encode(Plan("c1", 1, 4, "wc-1")),
        encode(Plan("c2", 9, 9, "wc-1")),
        encode(Plan("c1", 9, 9, "other-1")),
    ],
    ids=["garbage", "empty", "older", "of another cluster", "of another topology"],
)
def test_a_bad_plan_is_ignored_and_reported_once(world: World, bad: bytes) -> None:
    good = Plan("c1", 1, 5, "wc-1", (MOVE,))
    world.write(good)
    world.started()
    eventually(lambda: world.holds(good))
    world.session.put(plan_path("wc-1"), bad)
    eventually(lambda: world.logged("plan_ignored"))
    # Other plans go on, and so does this one when it is good again.
    world.write(Plan("c1", 1, 0, "ab-2"))
    eventually(lambda: world.holds(Plan("c1", 1, 0, "ab-2"), good))
    better = replace(good, version=6, entries=())
    world.write(better)
    eventually(lambda: world.holds(Plan("c1", 1, 0, "ab-2"), better))
    assert [entry["node"] for entry in world.logged("plan_ignored")] == ["/nstorm/plans/wc-1"]


@pytest.mark.parametrize("lost", [None, b"garbage"], ids=["deleted", "garbage"])
def test_a_plan_that_zookeeper_loses_is_kept_and_shown(world: World, lost: bytes | None) -> None:
    plan = Plan("c1", 1, 5, "wc-1", (MOVE,))
    world.write(plan)
    world.session.put(topology_path("wc-1"), encode(publication("wc-1", HERE, THERE)))
    world.started()
    eventually(lambda: world.holds(plan))

    def shown() -> tuple[Plan, ...] | None:
        stored = world.session.read(acks_path("s1"))
        return None if stored is None else decode(NodeAcks, stored.data).held

    eventually(lambda: shown() == ())
    if lost is None:
        world.session.delete(plan_path("wc-1"))
    else:
        world.session.set(plan_path("wc-1"), lost)
    eventually(lambda: shown() == (plan,))
    assert world.holds(plan)
    back = replace(plan, epoch=2, version=6)
    world.write(back)
    eventually(lambda: world.holds(back) and shown() == ())


def test_a_damaged_store_is_reported_and_filled_again(world: World) -> None:
    plan = Plan("c1", 1, 0, "wc-1", (MOVE,))
    world.write(plan)
    (world.store / "plan").mkdir(parents=True)
    (world.store / "plan" / "data.mdb").write_bytes(b"garbage" * 4000)
    world.started()
    eventually(lambda: world.holds(plan))
    assert len(world.logged("plan_store_damaged")) == 1


def test_truncated_stores_do_not_end_the_agent(world: World) -> None:
    plan = Plan("c1", 1, 0, "wc-1", (MOVE,))
    world.write(plan)
    folder = world.store / "w" / f"6700-{os.getpid()}"
    with contextlib.closing(Env(folder, writable=True)) as samples:
        samples.put(b"ack", pack(1, encode(ack(version=1))))
        os.utime(folder, (time.time() - 60,) * 2)
        agent = world.started()
        eventually(lambda: world.holds(plan) and _acked(world) == [1])
        os.truncate(world.store / "plan" / "data.mdb", 8192)
        os.truncate(folder / "data.mdb", 0)
        eventually(lambda: world.logged("plan_store_damaged") and world.logged("sample_unreadable"))
    eventually(lambda: world.holds(plan))
    world.say("ack", encode(ack(version=2)), 2)
    eventually(lambda: _acked(world) == [2])
    newer = replace(plan, version=1)
    world.write(newer)
    eventually(lambda: world.holds(newer))
    assert agent.poll() is None
    assert len(world.logged("plan_store_damaged")) == len(world.logged("sample_unreadable")) == 1


def _acked(world: World) -> list[int]:
    stored = world.session.read(acks_path("s1"))
    return [] if stored is None else [w.version for w in decode(NodeAcks, stored.data).workers]


def test_only_plans_that_concern_the_node_are_stored(world: World) -> None:
    mine, touching = Plan("c1", 1, 0, "mine-1"), Plan("c1", 1, 0, "touching-3", (MOVE,))
    foreign = Plan("c1", 1, 0, "foreign-2")
    for plan in (mine, touching, foreign):
        world.write(plan)
        world.session.put(topology_path(plan.topology), encode(publication(plan.topology, THERE)))
    world.started()
    # No supervisor has reported yet whose workers are here.
    eventually(lambda: world.holds(foreign, mine, touching))
    world.supervise(1, "mine-1")
    eventually(lambda: world.holds(mine, touching))
    # Storm has made a worker here.
    world.supervise(2, "mine-1", "foreign-2")
    eventually(lambda: world.holds(foreign, mine, touching))
    newer = replace(foreign, version=1)
    world.write(newer)
    eventually(lambda: world.holds(newer, mine, touching))
    for path in (plan_path("mine-1"), topology_path("mine-1")):
        world.session.delete(path)
    eventually(lambda: world.holds(newer, touching))


def test_acks_and_load_are_published(world: World) -> None:
    world.started(node=None)
    world.say("ack", encode(ack()), 1)
    eventually(lambda: world.session.read(acks_path("s1")))

    for version in range(1, 11):
        world.say("ack", encode(ack(epoch=1, version=version)), version + 1)
        eventually(lambda version=version: _acked(world) == [version])  # type: ignore[misc]
    load = WorkerLoad("wc-1", HERE, "1-1", 5, 1_000_000)
    world.say("load", encode(load), 1)

    def loads() -> tuple[WorkerLoad, ...]:
        stored = world.session.read(load_path("s1"))
        return () if stored is None else decode(NodeLoad, stored.data).workers

    eventually(lambda: loads() == (load,))


def test_a_load_too_large_for_a_node_keeps_no_ack_back(world: World) -> None:
    world.started(node=None)
    rows = traffic_of((i // 300, i % 300, 10**9 + i) for i in range(60_000))
    world.say("ack", encode(ack()), 1)
    world.say("load", encode(WorkerLoad("wc-1", HERE, "1-1", 5, 1_000_000, (), rows)), 1)

    def load() -> NodeLoad:
        stored = world.session.read(load_path("s1"))
        return NodeLoad("s1", 0) if stored is None else decode(NodeLoad, stored.data)

    eventually(lambda: load().workers)
    cut = load()
    assert cut.left_out == 60_000 - len(cut.workers[0].rows) > 0
    for version in range(1, 6):
        world.say("ack", encode(ack(epoch=1, version=version)), version + 1)
        eventually(lambda version=version: _acked(world) == [version])  # type: ignore[misc]
    assert world.logged("zookeeper_away") == []
    assert [entry["left_out"] for entry in world.logged("load_cut")] == [cut.left_out]


def test_the_acks_say_which_cluster_is_followed(world: World) -> None:
    world.started()

    def cluster() -> str | None:
        stored = world.session.read(acks_path("s1"))
        return None if stored is None else decode(NodeAcks, stored.data).cluster

    eventually(lambda: cluster() == "c1")


def test_a_rebuilt_zookeeper_is_not_followed_until_it_is_adopted(world: World) -> None:
    old = Plan("c1", 5, 5, "wc-1", (MOVE,))
    world.write(old)
    agent = world.started()
    eventually(lambda: world.holds(old))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    world.session.set(CLUSTER, b"c2")
    new = Plan("c2", 1, 0, "wc-1")
    world.write(new)
    agent = world.started()
    eventually(lambda: world.logged("plan_ignored"))
    assert "adopt-cluster" in world.logged("plan_ignored")[0]["reason"]
    assert world.holds(old)
    assert adopt_cluster(AgentConfig(world.hosts, world.store)) == "c2"
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    world.started()
    eventually(lambda: world.holds(new))
    # The agent takes the request away once it has followed it.
    eventually(lambda: not (world.store / "adopt-cluster").exists())


def test_there_is_nothing_to_adopt_without_a_cluster(world: World) -> None:
    world.session.delete(CLUSTER)
    with pytest.raises(AgentError, match="/nstorm/cluster is not in ZooKeeper"):
        adopt_cluster(AgentConfig(world.hosts, world.store))


def test_an_agent_may_come_before_the_first_controller(world: World) -> None:
    world.session.delete(CLUSTER)
    world.session.delete(PLANS)
    world.started()
    world.session.create(CLUSTER, b"c1")
    plan = Plan("c1", 1, 0, "wc-1", (MOVE,))
    world.write(plan)
    eventually(lambda: world.holds(plan))


def test_a_second_agent_of_a_node_says_so_and_ends(world: World) -> None:
    world.started()
    second = world.start()
    assert second.wait(60) == 1
    (said,) = world.logged("agent_cannot_start")
    assert "another process writes the store" in said["reason"]


def test_zookeeper_away_at_start_is_said_with_a_countdown(world: World) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        unheard = f"127.0.0.1:{taken.getsockname()[1]}"
    agent = world.start(hosts=unheard)
    eventually(lambda: len(world.logged("zookeeper_away")) >= 2)
    first, second = world.logged("zookeeper_away")[:2]
    assert first["zookeeper"] == unheard
    assert first["retry_in_s"] > second["retry_in_s"]
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
