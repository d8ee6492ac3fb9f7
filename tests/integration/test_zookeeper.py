"""Sessions, compare-and-set, watches and candidates on a real ZooKeeper, with cut connections."""

import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from controller.cli.steps import restart_alone
from controller.errors import CommandError
from kvstore.election import Candidate
from kvstore.errors import (
    ConflictError,
    NodeExistsError,
    NoNodeError,
    NotConnectedError,
    SessionLostError,
)
from kvstore.zookeeper import Session, Stored, Waiting
from tests.chaos.faults import expire_session, leaders_word

pytestmark = pytest.mark.zookeeper
FENCE = "/epoch"


class Proxy:
    """A line to ZooKeeper that a test can cut, mend and stop from carrying anything."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._lines: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._open = threading.Event()
        self._open.set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *args: socket.socket) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if not self._open.is_set():
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._lines += [client, server]
                self._start(self._carry, client, server)
                self._start(self._carry, server, client)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._open.wait()
                sink.sendall(data)
        for end in (source, sink):
            end.close()

    def hold(self) -> None:
        """Carry nothing, without a notice to either side."""
        self._open.clear()

    def cut(self) -> None:
        self._open.clear()
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._lines.clear()

    def mend(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.cut()
        self.mend()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def place(zookeeper: str) -> Iterator[str]:
    """The path of a folder of ZooKeeper that is this test's own."""
    path = f"/test-{uuid.uuid4().hex}"
    with Session(zookeeper) as session:
        session.connect()
        session.create(path)
        yield path


@pytest.fixture
def session(zookeeper: str, place: str) -> Iterator[Session]:
    with Session(zookeeper + place) as made:
        assert made.connect()
        yield made


@pytest.fixture
def other(zookeeper: str, place: str) -> Iterator[Session]:
    with Session(zookeeper + place) as made:
        assert made.connect()
        yield made


@pytest.fixture
def proxy(zookeeper: str) -> Iterator[Proxy]:
    made = Proxy(zookeeper)
    yield made
    made.close()


def eventually(true: Callable[[], bool], limit_s: float = 120.0) -> None:
    until_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until_s, "it did not happen"
        time.sleep(0.01)


def test_many_nodes_are_read_at_once(session: Session) -> None:
    root = f"/many-{uuid.uuid4()}"
    written = {f"{root}/{row}": b"x" * (row * 40) for row in range(250)}
    for path, data in written.items():
        session.create(path, data)
    asked = [*written, f"{root}/none", *written, f"{root}/none"]
    found = session.read_many(asked)
    assert found == [session.read(path) for path in asked]
    assert [one.data for one in found[:250] if isinstance(one, Stored)] == list(written.values())
    assert found[250] is None
    assert session.read_many([]) == []


def test_a_node_is_made_read_written_and_deleted(session: Session) -> None:
    assert session.read("/a/b") is None
    with pytest.raises(NoNodeError, match="cannot write /a/b"):
        session.set("/a/b", b"0")
    assert session.create("/a/b", b"1") == "/a/b"
    with pytest.raises(NodeExistsError, match="/a/b"):
        session.create("/a/b")
    stored = session.read("/a/b")
    assert stored is not None and (stored.data, stored.version) == (b"1", 0)
    assert session.set("/a/b", b"2", 0) == 1
    with pytest.raises(ConflictError):
        session.set("/a/b", b"3", 0)
    looked = session.exists("/a/b")
    assert isinstance(looked, Stored) and looked.version == 1
    assert looked.mzxid > stored.mzxid
    assert session.children("/a") == ["b"]
    assert session.delete("/a/b") is True
    assert session.delete("/a/b") is False
    assert session.children("/a/b") is None


