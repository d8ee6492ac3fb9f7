"""Which plans a node holds, and which of them ZooKeeper has lost."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from agent.pull import ADOPT_FILE, Puller
from kvstore.errors import StoreError
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session, Stored
from migration.model import Base, Entry, ExecutorId, LocalPlan, Phase, Plan, Slot
from migration.wire import (
    CLUSTER,
    EPOCH,
    OFF,
    OPENS,
    PLANS,
    encode,
    encode_local,
    packed,
    plan_path,
    plans_of,
    topology_path,
)
from tests.messages import publication

HERE, THERE = Slot("s1", 6700), Slot("s2", 6700)
HELD = Plan("c1", 2, 25, "wc-1")


class Nodes:
    """Stands for a session: nodes that a test writes and takes away."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {CLUSTER: b"c1", EPOCH: b""}
        self.epoch = 3

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        version = self.epoch if path == EPOCH else 0
        return Stored(self.data[path], version, 0) if path in self.data else None

    exists = read

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        return sorted(p.removeprefix(f"{path}/") for p in self.data if p.startswith(f"{path}/"))


class Node:
    """A node whose agent reads everything at each look."""

    def __init__(self, zookeeper: Nodes, writer: PlanWriter, folder: Path) -> None:
        self.zookeeper = zookeeper
        session = cast(Session, cast(Any, zookeeper))
        self.puller = Puller(session, writer, folder, Event())
        self.here: frozenset[str] | None = None

    def publish(self, *slots: Slot) -> None:
        places = dict(enumerate(slots, 1))
        self.zookeeper.data[topology_path("wc-1")] = encode(publication(places))
        self.here = frozenset({"wc-1"} if HERE in slots else ())

    def look(self) -> tuple[tuple[Plan, ...], tuple[Plan, ...]]:
        self.puller.invalidate_all()
        self.puller.sync("s1", self.here)
        local = self.puller.local or LocalPlan("")
        return local.plans, self.puller.lost


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        made = Node(Nodes(), writer, tmp_path)
        made.publish(HERE, THERE)
        made.zookeeper.data[plan_path("wc-1")] = encode(HELD)
        assert made.look() == ((HELD,), ())
        yield made


@pytest.mark.parametrize(
    "stored",
    [
        None,
        b"garbage",
        packed(encode(HELD) + b" " * 3000),
        encode(Plan("c1", 2, 0, "wc-1")),
        encode(Plan("c2", 3, 0, "wc-1")),
        encode(Plan("c1", 2**62, 0, "wc-1")),
        encode(Plan("c1", 4, 0, "wc-1")),
    ],
    ids=["missing", "garbage", "compressed", "older", "of another cluster", "no such leader", "+1"],
)
def test_a_lost_plan_is_kept_and_shown_until_it_is_back(node: Node, stored: bytes | None) -> None:
    del node.zookeeper.data[plan_path("wc-1")]
    if stored is not None:
        node.zookeeper.data[plan_path("wc-1")] = stored
    assert node.look() == ((HELD,), (HELD,))
    back = Plan("c1", 2, 26, "wc-1")
    node.zookeeper.data[plan_path("wc-1")] = encode(back)
    assert node.look() == ((back,), ())


def test_the_plan_of_a_killed_topology_goes(node: Node) -> None:
    del node.zookeeper.data[plan_path("wc-1")]
    del node.zookeeper.data[topology_path("wc-1")]
    assert node.look() == ((), ())


def test_a_lost_plan_that_no_longer_concerns_the_node_goes(node: Node) -> None:
    del node.zookeeper.data[plan_path("wc-1")]
    node.publish(THERE)
    assert node.look() == ((), ())


def test_nothing_is_shown_to_another_cluster(node: Node) -> None:
    del node.zookeeper.data[plan_path("wc-1")]
    assert node.look() == ((HELD,), (HELD,))
    node.zookeeper.data[CLUSTER] = b"c2"
    assert node.look() == ((HELD,), ())


def test_a_plan_that_was_lost_while_the_agent_was_away_is_shown(node: Node, tmp_path: Path) -> None:
    del node.zookeeper.data[plan_path("wc-1")]
    again = Node(node.zookeeper, node.puller._writer, tmp_path)
    again.here = node.here
    assert again.look() == ((HELD,), (HELD,))
    assert PLANS not in node.zookeeper.data


