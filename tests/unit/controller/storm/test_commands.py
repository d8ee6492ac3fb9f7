"""The queue of commands: what can be read of it, and whose topology is meant."""

from typing import cast

from messages import publication

from controller.core.topology import TopologyView
from controller.storm.commands import COMMANDS, Command, CommandQueue, encode, find
from controller.storm.message_cache import Mirror
from kvstore.zookeeper import Session, Stored
from migration.model import Plan, Slot


class Nodes:
    """A mirror of the queue, and the session that answers in it."""

    def __init__(self, nodes: dict[str, bytes | None]) -> None:
        self.nodes = nodes

    def children(self, path: str) -> list[str]:
        assert path == COMMANDS
        return list(self.nodes)

    def node(self, path: str) -> Stored | None:
        data = self.nodes[path.removeprefix(f"{COMMANDS}/")]
        return None if data is None else Stored(data, 0, 0)

    def set(self, path: str, data: bytes) -> None:
        self.nodes[path.removeprefix(f"{COMMANDS}/")] = data

    def invalidate(self, path: str) -> None:
        pass


def queue(nodes: Nodes) -> CommandQueue:
    return CommandQueue(cast(Session, nodes), cast(Mirror, nodes), lambda before, after: False, 1)


def test_what_is_garbage_or_has_vanished_is_passed_over() -> None:
    wish = Command("wc", "7-7", "s:1")
    nodes = Nodes({"c-1": b"{", "c-2": encode(wish), "c-3": None, "c-4": b'{"topology": 7}'})
    assert queue(nodes).read() == {f"{COMMANDS}/c-2": wish}


def test_a_wish_is_answered_in_its_place_and_read_so_afterwards() -> None:
    nodes = Nodes({"c-1": b"{", "c-2": encode(Command("gone", "7-7", "s:1"))})
    queue(nodes).work((), (), 1)
    (answered,) = queue(nodes).read().values()
    assert (answered.state, nodes.nodes["c-1"]) == ("REFUSED", b"{")
    assert answered.reason == "no topology gone: the hooks in Nimbus publish none"


def test_a_topology_is_found_by_id_and_by_name() -> None:
    def view(topology: str, name: str) -> TopologyView:
        published = publication({1: Slot("a", 1)}, topology=topology, name=name)
        return TopologyView(published, Plan("", 0, -1, topology), (), None)

    views = [view("wc-1-1", "wc"), view("other-2-2", "other")]
    assert find(views, "other") is find(views, "other-2-2") is views[1]
    assert find(views, "wc-1") is None