def test_the_root_itself_is_never_made(zookeeper: str, place: str, session: Session) -> None:
    with Session(f"{zookeeper}{place}/root") as rootless:
        assert rootless.connect()
        for make in (rootless.create, rootless.put):
            with pytest.raises(NoNodeError, match=f"{place}/root: no such node"):
                make("/a/b", b"")
        assert session.children("/") == []
        session.create("/root")
        assert rootless.create("/a/b/c-", sequence=True) == "/a/b/c-0000000000"


def test_put_writes_whether_the_node_is_there_or_not(session: Session) -> None:
    assert [session.put("/deep/er/node", data) for data in (b"a", b"b", b"c")] == [0, 1, 2]


def test_a_write_is_fenced_by_the_epoch_and_by_the_version(session: Session) -> None:
    session.create("/plans")
    session.create(FENCE)
    epoch = session.set(FENCE, b"")
    assert session.put_checked("/plans/wc", b"0", None, (FENCE, epoch)) == 0
    assert session.put_checked("/plans/wc", b"1", 0, (FENCE, epoch)) == 1
    with pytest.raises(ConflictError):
        session.put_checked("/plans/wc", b"lost", 0, (FENCE, epoch))
    with pytest.raises(NodeExistsError):
        session.put_checked("/plans/wc", b"lost", None, (FENCE, epoch))
    session.set(FENCE, b"")
    for expected in (1, None):
        with pytest.raises(ConflictError):
            session.put_checked("/plans/wc", b"deposed", expected, (FENCE, epoch))
    with pytest.raises(ConflictError):
        session.delete_checked("/plans/wc", 1, (FENCE, epoch))
    with pytest.raises(NoNodeError):
        session.put_checked("/plans/none", b"lost", 0, (FENCE, epoch + 1))
    stored = session.read("/plans/wc")
    assert stored is not None and (stored.data, stored.version) == (b"1", 1)
    session.delete_checked("/plans/wc", 1, (FENCE, epoch + 1))
    assert session.read("/plans/wc") is None


def test_a_watch_tells_of_the_next_change_once(session: Session, other: Session) -> None:
    told = threading.Semaphore(0)
    session.create("/a", b"1")
    session.read("/a", told.release)
    other.set("/a", b"2")
    assert told.acquire(timeout=60)
    other.set("/a", b"3")
    assert not told.acquire(timeout=0.3)
    session.read("/a", told.release)
    other.delete("/a")
    assert told.acquire(timeout=60)


def test_a_watch_tells_of_a_node_that_is_made_later(session: Session, other: Session) -> None:
    told = threading.Semaphore(0)
    assert session.read("/late", told.release) is None
    assert session.children("/later", told.release) is None
    other.create("/late")
    assert told.acquire(timeout=60)
    other.create("/later")
    assert told.acquire(timeout=60)


def test_a_watch_tells_of_children(session: Session, other: Session) -> None:
    told = threading.Event()
    session.create("/plans")
    assert session.children("/plans", told.set) == []
    other.create("/plans/wc")
    assert told.wait(60)


def test_an_ephemeral_node_goes_with_its_session(
    zookeeper: str, place: str, session: Session
) -> None:
    with Session(zookeeper + place) as mortal:
        mortal.connect()
        mortal.create("/mortal", ephemeral=True)
        assert session.read("/mortal") is not None
    eventually(lambda: session.read("/mortal") is None)


def test_without_a_connection_a_call_fails_at_once_and_a_watch_is_told(
    proxy: Proxy, place: str, session: Session
) -> None:
    session.create("/a", b"1")
    told = threading.Event()
    states: list[str] = []
    with Session(proxy.address + place, deadline_s=120, on_state=states.append) as cut:
        assert cut.connect()
        cut.read("/a", told.set)
        assert cut.interruptions == 0
        proxy.cut()
        eventually(lambda: cut.interruptions == 1)
        assert told.wait(60)
        assert not cut.connected
        began_s = time.monotonic()
        with pytest.raises(NotConnectedError, match="not connected"):
            cut.set("/a", b"2")
        assert time.monotonic() - began_s < 60
        proxy.mend()
        eventually(lambda: cut.connected)
        assert cut.set("/a", b"3") == 1
        assert not cut.lost
        assert states == ["CONNECTED", "SUSPENDED", "CONNECTED"]


