"""What was read is kept until it may have changed."""

from collections import defaultdict
from collections.abc import Callable
from threading import Event
from typing import cast

import pytest
import structlog

from kvstore.errors import AccessError, NotConnectedError
from kvstore.watched import Watched
from kvstore.zookeeper import Session, Stored


class Nodes:
    """A session that counts its readings and keeps each watch until it is fired, as kazoo does."""

    def __init__(self) -> None:
        self.readings = 0
        self.watches: dict[str, list[Callable[[], None]]] = defaultdict(list)
        self.versions: dict[str, int] = {}
        self.during: Callable[[], None] = lambda: None

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        self.readings += 1
        if on_change is not None:
            self.watches[path].append(on_change)
        version = self.versions.get(path)
        self.during()
        return None if version is None else Stored(b"", version, 0)

    exists = read

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str] | None:
        return None if self.read(path, on_change) is None else ["b"]

    def write(self, path: str) -> None:
        self.versions[path] = self.versions.get(path, -1) + 1
        for watch in self.watches.pop(path, []):
            watch()


def watched() -> tuple[Nodes, Watched, Event]:
    nodes, wake = Nodes(), Event()
    return nodes, Watched(cast(Session, nodes), wake), wake


def version(found: Stored | None) -> int | None:
    return None if found is None else found.version


def test_a_node_is_read_once_for_every_change() -> None:
    nodes, held, wake = watched()
    assert [held.node("/a"), held.node("/a")] == [None, None]
    assert (nodes.readings, wake.is_set()) == (1, False)
    nodes.write("/a")
    assert wake.is_set()
    assert [version(held.node("/a")), version(held.node("/a"))] == [0, 0]
    assert nodes.readings == 2


def test_children_and_versions_are_kept_apart_from_the_node() -> None:
    nodes, held, _ = watched()
    assert held.children("/a") == []
    nodes.write("/a")
    assert held.children("/a") == ["b"]
    assert version(held.stat("/a")) == version(held.node("/a")) == 0
    assert nodes.readings == 4


def test_a_change_while_the_answer_is_on_its_way_is_not_missed() -> None:
    nodes, held, _ = watched()
    nodes.write("/a")
    nodes.during = lambda: nodes.write("/a")
    assert version(held.node("/a")) == 0
    nodes.during = lambda: None
    assert version(held.node("/a")) == 1


@pytest.mark.parametrize("doubt", [Watched.invalidate_all, lambda held: held.invalidate("/a")])
def test_reading_again_sets_no_second_watch(doubt: Callable[[Watched], None]) -> None:
    nodes, held, _ = watched()
    for reading in range(1, 4):
        held.node("/a")
        assert nodes.readings == reading
        doubt(held)
    assert len(nodes.watches["/a"]) == 1
    nodes.write("/a")
    assert version(held.node("/a")) == 0
    assert len(nodes.watches["/a"]) == 1


def test_what_was_forgotten_is_read_again_without_a_second_watch() -> None:
    nodes, held, wake = watched()
    nodes.write("/a")
    for reading in range(1, 4):
        assert version(held.node("/a")) == 0
        assert nodes.readings == reading
        held.forget("/a")
        assert held.kept_node("/a") is None
    assert len(nodes.watches["/a"]) == 1
    held.node("/a")
    nodes.write("/a")  # the watch of the first reading speaks for the last one too
    assert wake.is_set()
    assert version(held.node("/a")) == 1
    assert len(nodes.watches["/a"]) == 1
    held.forget("/a")
    nodes.write("/a")
    assert (held._kept, held._watching) == ({}, set())  # nothing stays of it


def test_a_watch_that_fires_while_its_node_is_read_again_is_set_anew() -> None:
    nodes, held, _ = watched()
    held.node("/a")
    held.invalidate_all()
    nodes.during = lambda: nodes.write("/a")
    held.node("/a")
    nodes.during = lambda: None
    assert version(held.node("/a")) == 0
    nodes.write("/a")
    assert version(held.node("/a")) == 1


def test_what_could_not_be_read_is_read_again() -> None:
    nodes, held, _ = watched()
    nodes.write("/a")

    def fail() -> None:
        raise NotConnectedError("away")

    nodes.during = fail
    for _ in range(2):
        with pytest.raises(NotConnectedError):
            held.node("/a")
    nodes.during = lambda: None
    assert version(held.node("/a")) == 0


def test_of_many_nodes_only_what_has_changed_is_read_again() -> None:
    nodes, held, _ = watched()
    nodes.write("/a")
    nodes.write("/b")
    assert [version(one) for one in held.nodes(["/a", "/b", "/none"])] == [0, 0, None]
    nodes.write("/b")
    assert [version(one) for one in held.nodes(["/a", "/b", "/none"])] == [0, 1, None]
    assert nodes.readings == 4
    assert version(held.node("/b")) == 1


def test_a_node_that_its_creator_closed_is_the_loss_of_its_reader_alone() -> None:
    nodes, held, _ = watched()
    closed = {"/b"}

    class Closing(Nodes):
        def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
            if path in closed:
                raise AccessError(f"not {path}")
            return nodes.read(path, on_change)

    held = Watched(cast(Session, Closing()), Event())
    nodes.write("/a")
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert [version(one) for one in held.nodes(["/a", "/b"])] == [0, None]
        assert [(row["event"], row["path"]) for row in logs] == [("node_closed", "/b")]
        closed.clear()
        nodes.write("/b")
        assert [version(one) for one in held.nodes(["/a", "/b"])] == [0, 0]
        closed |= {"/a", "/b"}
        held.invalidate_all()
        with pytest.raises(AccessError, match="not /a"):
            held.nodes(["/a", "/b"])
