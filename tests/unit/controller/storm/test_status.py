"""What the leader tells of itself, written and read."""

from typing import Any, cast

import pytest

from controller.storm.status import STATUS, publish, read
from kvstore.zookeeper import Session, Stored
from migration.wire import LARGEST_NODE_BYTES


class OneNode:
    """Stands for a session with one node."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data

    def put(self, path: str, data: bytes) -> int:
        assert path == STATUS
        self.data = data
        return 0

    def read(self, path: str) -> Stored | None:
        return None if self.data is None else Stored(self.data, 0, 0)


def session(data: bytes | None = None) -> Session:
    return cast(Session, cast(Any, OneNode(data)))


@pytest.mark.parametrize("data", [None, b"", b"garbage", b"\x1f\x8bgarbage", b"[1]", b"[" * 9999])
def test_garbage_is_nothing(data: bytes | None) -> None:
    assert read(session(data)) is None


def rows(count: int) -> list[dict[str, Any]]:
    return [{"executor": f"{i * 7919}-{i}", "cpu_cores": i / 7} for i in range(count)]


def told(**parts: Any) -> Any:
    there = session()
    cycle = {"tick": 1, "links": [1], "plan": {}, "workers": [{"slot": "s1:6700"}], **parts}
    publish(there, {"cycles": [cycle], "ended_moves": parts.get("ended_moves", [])})
    assert len(cast(Any, there).data) <= LARGEST_NODE_BYTES
    return read(there)


def test_a_large_cluster_is_told_without_what_does_not_fit() -> None:
    assert told(executors=rows(9))["left_out"] == []
    without_moves = told(executors=rows(9), ended_moves=rows(40_000))
    assert without_moves["left_out"] == ["ended_moves"]
    assert without_moves["cycles"][0]["executors"] == rows(9)
    assert told(links=rows(40_000), executors=rows(9))["left_out"] == ["ended_moves", "links"]
    found = told(executors=rows(40_000))
    assert found["left_out"] == ["ended_moves", "links", "plan", "executors"]
    assert found["cycles"] == [{"tick": 1, "workers": [{"slot": "s1:6700"}]}]


def test_what_did_not_fit_is_left_out_from_the_start_until_all_is_tried_again() -> None:
    there, found = session(), {"cycles": [{"links": rows(40_000)}], "ended_moves": [1]}
    count = publish(there, found)
    small = {"cycles": [{"links": [1]}], "ended_moves": [1]}
    assert publish(there, dict(small), count) == count == 2
    assert read(there) == {"cycles": [{}], "left_out": ["ended_moves", "links"]}
    again = {"cycles": [{"links": [1]}], "ended_moves": [1]}
    assert publish(there, again) == 0
    assert read(there) == {**again, "left_out": []}
