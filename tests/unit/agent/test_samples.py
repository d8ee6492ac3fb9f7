"""The stores of a node's JVMs: found, read, dropped; a bad one harms no other."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from agent.samples import SILENT_AFTER_S, Samples, SampleStores
from kvstore.env import Env
from kvstore.envelope import pack
from migration.model import PersistedSlot, Slot, SupervisorAck, WorkerAck, WorkerLoad
from migration.wire import encode

ACK = WorkerAck("wc", Slot("s1", 6700), 1, "1-1", "0.2.0", 1, 0, "", 0, -1)
LOAD = WorkerLoad("wc", Slot("s1", 6700), "1-1", 0, 5)
SUPERVISOR = SupervisorAck("s1", 1, "0.2.0", 1, 0, "")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[SampleStores]:
    made = SampleStores(tmp_path)
    yield made
    made.close()


def now_ms() -> int:
    return int(time.time() * 1000)


def store(folder: Path, pid: int | None = None, port: int = 6700, **values: bytes) -> Path:
    """Write a worker's store as a JVM does, two minutes ago; without a port a supervisor's."""
    pid = os.getpid() if pid is None else pid
    path = folder / "w" / f"{port}-{pid}" if port else folder / "s" / str(pid)
    with closing(Env(path, writable=True)) as env:
        for key, value in values.items():
            env.put(key.encode(), value)
    os.utime(path, (time.time() - 120,) * 2)
    return path


def ack(version: int = 1, **changes: object) -> bytes:
    made = replace(ACK, **{"time_ms": now_ms()} | changes)
    return pack(version, encode(made))


def looked(stores: SampleStores) -> Samples:
    stores.discover()
    return stores.read()


def test_no_store_no_samples(stores: SampleStores) -> None:
    assert looked(stores) == Samples()
    assert looked(stores).node is None


def test_workers_and_supervisor_are_read(tmp_path: Path, stores: SampleStores) -> None:
    store(tmp_path, ack=ack(pid=11), load=pack(1, encode(LOAD)))
    store(tmp_path, port=6701, ack=ack(pid=12, slot=Slot("s1", 6701)))
    store(tmp_path, port=0, ack=pack(1, encode(SUPERVISOR)))
    samples = looked(stores)
    assert [worker.pid for worker in samples.workers] == [11, 12]
    assert samples.loads == (LOAD,)
    assert samples.supervisor == SUPERVISOR
    assert samples.node == "s1"


def test_loads_are_left_alone_until_they_are_wanted(tmp_path: Path, stores: SampleStores) -> None:
    store(tmp_path, ack=ack(), load=pack(1, b"garbage"))
    stores.discover()
    with capture_logs() as logs:
        assert stores.read(with_loads=False).loads == ()
        assert logs == []
        assert stores.read().loads == ()
    assert [entry["event"] for entry in logs] == ["sample_unreadable"]


def test_the_topologies_of_the_node_are_those_of_its_slots_and_workers(
    tmp_path: Path, stores: SampleStores
) -> None:
    store(tmp_path, ack=ack())
    assert looked(stores).topologies is None  # no supervisor has spoken
    said = replace(SUPERVISOR, slots=(PersistedSlot(6701, "other", ()),))
    store(tmp_path, port=0, ack=pack(1, encode(said)))
    assert looked(stores).topologies == frozenset({"wc", "other"})


def test_the_node_is_known_from_a_worker_alone(tmp_path: Path, stores: SampleStores) -> None:
    store(tmp_path, ack=ack(slot=Slot("s7", 6700)))
    assert looked(stores).node == "s7"


def test_folders_that_are_no_stores_are_left_alone(tmp_path: Path, stores: SampleStores) -> None:
    for name in ("w/6700", "w/a-1", "w/6700-1x", "s/x1"):
        (tmp_path / name).mkdir(parents=True)
    with capture_logs() as logs:
        assert looked(stores) == Samples()
    assert logs == []
    assert (tmp_path / "w" / "6700").exists()


def test_a_store_whose_process_is_gone_is_removed(tmp_path: Path, stores: SampleStores) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = store(tmp_path, pid=process.pid, ack=ack())
    assert len(looked(stores).workers) == 1
    process.communicate(b"\n")
    assert looked(stores) == Samples()
    assert not path.exists()


class Clock:
    """Monotonic seconds that a test lets pass."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("step_s", [61, 3600, -3600])
def test_no_worker_goes_or_stays_because_the_clock_of_the_node_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: int
) -> None:
    clock, real = Clock(), time.time
    stores = SampleStores(tmp_path, clock)
    path = store(tmp_path, ack=ack(pid=11), load=pack(1, encode(LOAD)))
    store(tmp_path, port=0, ack=pack(1, encode(SUPERVISOR)))
    assert len(looked(stores).workers) == 1
    monkeypatch.setattr(time, "time", lambda: real() + step_s)
    for clock.now_s in (1.0, SILENT_AFTER_S - 1):
        samples = looked(stores)
        assert (len(samples.workers), samples.silent) == (1, ())
        assert samples.supervisor == SUPERVISOR
    clock.now_s = SILENT_AFTER_S
    # It is not gone: its process is there, and may go on.
    silent = Samples(silent=(Slot("s1", 6700),))
    assert looked(stores) == silent
    put_file(path, "ack", ack(2, pid=11))
    assert [worker.pid for worker in looked(stores).workers] == [11]
    stores.close()


