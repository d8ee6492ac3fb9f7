"""Whether a daemon works, as systemd and as HTTP clients see it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvstore.pulse import HANGS_AFTER_S, Pulse


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(params=["path", "abstract"])
def heard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The socket of a service manager, and its name as the environment has it."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@nstorm-{tmp_path}"[:100]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(name.replace("@", "\0", 1))
        there.setblocking(False)
        yield name, there


def messages(there: socket.socket) -> list[str]:
    found = []
    try:
        while True:
            found.append(there.recv(4096).decode())
    except BlockingIOError:
        return found


def test_systemd_hears_when_it_works_what_it_waits_for_and_that_it_lives(
    heard: tuple[str, socket.socket],
) -> None:
    name, there = heard
    clock = Clock()
    pulse = Pulse({"NOTIFY_SOCKET": name}, clock)
    pulse.beat("ZooKeeper")
    assert messages(there) == ["WATCHDOG=1\nREADY=1\nSTATUS=waits for ZooKeeper"]
    pulse.beat()
    assert messages(there) == ["WATCHDOG=1\nREADY=1\nSTATUS=works"]
    for _ in range(100):  # not with each of twenty turns a second
        clock.now_s += 0.2
        pulse.beat()
    assert messages(there) == ["WATCHDOG=1\n"] * 4


def test_the_loop_turns_where_nobody_reads_or_listens(heard: tuple[str, socket.socket]) -> None:
    name, there = heard
    clock = Clock()
    pulse = Pulse({"NOTIFY_SOCKET": name}, clock)
    for _ in range(5_000):
        clock.now_s += 10
        pulse.beat()
    there.close()
    clock.now_s += 10
    pulse.beat()
    assert pulse.idles is None


def test_it_says_why_it_idles_and_that_it_hangs() -> None:
    clock = Clock()
    pulse = Pulse({}, clock)
    assert (pulse.hangs, pulse.idles) == (None, "waits for its start")
    assert pulse.worked_at_s == 0
    pulse.beat("ZooKeeper at zk:2181")
    assert pulse.idles == "waits for ZooKeeper at zk:2181"
    assert pulse.worked_at_s == 0
    pulse.beat()
    assert pulse.hangs is None
    assert pulse.idles is None
    assert pulse.worked_at_s > 1e9
    clock.now_s += HANGS_AFTER_S + 1
    assert pulse.hangs == pulse.idles == "the loop has not run for 61 s"