def test_a_call_without_an_answer_ends_by_its_deadline(proxy: Proxy, place: str) -> None:
    with Session(proxy.address + place, deadline_s=0.5) as held:
        assert held.connect()
        proxy.hold()
        began_s = time.monotonic()
        with pytest.raises(NotConnectedError, match=r"no answer in 0\.5 s"):
            held.read("/a")
        assert time.monotonic() - began_s < 60
        proxy.mend()


def test_the_pause_between_two_attempts_stays_short(zookeeper: str) -> None:
    with Session(zookeeper) as session:
        pauses = session._client._conn_retry
        assert (pauses.max_delay, pauses.max_tries) == (5.0, -1)


def test_a_lost_session_stays_lost(zookeeper: str, place: str) -> None:
    states: list[str] = []
    with Session(zookeeper + place, on_state=states.append) as mortal:
        assert mortal.connect()
        expire_session(mortal)
        eventually(lambda: mortal.lost)
        with pytest.raises(SessionLostError, match="the session is lost"):
            mortal.read("/a")
        eventually(lambda: states[-1] == "CONNECTED")
        assert not mortal.connected
        with pytest.raises(SessionLostError):
            mortal.set("/a", b"")


def test_connecting_counts_down_and_goes_on_when_somebody_answers(proxy: Proxy, place: str) -> None:
    proxy.cut()
    waits: list[Waiting] = []

    def on_wait(waiting: Waiting) -> None:
        waits.append(waiting)
        if waiting.attempt == 2:
            proxy.mend()

    with Session(proxy.address + place, deadline_s=1.0) as session:
        assert session.connect(retry_s=2.0, on_wait=on_wait)
        assert session.connected
        assert not session.lost
    assert {waiting.hosts for waiting in waits} == {proxy.address + place}
    # A third attempt may also fail on a machine that is slow to connect.
    assert [waiting.attempt for waiting in waits][:4] == [1, 1, 2, 2]
    assert waits[0].retry_in_s > waits[1].retry_in_s


def test_connecting_ends_when_it_is_told_to(proxy: Proxy) -> None:
    proxy.cut()
    stop = threading.Event()
    with Session(proxy.address, deadline_s=0.5) as session:
        assert session.connect(on_wait=lambda waiting: stop.set(), stop=stop) is False


def test_one_command_restarts_at_a_time(
    zookeeper: str, place: str, session: Session, other: Session
) -> None:
    with Session(zookeeper + place) as first:
        first.connect()
        restart_alone(first, "adopt")
        with pytest.raises(CommandError, match=r"nstorm adopt by operator .* restarts workers"):
            restart_alone(session, "roll")
    restart_alone(session, "roll")
    with pytest.raises(CommandError, match="nstorm roll by operator"):
        restart_alone(other, "adopt")


def test_one_candidate_leads_and_the_next_follows(session: Session, other: Session) -> None:
    first, second = Candidate(session, "/leader", b"one"), Candidate(other, "/leader", b"two")
    assert leaders_word(session, "/leader") is None
    assert [first.leads(), second.leads(), first.leads()] == [True, False, True]
    assert leaders_word(other, "/leader") == b"one"
    first.resign()
    assert second.leads()
    assert not first.leads()
    assert leaders_word(session, "/leader") == b"two"
    assert len(session.children("/leader") or []) == 2


def test_a_leader_that_dies_is_followed(zookeeper: str, place: str, session: Session) -> None:
    with Session(zookeeper + place) as mortal:
        mortal.connect()
        assert Candidate(mortal, "/leader", b"mortal").leads()
        heir = Candidate(session, "/leader", b"heir")
        assert not heir.leads()
    eventually(heir.leads)