@pytest.mark.parametrize("later_ms", [1, -3_600_000])
def test_of_two_jvms_of_a_slot_the_one_that_came_later_counts(
    tmp_path: Path, later_ms: int
) -> None:
    clock, other = Clock(), os.getppid()
    stores = SampleStores(tmp_path, clock)
    dead = store(tmp_path, pid=other, ack=ack(pid=11))  # its process id is another's by now
    looked(stores)
    clock.now_s = 10.0
    store(tmp_path, ack=ack(pid=12, time_ms=now_ms() + later_ms))
    assert [worker.pid for worker in looked(stores).workers] == [12]
    clock.now_s = SILENT_AFTER_S
    samples = looked(stores)
    assert ([worker.pid for worker in samples.workers], samples.silent) == ([12], ())
    assert dead.exists()
    stores.close()


def test_a_store_of_before_the_clock_was_set_back_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stores: SampleStores
) -> None:
    real = time.time
    store(tmp_path, ack=ack())
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    assert len(looked(stores).workers) == 1


def test_a_young_store_is_not_opened_yet(tmp_path: Path, stores: SampleStores) -> None:
    path = store(tmp_path, ack=ack())
    os.utime(path)
    assert looked(stores) == Samples()


def put_file(path: Path, key: str, data: bytes) -> None:
    """Write a value as a JVM does that cannot use LMDB."""
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{key}.tmp").write_bytes(data)
    (path / f"{key}.tmp").rename(path / f"{key}.bin")


def test_a_jvm_that_writes_files_is_seen_while_it_writes(
    tmp_path: Path, stores: SampleStores
) -> None:
    path = tmp_path / "w" / f"6700-{os.getpid()}"
    for version in range(1, 4):
        put_file(path, "ack", ack(version, pid=version))
        assert [worker.pid for worker in looked(stores).workers] == [version]


def test_a_jvm_that_changes_to_files_is_followed(tmp_path: Path, stores: SampleStores) -> None:
    path = store(tmp_path, ack=ack(5, pid=5), load=pack(6, encode(LOAD)))
    assert [worker.pid for worker in looked(stores).workers] == [5]
    put_file(path, "ack", ack(7, pid=7))
    assert [worker.pid for worker in looked(stores).workers] == [7]
    assert looked(stores).loads == (LOAD,)
    put_file(path, "ack", ack(3, pid=3))
    assert [worker.pid for worker in looked(stores).workers] == [7]


TRUNCATED = """
import os, sys
from pathlib import Path
from structlog.testing import capture_logs
from agent.samples import SampleStores
from tests.unit.agent.test_samples import LOAD, ack, encode, looked, pack, put_file, store

folder = Path(sys.argv[1])
stores = SampleStores(folder)
path = store(folder, ack=ack(5, pid=5), load=pack(6, encode(LOAD)))
looked(stores)
os.truncate(path / "data.mdb", 0)
with capture_logs() as logs:
    for _ in range(3):
        assert [worker.pid for worker in looked(stores).workers] == [5]
        stores.check_readers()
assert ["was truncated" in entry["reason"] for entry in logs] == [True], logs
put_file(path, "ack", ack(7, pid=7))
with capture_logs() as logs:
    for _ in range(3):
        samples = looked(stores)
        assert [worker.pid for worker in samples.workers] == [7]
        assert samples.loads == (LOAD,)
        stores.check_readers()
assert logs == [], logs
stores.close()
"""


