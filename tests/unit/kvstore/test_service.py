"""A daemon's work in one session after the other, and only where Storm is."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from kvstore import service
from kvstore.errors import NotConnectedError, SessionLostError, StoreError
from kvstore.service import serve


class FakeSession:
    """Stands for a session; what `exists` finds is dealt out by the test."""

    opened: list["FakeSession"]
    looks: list[object]

    def __init__(self, hosts: str, **_: Any) -> None:
        self.hosts, self.lost, self.closed = hosts, False, False
        self.opened.append(self)

    def connect(self, **_: Any) -> bool:
        return True

    def exists(self, path: str) -> object:
        assert path == "/storms"
        found = self.looks.pop(0) if self.looks else "there"
        if isinstance(found, Exception):
            raise found
        return found

    def __enter__(self) -> "FakeSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> type[FakeSession]:
    monkeypatch.setattr(service, "Session", FakeSession)
    monkeypatch.setattr(service, "_LOOK_AGAIN_S", 0.001)
    FakeSession.opened, FakeSession.looks = [], []
    return FakeSession


def served(*works: Callable[[Any], None]) -> list[tuple[str, str]]:
    """Serve until all is done; return what was logged."""
    stop, left = threading.Event(), list(works)

    def work(session: Any) -> None:
        if left:
            left.pop(0)(session)
        else:
            stop.set()

    with capture_logs() as logs:
        serve("zk:2181/storm", work, stop)
    return [(entry["event"], entry["reason"]) for entry in logs]


def lose(session: FakeSession) -> None:
    session.lost = True
    raise SessionLostError("over")


def test_a_lost_session_is_followed_by_another(sessions: type[FakeSession]) -> None:
    assert served(lose, lose) == [("session_lost", "over")] * 2
    assert [session.closed for session in sessions.opened] == [True] * 3


def test_any_other_failure_ends_it(sessions: type[FakeSession]) -> None:
    def fail(session: FakeSession) -> None:
        raise StoreError("of another kind")

    with pytest.raises(StoreError, match="of another kind"):
        served(fail)
    assert [session.closed for session in sessions.opened] == [True]


def test_it_waits_for_storm_and_says_so_once(sessions: type[FakeSession]) -> None:
    sessions.looks = [None, None, NotConnectedError("away"), None]
    ((event, reason),) = served()
    assert event == "no_storm"
    assert reason.startswith("ZooKeeper at zk:2181 has no Storm under /storm: ")
    assert "storm.zookeeper.root" in reason


def test_a_session_lost_while_waiting_is_followed_by_another(
    sessions: type[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    def exists(session: FakeSession, path: str) -> object:
        if len(session.opened) == 1:
            lose(session)
        return path

    monkeypatch.setattr(sessions, "exists", exists)
    assert served() == [("session_lost", "over")]