def test_only_plans_of_topologies_on_the_node_are_read(node: Node) -> None:
    read: list[str] = []
    look = node.zookeeper.read

    def noted(path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        read.append(path)
        return look(path, on_change)

    for i in range(30):
        node.zookeeper.data[plan_path(f"other-{i}")] = encode(Plan("c1", 2, 0, f"other-{i}"))
    node.zookeeper.read = noted  # type: ignore[method-assign]
    assert node.look() == ((HELD,), ())
    assert {path for path in read if "other" in path} == set()
    node.here = None  # no supervisor has spoken: everything may concern the node
    assert len(node.look()[0]) == 31
    node.here = frozenset({"wc-1"})
    assert node.look() == ((HELD,), ())
    # Nothing is kept of what has left, however many come and go.
    node.look()
    assert {path for _, path in node.puller._watched._kept if "other" in path} == set()


def test_a_plan_that_touches_the_node_stays_when_the_worker_has_gone(node: Node) -> None:
    base = Base(HERE, 1)
    moving = Entry("m1", ExecutorId(1, 1), HERE, THERE, Phase.SETTLE, base)
    plan = Plan("c1", 2, 26, "wc-1", (moving,))
    node.zookeeper.data[plan_path("wc-1")] = encode(plan)
    assert node.look() == ((plan,), ())
    node.here = frozenset()
    assert node.look() == ((plan,), ())


def test_a_node_that_has_nothing_of_a_topology_gets_the_plan_that_opens_a_slot_there(
    node: Node,
) -> None:
    base, path = Base(THERE, 1), f"{OPENS}/s1"
    opening = Entry("m1", ExecutorId(1, 1), THERE, HERE, Phase.OPEN, base, opens="h1")
    plan = Plan("c1", 2, 3, "new-1", (opening,))
    node.zookeeper.data[plan_path("new-1")] = encode(plan)
    assert node.look() == ((HELD,), ())
    node.zookeeper.data[path] = b"new-1\nother 1-1"
    assert node.look() == ((plan, HELD), ())
    # It is kept as long as the entry is there, and no longer.
    del node.zookeeper.data[path]
    assert node.look() == ((plan, HELD), ())
    node.zookeeper.data[plan_path("new-1")] = encode(Plan("c1", 2, 4, "new-1"))
    assert node.look() == ((HELD,), ())


def test_a_name_that_is_no_path_does_not_end_the_turn(node: Node) -> None:
    """ZooKeeper's client raises what is no StoreError, and the whole node would fall silent."""

    def look(path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        assert not {"", ".", ".."} & {*path.split("/")[1:]}, path
        return read(path, on_change)

    read = node.zookeeper.read
    node.zookeeper.read = look  # type: ignore[method-assign]
    node.zookeeper.data[f"{OPENS}/s1"] = b"..\n.\n\na/../b\n\x1b[2J"
    assert node.look() == ((HELD,), ())


def test_what_this_version_does_not_know_reaches_the_jvms(node: Node) -> None:
    later = encode(Plan("c1", 2, 26, "wc-1")).replace(b'"epoch"', b'"later":{"a":[1]},"epoch"')
    node.zookeeper.data[plan_path("wc-1")] = later
    node.look()
    stored = node.puller._writer.last
    assert stored is not None
    assert plans_of(stored.payload) == [later]


def test_a_plan_of_a_new_leader_is_read_though_its_epoch_was_not_seen_yet(node: Node) -> None:
    """The watch of the epoch may fire after the plan has come."""
    node.zookeeper.epoch = 4
    new = Plan("c1", 4, 26, "wc-1")
    node.zookeeper.data[plan_path("wc-1")] = encode(new)
    node.puller._watched.invalidate(plan_path("wc-1"))
    node.puller.sync("s1", node.here)
    assert node.puller.local == LocalPlan("c1", (new,))


def test_a_plan_that_an_older_agent_took_unseen_locks_nothing_out(
    node: Node, tmp_path: Path
) -> None:
    locked = encode(Plan("c1", 2**62, 0, "wc-1"))
    node.puller._writer.write(encode_local("c1", {"wc-1": locked}))
    good = Plan("c1", 3, 26, "wc-1")
    node.zookeeper.data[plan_path("wc-1")] = encode(good)
    again = Node(node.zookeeper, node.puller._writer, tmp_path)
    again.here = node.here
    assert again.look() == ((good,), ())


def test_plans_of_a_zookeeper_that_was_restored_from_a_copy_are_kept(node: Node) -> None:
    node.zookeeper.epoch = 0
    assert node.look() == ((HELD,), (HELD,))


def leave(node: Node, tmp_path: Path) -> None:
    node.publish(THERE)


def renew(node: Node, tmp_path: Path) -> None:
    node.zookeeper.data[plan_path("wc-1")] = encode(Plan("c1", 2, 26, "wc-1"))


def rebuild(node: Node, tmp_path: Path) -> None:
    node.publish(THERE)
    node.zookeeper.data[CLUSTER] = b"c2"
    (tmp_path / ADOPT_FILE).write_text("c2", "utf-8")


@pytest.mark.parametrize("change", [leave, renew, rebuild])
def test_what_could_not_be_stored_is_not_handed_out(
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Node, Path], None],
) -> None:
    def fail(payload: bytes) -> int:
        raise StoreError("no space left")

    writer, puller = node.puller._writer, node.puller
    change(node, tmp_path)
    with monkeypatch.context() as full:
        full.setattr(writer, "write", fail)
        for _ in range(2):
            with pytest.raises(StoreError, match="no space left"):
                node.look()
            assert puller.local == LocalPlan("c1", (HELD,))
            assert puller.texts == {"wc-1": encode(HELD)}
    node.look()
    assert puller.local not in (None, LocalPlan("c1", (HELD,)))
    assert writer.last is not None
    assert writer.last.payload == encode_local(puller.cluster, puller.texts)


def test_the_switch_is_read_with_the_plans(node: Node) -> None:
    assert node.puller.off == b""
    node.zookeeper.data[OFF] = b"a fault"
    node.look()
    assert node.puller.off == b"a fault"
