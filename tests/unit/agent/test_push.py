"""When acks and load are published."""

from importlib.metadata import version
from random import Random
from typing import Any, cast

import pytest
from msgspec import UNSET
from structlog.testing import capture_logs

from agent.push import Pusher
from agent.samples import Samples
from kvstore.errors import NotConnectedError
from kvstore.zookeeper import Session
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    ExecutorLoad,
    Meters,
    NodeAcks,
    NodeLoad,
    Phase,
    Plan,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from migration.wire import LARGEST_NODE_BYTES, SPEAKS, decode
from tests.messages import replace

ACK = WorkerAck("wc", Slot("s1", 6700), 1, "1-1", "0.2.0", 1, 0, "", 0, -1)
LOAD = WorkerLoad("wc", Slot("s1", 6700), "1-1", 0, 5)
SUPERVISOR = SupervisorAck("s1", 1, "0.2.0", 1, 0, "")
SAMPLES = Samples((ACK,), (LOAD,), SUPERVISOR)


class Recorder:
    """Stands for a session: keeps what is written, or fails."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []
        self.away = False
        self.refuses = "/nothing"
        self.refused = 0

    def put(self, path: str, data: bytes) -> int:
        if self.away:
            raise NotConnectedError("away")
        if path.startswith(self.refuses):
            self.refused += 1
            raise NotConnectedError("dropped")
        self.written.append((path, data))
        return 0

    def take(self) -> list[str]:
        paths = [path for path, _ in self.written]
        self.written.clear()
        return paths


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def pusher(recorder: Recorder) -> Pusher:
    return Pusher(cast(Session, cast(Any, recorder)), load_s=2.0)


def test_what_is_published(pusher: Pusher, recorder: Recorder) -> None:
    pusher.push(SAMPLES, "s1", "c", 0.0)
    (acks_path, acks), (load_path, load) = recorder.written
    assert (acks_path, load_path) == ("/nstorm/acks/s1", "/nstorm/load/s1")
    read = decode(NodeAcks, acks)
    assert replace(read, time_ms=0) == NodeAcks(
        "s1", 0, version("nstorm"), SPEAKS, "c", (ACK,), SUPERVISOR
    )
    assert decode(NodeLoad, load).workers == (LOAD,)


def test_the_load_has_the_meters_of_the_node_as_they_are_then(recorder: Recorder) -> None:
    told: list[Meters] = [{"machine_cores": 2}, {}]
    pids: list[int | None] = []

    def meters(pid: int | None) -> Meters:
        pids.append(pid)
        return told.pop(0)

    pusher = Pusher(cast(Session, cast(Any, recorder)), load_s=2.0, meters=meters)
    pusher.push(SAMPLES, "s1", "c", 0.0)
    pusher.push(SAMPLES, "s1", "c", 0.05)  # no load is due, and nothing is read
    pusher.push(Samples(), "s1", "c", 2.0)
    assert pids == [SUPERVISOR.pid, None]
    loads = [data for path, data in recorder.written if path == "/nstorm/load/s1"]
    assert [decode(NodeLoad, load).meters for load in loads] == [{"machine_cores": 2}, UNSET]
    assert b"meters" not in loads[1]


def test_a_plan_that_zookeeper_has_lost_is_published_at_once(
    pusher: Pusher, recorder: Recorder
) -> None:
    plan = Plan("c", 2, 25, "wc")
    for held in ((), (plan,), ()):
        pusher.push(SAMPLES, "s1", "c", 0.0, held)
        path, acks = recorder.written[0]
        recorder.take()
        assert path == "/nstorm/acks/s1"
        assert decode(NodeAcks, acks).held == held


def test_acks_are_published_when_they_change(pusher: Pusher, recorder: Recorder) -> None:
    pusher.push(SAMPLES, "s1", "c", 0.0)
    recorder.take()
    pusher.push(SAMPLES, "s1", "c", 0.05)
    alive = replace(SAMPLES, workers=(replace(ACK, time_ms=9),))
    pusher.push(alive, "s1", "c", 0.1)
    assert recorder.take() == []
    changed = replace(SAMPLES, workers=(replace(ACK, version=3),))
    pusher.push(changed, "s1", "c", 0.15)
    assert recorder.take() == ["/nstorm/acks/s1"]
    pusher.push(changed, "s1", "adopted", 0.2)
    assert recorder.take() == ["/nstorm/acks/s1"]
    for now_s in (1.9, 4.5, 9.0, 13.0):
        pusher.push(changed, "s1", "adopted", now_s)
    # The load shows that the node is alive.
    assert set(recorder.take()) == {"/nstorm/load/s1"}


def test_acks_say_every_five_seconds_that_the_node_is_alive_if_the_load_does_not(
    recorder: Recorder,
) -> None:
    slow = Pusher(cast(Session, cast(Any, recorder)), load_s=60.0)
    times = []
    for tick in range(400):
        slow.push(SAMPLES, "s1", "c", tick * 0.05)
        times += [round(tick * 0.05, 2)] * recorder.take().count("/nstorm/acks/s1")
    assert times == [0.0, 5.0, 10.0, 15.0]


def test_load_is_published_at_its_own_pace(pusher: Pusher, recorder: Recorder) -> None:
    times, due = [], []
    for tick in range(100):
        due += [tick * 0.05] * pusher.load_is_due(tick * 0.05)
        pusher.push(SAMPLES, "s1", "c", tick * 0.05)
        times += [tick * 0.05] * recorder.take().count("/nstorm/load/s1")
    assert times == due == [0.0, 2.0, 4.0]


def test_a_new_leader_gets_two_loads_soon(recorder: Recorder) -> None:
    pusher = Pusher(cast(Session, cast(Any, recorder)), load_s=4.0)
    times = []
    for tick in range(200):
        now_s = tick * 0.05
        pusher.led_by(1 if now_s < 0.9 else 2 if now_s < 7.0 else 3)
        pusher.push(SAMPLES, "s1", "c", now_s)
        times += [round(now_s, 2)] * recorder.take().count("/nstorm/load/s1")
    assert times == [0.0, 0.9, 2.4, 6.4, 7.0, 8.5]


SIZES = (("split", "count", 4711, 123_456),)


def loads(rows: list[tuple[int, int, int]], workers: int = 1) -> Samples:
    """Report traffic, dealt out to the workers in turn."""
    traffic = [traffic_of(rows[i::workers]) for i in range(workers)]
    made = replace(LOAD, sizes=SIZES)
    return replace(SAMPLES, loads=tuple(replace(made, traffic=part) for part in traffic))


def test_a_load_that_is_too_large_keeps_the_largest_rows(
    pusher: Pusher, recorder: Recorder
) -> None:
    rows = [
        (10_000 + i // 500, 20_000 + i % 500, 1_000_000 + i * 7919 % 60_000) for i in range(60_000)
    ]
    samples = loads(rows, workers=3)
    with capture_logs() as logs:
        for now_s in (0.0, 2.0):
            pusher.push(samples, "s1", "c", now_s)
        sent = [data for path, data in recorder.written if path == "/nstorm/load/s1"]
        assert len(sent) == 2
        load = decode(NodeLoad, sent[1])
        kept = [row for worker in load.workers for row in worker.rows]
        assert load.left_out == len(rows) - len(kept) > 0
        # What was left out is smaller than what was kept, and much more would not have fitted.
        assert min(n for _, _, n in kept) == sorted(n for _, _, n in rows)[load.left_out]
        assert 0.85 * LARGEST_NODE_BYTES < len(sent[1]) <= LARGEST_NODE_BYTES
        for worker, whole in zip(load.workers, samples.loads, strict=True):
            assert worker.sizes == whole.sizes == SIZES
            there = set(worker.rows)
            assert worker.rows == tuple(row for row in whole.rows if row in there)
        pusher.push(loads(rows[:100]), "s1", "c", 4.0)
        assert decode(NodeLoad, recorder.written[-1][1]).left_out == 0
    assert [(entry["event"], entry["rows"]) for entry in logs] == [("load_cut", 60_000)]
    assert logs[0]["left_out"] == decode(NodeLoad, sent[0]).left_out


def test_a_load_without_room_for_a_row_is_not_sent_and_said_once(
    pusher: Pusher, recorder: Recorder
) -> None:
    random = Random(1)
    crowd = tuple(
        ExecutorLoad(ExecutorId(i, i), random.randbytes(30).hex(), 0, 0, None) for i in range(9000)
    )
    samples = replace(
        SAMPLES, loads=(replace(LOAD, executors=crowd, traffic=traffic_of([(1, 2, 3)])),)
    )
    with capture_logs() as logs:
        for now_s in (0.0, 2.0, 4.0):
            pusher.push(samples, "s1", "c", now_s)
    assert recorder.take() == ["/nstorm/acks/s1"]
    assert [entry["event"] for entry in logs] == ["load_cut", "load_too_large"]
    assert logs[1]["size_bytes"] > logs[1]["limit_bytes"] == LARGEST_NODE_BYTES


def test_a_load_that_zookeeper_does_not_take_keeps_its_period_and_stops_nothing(
    pusher: Pusher, recorder: Recorder
) -> None:
    recorder.refuses = "/nstorm/load"
    with capture_logs() as logs:
        for tick in range(100):
            pusher.push(
                replace(SAMPLES, workers=(replace(ACK, version=tick),)), "s1", "c", tick * 0.05
            )
    assert recorder.refused == 3
    assert recorder.take().count("/nstorm/acks/s1") == 100
    assert [entry["event"] for entry in logs] == ["load_not_published"]


def test_a_node_whose_acks_are_too_large_is_silent(pusher: Pusher, recorder: Recorder) -> None:
    random = Random(1)
    names = (random.randrange(2**31) for _ in range(90_000))
    crowd = replace(ACK, executors=tuple(ExecutorId(i, i) for i in names))
    with capture_logs() as logs:
        for now_s in (0.0, 2.0):
            pusher.push(replace(SAMPLES, workers=(crowd,)), "s1", "c", now_s)
    # A load would mean that the acks of before still hold.
    assert recorder.take() == []
    assert [entry["event"] for entry in logs] == ["acks_too_large"]


def test_acks_are_written_again_each_minute_whatever_the_load_says(
    pusher: Pusher, recorder: Recorder
) -> None:
    times = []
    for tick in range(1300):
        pusher.push(SAMPLES, "s1", "c", tick * 0.1)
        times += [round(tick * 0.1)] * recorder.take().count("/nstorm/acks/s1")
    assert times == [0, 60, 120]


def test_lost_plans_that_are_too_large_do_not_keep_the_acks_back(
    pusher: Pusher, recorder: Recorder
) -> None:
    base, random = Base(Slot("s1", 6700), 1), Random(1)
    entries = tuple(
        Entry(
            f"m{i}",
            ExecutorId(i, i),
            base.slot,
            Slot("s2", 6700),
            Phase.SETTLE,
            base,
            random.randbytes(100).hex(),
        )
        for i in range(4000)
    )
    pusher.push(SAMPLES, "s1", "c", 0.0, (Plan("c", 1, 0, "wc", entries),))
    path, acks = recorder.written[0]
    assert path == "/nstorm/acks/s1"
    assert decode(NodeAcks, acks).workers == (ACK,)
    assert decode(NodeAcks, acks).held == ()


def test_what_could_not_be_published_is_tried_again(pusher: Pusher, recorder: Recorder) -> None:
    recorder.away = True
    with pytest.raises(NotConnectedError):
        pusher.push(SAMPLES, "s1", "c", 0.0)
    recorder.away = False
    pusher.push(SAMPLES, "s1", "c", 0.05)
    assert recorder.take() == ["/nstorm/acks/s1", "/nstorm/load/s1"]
