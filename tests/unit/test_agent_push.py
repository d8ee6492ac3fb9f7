"""When acks and load are published."""

from dataclasses import replace
from typing import Any, cast

import pytest

from agent.push import Pusher
from agent.samples import Samples
from kvstore.errors import NotConnectedError
from kvstore.zookeeper import Session
from migration.model import (
    NodeAcks,
    NodeLoad,
    Plan,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
)
from migration.wire import decode

ACK = WorkerAck("wc", Slot("s1", 6700), 1, "1-1", "0.1.0", 0, "", 0, -1)
LOAD = WorkerLoad("wc", Slot("s1", 6700), "1-1", 0, 5)
SUPERVISOR = SupervisorAck("s1", 1, "0.1.0", 0, "")
SAMPLES = Samples((ACK,), (LOAD,), SUPERVISOR)


class Recorder:
    """Stands for a session: keeps what is written, or fails."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []
        self.away = False

    def put(self, path: str, data: bytes) -> int:
        if self.away:
            raise NotConnectedError("away")
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


def test_what_is_published(pusher: Pusher, recorder: Recorder):
    pusher.push(SAMPLES, "s1", "c", 0.0)
    (acks_path, acks), (load_path, load) = recorder.written
    assert (acks_path, load_path) == ("/nstorm/acks/s1", "/nstorm/load/s1")
    read = decode(NodeAcks, acks)
    assert replace(read, time_ms=0) == NodeAcks("s1", 0, "0.1.0", "c", (ACK,), SUPERVISOR)
    assert decode(NodeLoad, load).workers == (LOAD,)


def test_a_plan_that_zookeeper_has_lost_is_published_at_once(pusher: Pusher, recorder: Recorder):
    plan = Plan("c", 2, 25, "wc")
    for held in ((), (plan,), ()):
        pusher.push(SAMPLES, "s1", "c", 0.0, held)
        path, acks = recorder.written[0]
        recorder.take()
        assert path == "/nstorm/acks/s1"
        assert decode(NodeAcks, acks).held == held


def test_acks_are_published_when_they_change_and_every_five_seconds(
    pusher: Pusher, recorder: Recorder
):
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
    pusher.push(changed, "s1", "adopted", 1.9)
    assert recorder.take() == []
    pusher.push(changed, "s1", "adopted", 5.2)
    assert recorder.take() == ["/nstorm/acks/s1", "/nstorm/load/s1"]


def test_load_is_published_at_its_own_pace(pusher: Pusher, recorder: Recorder):
    times = []
    for tick in range(100):
        pusher.push(SAMPLES, "s1", "c", tick * 0.05)
        times += [tick * 0.05] * recorder.take().count("/nstorm/load/s1")
    assert times == [0.0, 2.0, 4.0]


def test_what_could_not_be_published_is_tried_again(pusher: Pusher, recorder: Recorder):
    recorder.away = True
    with pytest.raises(NotConnectedError):
        pusher.push(SAMPLES, "s1", "c", 0.0)
    recorder.away = False
    pusher.push(SAMPLES, "s1", "c", 0.05)
    assert recorder.take() == ["/nstorm/acks/s1", "/nstorm/load/s1"]
