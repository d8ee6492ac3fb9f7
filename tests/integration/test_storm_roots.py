"""Two Storm clusters on one ZooKeeper, and roots where no Storm is."""

import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.config import Mode
from controller.storm.leader_status import read
from kvstore.zookeeper import Session
from migration import wire
from migration.model import LocalPlan, NodeAcks, Plan
from tests.integration.test_controller_live import (
    NSTORM,
    WC,
    leading,
    new_root,
    nstorm,
    played,
    wait_for,
    write_conf,
)
from tests.integration.test_zookeeper_agent import World

pytestmark = pytest.mark.zookeeper

GONE = "gone-1"


def tree(session: Session, path: str = "") -> dict[str, int]:
    """List all nodes below a path with their last change."""
    stored = session.exists(path or "/")
    found = {path: stored.mzxid} if stored else {}
    for name in session.children(path or "/") or []:
        if name != "zookeeper":
            found |= tree(session, f"{path}/{name}")
    return found


@contextmanager
def agents(*worlds: World) -> Iterator[None]:
    """Run an agent of node s1 in each world until the end of the block."""
    for world in worlds:
        world.store.mkdir()
        (world.store / "log").touch()
        world.start("s1")
    try:
        yield
    finally:
        for world in worlds:
            world.close()


def test_two_clusters_on_one_zookeeper_do_not_meet(zookeeper: str, tmp_path: Path) -> None:
    one, other = new_root(zookeeper), new_root(zookeeper)
    with (
        played(one),
        played(other),
        leading(one, "one", mode=Mode.OBSERVE) as first,
        leading(other, "other", mode=Mode.OBSERVE) as second,
    ):
        wait_for(lambda: read(first).controller and read(second).controller)
        assert [read(session).controller for session in (first, second)] == ["one", "other"]
        clusters = [session.read(wire.CLUSTER) for session in (first, second)]
        uuids = [stored.data.decode() if stored else "" for stored in clusters]
        assert len({"", *uuids}) == 3
        # A topology that one cluster has killed, and the other runs.
        second.create(f"/storms/{GONE}")
        plans = [Plan(cluster, 1, 0, GONE) for cluster in uuids]
        for session, plan in zip((first, second), plans, strict=True):
            session.create(wire.plan_path(GONE), wire.encode(plan))
        wait_for(lambda: first.exists(wire.plan_path(GONE)) is None)
        ticks = _tick(second)
        wait_for(lambda: _tick(second) > ticks + 1)
        assert second.exists(wire.plan_path(GONE)) is not None
        here, there = World(one, tmp_path / "1", first), World(other, tmp_path / "2", second)
        with agents(here, there):
            wait_for(lambda: _followed(first) == uuids[0] and _followed(second) == uuids[1])
            wait_for(lambda: there.holds(plans[1]))
            assert here.plan() in (None, LocalPlan(uuids[0]))


def _tick(session: Session) -> int:
    return max(cycle.tick for cycle in read(session).cycles)


def _followed(session: Session) -> str:
    """Return the cluster that node s1 reports to follow."""
    stored = session.read(wire.acks_path("s1"))
    return "" if stored is None else wire.decode(NodeAcks, stored.data).cluster


@pytest.mark.parametrize("there", [False, True], ids=["no root", "a root of something else"])
def test_without_a_storm_nothing_is_touched_until_there_is_one(
    zookeeper: str, tmp_path: Path, there: bool
) -> None:
    root = f"/elsewhere-{uuid.uuid4().hex[:8]}"
    conf = str(write_conf(tmp_path / "storm.yaml", zookeeper + root))
    with Session(zookeeper) as session:
        assert session.connect()
        if there:
            # As if an earlier leader had also been misled.
            session.create(root + wire.plan_path(WC), wire.encode(Plan("c", 1, 0, WC)))
        before = tree(session)
        said = f"ZooKeeper at {zookeeper} has no Storm under {root}"
        for command in (["status"], ["pause"], ["resume"], ["move", "wc", "7-7", "a:6701"]):
            done = nstorm(*command, "--conf", conf)
            assert done.returncode == 2
            assert said in done.stderr and "storm.zookeeper.root" in done.stderr
        log, world = tmp_path / "log", World(zookeeper + root, tmp_path / "store", session)
        with log.open("wb") as sink, agents(world):
            controller = subprocess.Popen([NSTORM, "controller", "--conf", conf], stderr=sink)
            try:
                wait_for(lambda: said in log.read_text() and world.logged("no_storm"))
                time.sleep(2.5)
                assert log.read_text().count(said) == 1
                (told,) = world.logged("no_storm")
                assert said in told["reason"]
                assert tree(session) == before
                session.put(f"{root}/storms/{WC}", b"")
                with Session(zookeeper + root) as inside:
                    assert inside.connect()
                    wait_for(lambda: _followed(inside), 60.0)
            finally:
                controller.terminate()
                assert controller.wait(60) == 0
        done = nstorm("status", "--conf", conf, "-o", "json")
        assert done.returncode == 0, done.stderr
        status = json.loads(done.stdout)
        assert (status["topologies"], status["cluster"]) == ([], zookeeper + root)
