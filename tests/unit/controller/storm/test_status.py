"""What the leader reports of itself, written and read."""

from typing import Any, cast

import numpy as np
import pytest
from msgspec import UNSET

from controller.config import Config
from controller.core.limits import Limits
from controller.journal.rows import WorkerRow, rows_of
from controller.storm.leader_status import (
    STATUS,
    CycleStatus,
    ExecutorRow,
    LeaderStatus,
    LinkRow,
    loads_of,
    read,
)
from controller.storm.move_record import MoveRecord
from controller.storm.status import publish, status_of
from kvstore.zookeeper import Session, Stored
from migration.wire import LARGEST_NODE_BYTES
from tests.messages import replace
from tests.recorded_world import three_cycles


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


@pytest.mark.parametrize(
    "data", [None, b"", b"garbage", b"\x1f\x8bgarbage", b"[1]", b"[" * 9999, b'{"missed":7}']
)
def test_garbage_is_nothing(data: bytes | None) -> None:
    assert read(session(data)) == LeaderStatus()


def test_a_key_of_a_newer_leader_is_passed_over_and_of_an_older_one_missing() -> None:
    data = b'{"controller":"c","later":[1],"cycles":[{"topology":"t","later":{},"tick":7}]}'
    assert read(session(data)) == LeaderStatus("c", cycles=(CycleStatus(7, "t"),))


def test_loads_are_those_of_each_topology_and_room_is_what_fits_below_the_limit() -> None:
    worker = WorkerRow("a:1", 0.5, 2.0, 0.25, "low")
    cycle = CycleStatus(topology="t", workers=(worker,), executors=(ExecutorRow("1-1", 0.5),))
    status = LeaderStatus(cycles=(cycle, CycleStatus(topology="dark")))
    demand, room = loads_of(status, Limits(high_frac=0.75))
    assert demand == {("t", "1-1"): 0.5}
    assert room == {("t", "a:1"): 1.0}


def executors(count: int) -> tuple[ExecutorRow, ...]:
    return tuple(ExecutorRow(f"{i * 7919}-{i}", i / 7) for i in range(count))


def links(count: int) -> tuple[LinkRow, ...]:
    return tuple(LinkRow(f"s{i * 7919}", f"s{i}", i / 7) for i in range(count))


def moves(count: int) -> tuple[MoveRecord, ...]:
    return tuple(MoveRecord("t", f"m{i * 7919}", f"{i}-{i}", "a:1", "b:1") for i in range(count))


LINKS = links(1)
PLAN = {"later": 7}  # of any version
WORKERS = (WorkerRow("s1:6700", 0.5, 1.0, 0.5, "normal"),)


def told(cycle: CycleStatus, ended_moves: tuple[MoveRecord, ...] = ()) -> LeaderStatus:
    there = session()
    publish(there, LeaderStatus("c", cycles=(cycle,), ended_moves=ended_moves))
    assert len(cast(Any, there).data) <= LARGEST_NODE_BYTES
    return read(there)


def test_a_large_cluster_is_told_without_what_does_not_fit() -> None:
    small = CycleStatus(1, plan=PLAN, workers=WORKERS, links=LINKS, executors=executors(9))
    assert told(small, moves(9)) == LeaderStatus("c", cycles=(small,), ended_moves=moves(9))
    without_moves = told(small, moves(40_000))
    assert without_moves == LeaderStatus("c", cycles=(small,), left_out=("ended_moves",))
    assert told(replace(small, links=links(40_000))).left_out == ("ended_moves", "links")
    found = told(replace(small, executors=executors(40_000)))
    assert found.left_out == ("ended_moves", "links", "plan", "executors")
    assert found.cycles == (CycleStatus(1, workers=WORKERS),)


def test_what_did_not_fit_is_left_out_from_the_start_until_all_is_tried_again() -> None:
    there = session()
    large = LeaderStatus(cycles=(CycleStatus(links=links(40_000)),), ended_moves=moves(1))
    count = publish(there, large)
    small = replace(large, cycles=(CycleStatus(links=LINKS),))
    assert publish(there, small, count) == count == 2
    assert read(there) == LeaderStatus(cycles=(CycleStatus(),), left_out=("ended_moves", "links"))
    assert publish(there, small) == 0
    assert read(there) == small


def test_an_executor_has_the_tuples_that_it_gets_and_sends_in_three_digits() -> None:
    _, _, report = three_cycles(Config())
    (one,) = report.topologies
    assert one.picture is not None
    snapshot, meters = one.picture.snapshot, {"x": np.array([123_456.0, *[0.012345] * 6, np.nan])}
    traffic = replace(snapshot.traffic, tps=1234.567 / (1.0 + snapshot.traffic.target**9))
    picture = replace(one.picture, snapshot=replace(snapshot, traffic=traffic), of_executors=meters)
    found = status_of([replace(one, picture=picture)], (), Config(), name="c", epoch=1)
    rows = rows_of(found.cycles[0].executors)
    for number, row in enumerate(rows):
        for ends, shown in ((traffic.target, row.in_tps), (traffic.source, row.out_tps)):
            tps = traffic.tps[ends == number].sum()
            assert shown == (float(f"{tps:.3g}") if tps > 1e-6 else pytest.approx(tps, abs=1e-6))
    assert [row.meters for row in rows] == [{"x": 123_000.0}, *[{"x": 0.0123}] * 6, UNSET]