def test_a_truncated_store_is_said_once_and_files_beside_it_go_on(tmp_path: Path) -> None:
    # In a process of its own, because it would end by a signal.
    done = subprocess.run(
        [sys.executable, "-c", TRUNCATED, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"


def test_two_bad_samples_of_a_store_are_each_said_once(
    tmp_path: Path, stores: SampleStores
) -> None:
    path = tmp_path / "w" / f"6700-{os.getpid()}"
    for key, good in (("ack", ack(pid=11)), ("load", pack(1, encode(LOAD)))):
        put_file(path, key, good)
    assert looked(stores).loads == (LOAD,)
    for key in ("ack", "load"):
        put_file(path, key, b"garbage")
    with capture_logs() as logs:
        for _ in range(3):
            assert looked(stores).loads == (LOAD,)
    assert len(logs) == 2


@pytest.mark.parametrize(
    "garbage", [b"garbage", pack(1, b"{}"), pack(1, b"\xff"), pack(1, encode(LOAD))]
)
def test_a_bad_sample_is_reported_once_and_harms_no_other(
    tmp_path: Path, stores: SampleStores, garbage: bytes
) -> None:
    bad = store(tmp_path, ack=garbage)
    store(tmp_path, port=6701, ack=ack(pid=12, slot=Slot("s1", 6701)))
    with capture_logs() as logs:
        for _ in range(5):
            assert [worker.pid for worker in looked(stores).workers] == [12]
    assert [(entry["event"], entry["store"]) for entry in logs] == [("sample_unreadable", str(bad))]


def test_a_store_that_is_no_lmdb_is_reported_once(tmp_path: Path, stores: SampleStores) -> None:
    bad = store(tmp_path, ack=ack())
    (bad / "data.mdb").write_bytes(b"garbage" * 4000)
    os.utime(bad, (time.time() - 120,) * 2)
    with capture_logs() as logs:
        for _ in range(3):
            assert looked(stores) == Samples()
    assert [entry["event"] for entry in logs] == ["sample_unreadable"]


def test_the_last_good_ack_stands_while_a_newer_is_damaged(
    tmp_path: Path, stores: SampleStores
) -> None:
    path = tmp_path / "w" / f"6700-{os.getpid()}"
    path.mkdir(parents=True)
    (path / "ack.bin").write_bytes(ack(1, pid=11))
    os.utime(path, (time.time() - 120,) * 2)
    assert looked(stores).workers[0].pid == 11
    for damaged in (b"", ack(2)[:-1], pack(3, b"{}")):
        (path / "ack.bin").write_bytes(damaged)
        assert [worker.pid for worker in looked(stores).workers] == [11]
    (path / "ack.bin").write_bytes(ack(4, pid=12))
    assert looked(stores).workers[0].pid == 12


def test_two_supervisors_for_a_moment_the_newest_word_counts(
    tmp_path: Path, stores: SampleStores
) -> None:
    other = os.getppid()
    store(tmp_path, port=0, ack=pack(1, encode(replace(SUPERVISOR, time_ms=2))))
    store(tmp_path, pid=other, port=0, ack=pack(1, encode(replace(SUPERVISOR, time_ms=1))))
    found = looked(stores).supervisor
    assert found is not None and found.time_ms == 2


def test_a_store_of_another_user_is_refused_and_said_once(
    tmp_path: Path, stores: SampleStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has a folder of his own there could lead the agent to any file of its user."""
    path = store(tmp_path, ack=ack())
    monkeypatch.setattr(SampleStores, "_owners", lambda self: frozenset({os.geteuid() + 1}))
    with capture_logs() as logs:
        for _ in range(3):
            assert looked(stores) == Samples()
    assert [entry["reason"].split(":")[0] for entry in logs] == [
        f"{path.parent} belongs to user {os.geteuid()}"
    ]


def test_a_link_in_the_place_of_a_store_is_refused(tmp_path: Path, stores: SampleStores) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / f"6700-{os.getpid()}").symlink_to(victim)
    with capture_logs() as logs:
        assert looked(stores) == Samples()
    assert "is a link" in logs[0]["reason"]
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize(("folder", "name"), [("s", "20261101"), ("w", "2026-999999999")])
def test_nothing_is_deleted_where_a_link_leads(
    tmp_path: Path, stores: SampleStores, folder: str, name: str
) -> None:
    backups = tmp_path / "backups"
    (backups / name).mkdir(parents=True)
    (tmp_path / folder).symlink_to(backups)
    with capture_logs() as logs:
        for _ in range(2):
            assert looked(stores) == Samples()
    assert (backups / name).is_dir()
    assert [entry["reason"] for entry in logs] == [
        f"{tmp_path / folder} is a link, or no folder: it is not touched"
    ]


def test_a_worker_that_speaks_for_another_slot_or_node_is_not_heard(
    tmp_path: Path, stores: SampleStores
) -> None:
    supervisor = pack(1, encode(replace(SUPERVISOR, time_ms=now_ms())))
    store(tmp_path, port=0, ack=supervisor)
    store(
        tmp_path, port=6700, ack=ack(), load=pack(1, encode(replace(LOAD, slot=Slot("s2", 6700))))
    )
    store(tmp_path, port=6701, ack=ack(slot=Slot("s1", 6700)))
    store(tmp_path, port=6702, ack=ack(slot=Slot("s2", 6702)))
    with capture_logs() as logs:
        found = [looked(stores) for _ in range(3)][-1]
    assert [worker.slot for worker in found.workers] == [Slot("s1", 6700)]
    assert found.loads == ()
    assert sorted(line["reason"] for line in logs) == [
        "slot: the worker at port 6701 speaks for s1:6700",
        "the worker speaks for s2:6702, and the node is s1",
    ]


def test_a_store_in_the_name_of_another_users_process_is_refused(
    tmp_path: Path, stores: SampleStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store(tmp_path, ack=ack())
    owner = os.geteuid()
    other = SimpleNamespace(effective=owner + 1)
    monkeypatch.setattr(psutil.Process, "uids", lambda process: other)
    with capture_logs() as logs:
        assert looked(stores) == looked(stores) == Samples()
    (line,) = logs
    reason = f"{path} belongs to user {owner}, and its process to user {owner + 1}"
    assert line["reason"] == reason
