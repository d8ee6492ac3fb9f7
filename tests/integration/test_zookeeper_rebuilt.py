"""Agent and controller come back unaided to a ZooKeeper that was wiped and started again."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.config import AgentConfig
from agent.daemon import adopt_cluster
from deploy.lab.cluster import Lab, only_zookeeper, sweep
from kvstore.zookeeper import Session
from migration import wire
from migration.model import NodeAcks, Plan
from tests.integration.test_controller_live import NSTORM, played, wait_for, write_conf
from tests.integration.test_zookeeper_agent import World

pytestmark = pytest.mark.zookeeper

# Longer than a session that is not renewed and the longest pause between two attempts together.
BACK_LIMIT_S = 120.0
TOPOLOGY = "ab-2"


@pytest.fixture
def own() -> Iterator[Lab]:
    """A ZooKeeper of this test's own."""
    sweep()
    with only_zookeeper("rebuilt") as lab:
        yield lab


@contextmanager
def storm(own: Lab) -> Iterator[Session]:
    """Play a Storm in a fresh ZooKeeper."""
    with Session(own.zookeeper) as session:
        assert session.connect()
        session.create("/storm")
    with played(own.storm_zookeeper) as puppets:
        # Not published, so its plan concerns every node.
        puppets.session.create(f"/storms/{TOPOLOGY}")
        yield puppets.session


def cluster(session: Session) -> str:
    stored = session.read(wire.CLUSTER)
    return "" if stored is None else stored.data.decode()


def followed(session: Session) -> str:
    """Return the cluster that node s1 reports to follow."""
    stored = session.read(wire.acks_path("s1"))
    return "" if stored is None else wire.decode(NodeAcks, stored.data).cluster


def rebuild(own: Lab) -> None:
    own.kill_daemon("zookeeper")
    shutil.rmtree(own.layout.run_dir / "zookeeper" / "data" / "version-2")
    own.start_zookeeper()


def test_they_come_back_by_themselves(own: Lab, tmp_path: Path) -> None:
    conf = write_conf(tmp_path / "storm.yaml", own.storm_zookeeper)
    unused = Session(own.storm_zookeeper)
    world = World(own.storm_zookeeper, tmp_path / "nstorm", unused, sync_s=1.0)
    world.store.mkdir()
    (world.store / "log").touch()
    log = tmp_path / "controller.log"
    with log.open("wb") as sink:
        command: list[str | Path] = [NSTORM, "controller", "--conf", conf, "--mode", "observe"]
        controller = subprocess.Popen(command, stderr=sink)
    try:
        agent = world.start("s1")
        with storm(own) as session:
            before = wait_for(lambda: cluster(session), BACK_LIMIT_S)
            wait_for(lambda: followed(session) == before, BACK_LIMIT_S)
            old = Plan(before, 1, 7, TOPOLOGY)
            session.put(wire.plan_path(TOPOLOGY), wire.encode(old))
            wait_for(lambda: world.holds(old))
        rebuild(own)
        # Before anybody writes: with as many writes as the old one had, it would take them again.
        wait_for(lambda: world.logged("session_lost"), BACK_LIMIT_S)
        wait_for(lambda: "session_lost" in log.read_text(), BACK_LIMIT_S)
        with storm(own) as session:
            # The candidate's node is ephemeral, so it is made by the new session.
            after = wait_for(
                lambda: session.children(wire.LEADER) and cluster(session), BACK_LIMIT_S
            )
            assert after != before
            wait_for(lambda: followed(session) == before, BACK_LIMIT_S)
            wait_for(lambda: world.logged("plan_ignored"))
            new = Plan(after, 1, 0, TOPOLOGY)
            session.put(wire.plan_path(TOPOLOGY), wire.encode(new))
            said = world.logged("plan_ignored")[0]["reason"]
            assert after in said and before in said and "nstorm-agent adopt-cluster" in said
            assert world.holds(old)
            assert adopt_cluster(AgentConfig(own.storm_zookeeper, world.store)) == after
            wait_for(lambda: world.holds(new) and followed(session) == after)
        assert (controller.poll(), agent.poll()) == (None, None)
    finally:
        world.close()
        unused.close()
        controller.terminate()
        assert controller.wait(30) == 0
