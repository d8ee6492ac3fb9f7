"""Where workers have users of their own: who may read and write what, and who is heard."""

import getpass
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from agent import samples
from agent.samples import Samples, SampleStores
from agent.users import UserPlans, wrong_rights
from kvstore.env import OwnedFiles
from kvstore.envelope import pack, unpack
from kvstore.writer import PlanWriter
from migration.model import LocalPlan, PersistedSlot, Plan, Slot, WorkerAck, WorkerLoad
from migration.wire import encode, encode_local
from tests.unit.agent.test_samples import SUPERVISOR, store

ME = getpass.getuser()
ADA, BOB = "nobody", "daemon"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")


def persisted(**users: str) -> bytes:
    """Name whose workers the supervisor has started, by topology, from port 6700 on."""
    slots = (PersistedSlot(6700 + i, name, (), users[name]) for i, name in enumerate(users))
    return pack(1, encode(replace(SUPERVISOR, slots=tuple(slots))))


def ack(topology: str, port: int) -> bytes:
    return pack(
        1, encode(WorkerAck(topology, Slot("s1", port), 1, "1-1", "0.2.0", 1, 0, "", 0, -1))
    )


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[SampleStores]:
    with closing(SampleStores(tmp_path)) as made:
        yield made


def given(store_dir: Path, user: str) -> Path:
    """Make the folder of a user as the supervisor and Storm's worker-launcher do."""
    folder = store_dir / "u" / user
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        shutil.chown(folder, user, 0)
    folder.chmod(0o2770)
    return folder


def looked(stores: SampleStores) -> tuple[Samples, list[str]]:
    with capture_logs() as logs:
        stores.discover()
        return stores.read(), [entry["reason"] for entry in logs]


def test_a_worker_is_heard_for_what_its_user_was_started_for(
    tmp_path: Path, stores: SampleStores
) -> None:
    folder = given(tmp_path, ME)
    mine = folder / f"6700-{os.getpid()}"
    load = WorkerLoad("t", Slot("s1", 6700), "1-1", 0, 5)
    Path(f"{mine}.ack.bin").write_bytes(ack("t", 6700))
    Path(f"{mine}.load.bin").write_bytes(pack(1, encode(load)))
    assert looked(stores) == (Samples(), [])  # no supervisor has spoken
    store(tmp_path, port=0, ack=persisted(t=ME))
    found, said = looked(stores)
    assert [worker.topology for worker in found.workers] == ["t"]
    assert found.loads == (load,)
    assert found.users == {"t": ME}
    assert said == []


@pytest.mark.parametrize(
    ("port", "users", "why"),
    [
        (6700, {"t": "else"}, f"no worker of {ME} was started at port 6700"),
        (6700, {"other": ME}, f"{ME} speaks for t at s1:6700, which is not theirs"),
        (6701, {"t": ME}, f"no worker of {ME} was started at port 6701"),
        (6701, {"o": "else", "t": "x"}, f"no worker of {ME} was started at port 6701"),
    ],
)
def test_a_worker_is_not_heard_for_another_user_topology_or_port(
    tmp_path: Path, stores: SampleStores, port: int, users: dict[str, str], why: str
) -> None:
    mine = given(tmp_path, ME) / f"{port}-{os.getpid()}"
    Path(f"{mine}.ack.bin").write_bytes(ack("t", port))
    store(tmp_path, port=0, ack=persisted(**users))
    found, said = looked(stores)
    assert found.workers == ()
    assert said == [why]
    assert looked(stores)[1] == []  # once


def test_a_user_who_fills_his_folder_takes_no_time_of_the_agent(
    tmp_path: Path, stores: SampleStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = given(tmp_path, ME), []
    store(tmp_path, port=0, ack=persisted(t=ME))
    for port in (6700, 6701):
        for pid in range(1, 6):
            (folder / f"{port}-{pid}.ack.bin").write_bytes(ack("t", port))
    monkeypatch.setattr(psutil, "pid_exists", lambda pid: True)
    monkeypatch.setattr(samples, "_owner_of_user", lambda path: os.geteuid())
    get = OwnedFiles.get

    def noted(files: OwnedFiles, key: bytes) -> bytes | None:
        read.append(files)
        return get(files, key)

    monkeypatch.setattr(OwnedFiles, "get", noted)
    found, _ = looked(stores)
    assert [worker.topology for worker in found.workers] == ["t"]
    assert len(set(read)) == 2  # a JVM of his and its successor


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (lambda path, victim: path.symlink_to(victim), "Too many levels of symbolic links"),
        (lambda path, victim: os.mkfifo(path), "is no file"),
        (lambda path, victim: path.mkdir(), "is no file"),
        (lambda path, victim: path.write_bytes(b"x" * (4 * 1024 * 1024 + 1)), "has 4194305 bytes"),
        (lambda path, victim: path.write_bytes(b"x" * 4_000_000), "envelope begins with"),
    ],
)
def test_nothing_that_a_user_puts_there_is_followed(
    tmp_path: Path, stores: SampleStores, what: Callable[[Path, Path], None], why: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(ack("t", 6700))
    store(tmp_path, port=0, ack=persisted(t=ME))
    what(given(tmp_path, ME) / f"6700-{os.getpid()}.ack.bin", victim)
    found, (said,) = looked(stores)
    assert found.workers == ()
    assert why in said


def test_what_a_worker_that_has_ended_wrote_is_removed(
    tmp_path: Path, stores: SampleStores
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    file = given(tmp_path, ME) / f"6700-{ended.pid}.ack.bin"
    file.write_bytes(ack("t", 6700))
    assert looked(stores) == (Samples(), [])
    assert not file.exists()


def plans(*topologies: str) -> tuple[LocalPlan, dict[str, bytes]]:
    made = tuple(Plan("c", 1, 1, topology) for topology in topologies)
    return LocalPlan("c", made), {plan.topology: encode(plan) for plan in made}


def test_each_user_gets_the_plans_of_his_topologies(tmp_path: Path) -> None:
    folder = given(tmp_path, ME)
    hands_out = UserPlans(tmp_path)
    hands_out.write(*plans("t", "o"), None)
    assert list(folder.iterdir()) == []
    both, texts = plans("t", "o")
    hands_out.write(both, texts, {"t": ME})
    (file,) = folder.iterdir()
    assert file.name == "t.plan.bin"
    assert unpack(file.read_bytes()).payload == encode_local("c", {"t": texts["t"]})
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    first = file.stat().st_ino, file.stat().st_mtime_ns
    hands_out.write(both, texts, {"t": ME})
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == first
    file.unlink()
    hands_out.write(both, texts, {"t": ME})
    assert file.exists()
    hands_out.write(LocalPlan("c"), {}, {"t": ME})
    assert unpack(file.read_bytes()).payload == encode_local("c", {})  # it follows the cluster
    # An agent that starts knows of nothing, and keeps what is there until it does.
    again = UserPlans(tmp_path)
    again.write(both, texts, None)
    assert file.exists()
    again.write(both, texts, {"o": ME})
    assert [file.name for file in folder.iterdir()] == ["o.plan.bin"]


def test_a_plan_is_written_as_soon_as_there_is_a_folder(tmp_path: Path) -> None:
    hands_out, (both, texts) = UserPlans(tmp_path), plans("t")
    with capture_logs() as logs:
        for _ in range(3):
            hands_out.write(both, texts, {"t": ME})
    assert [entry["event"] for entry in logs] == ["plan_not_written"]
    folder = given(tmp_path, ME)
    hands_out.write(both, texts, {"t": ME, "x": "../.."})
    assert [file.name for file in folder.iterdir()] == ["t.plan.bin"]


def test_a_user_who_closes_his_folder_ends_no_turn_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*of: object) -> None:
        raise PermissionError("Permission denied")

    given(tmp_path, ME)
    hands_out, (both, texts) = UserPlans(tmp_path), plans("t")
    hands_out.write(both, texts, {"t": ME})
    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr("agent.users.replace_file", refuse)
    with capture_logs() as logs:
        for _ in range(2):
            hands_out.write(both, texts, {"t": ME})
    assert [entry["event"] for entry in logs] == ["plan_not_written"]


def test_a_plan_that_was_not_written_is_no_work_once_its_topology_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []

    def noted(cluster: str, texts: Mapping[str, bytes]) -> bytes:
        encoded.extend(texts)
        return encode_local(cluster, texts)

    monkeypatch.setattr("agent.users.encode_local", noted)
    given(tmp_path, ME)
    hands_out, (both, texts) = UserPlans(tmp_path), plans("t", "o")
    for _ in range(2):
        hands_out.write(both, texts, {"t": ME, "o": "nobody"})  # who has no folder yet
    assert encoded == ["t", "o"] * 2
    for _ in range(3):
        hands_out.write(both, texts, {"t": ME})
    assert encoded == ["t", "o"] * 2 + ["t"]


def test_a_link_in_the_place_of_a_plan_is_not_followed(tmp_path: Path) -> None:
    folder, victim = given(tmp_path, ME), tmp_path / "victim"
    victim.write_text("as it was")
    for name in ("t.plan.bin", "t.plan.bin.part"):
        (folder / name).symlink_to(victim)
    UserPlans(tmp_path).write(*plans("t"), {"t": ME})
    assert victim.read_text() == "as it was"
    assert not (folder / "t.plan.bin").is_symlink()


@pytest.fixture
def node() -> Iterator[Path]:
    """Give a store that other users may enter, as the supervisor's hooks leave it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        store_dir = Path(folder)
        PlanWriter(store_dir / "plan", b"plan").close()
        (store_dir / "s").mkdir()
        (store_dir / "u").mkdir()
        for name, mode in (("", 0o711), ("u", 0o711), ("plan", 0o700), ("s", 0o700)):
            (store_dir / name).chmod(mode)
        yield store_dir


def may(user: str, *command: object) -> bool:
    """Try something as a user."""
    done = subprocess.run(
        list(map(str, command)),
        user=user,
        group=0xFFFE,
        extra_groups=[],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 or b"ermission denied" in done.stderr, done.stderr
    return done.returncode == 0


@as_root
def test_no_user_reads_or_writes_what_is_anothers(node: Path) -> None:
    adas, bobs = given(node, ADA), given(node, BOB)
    UserPlans(node).write(*plans("a", "b"), {"a": ADA, "b": BOB})
    assert may(ADA, "cat", adas / "a.plan.bin")
    assert may(BOB, "cat", bobs / "b.plan.bin")
    assert not may(BOB, "cat", adas / "a.plan.bin")
    assert not may(ADA, "cat", bobs / "b.plan.bin")
    assert may(ADA, "touch", adas / "6700-1.ack.tmp")
    for theirs in (adas / "6700-1.ack.bin", adas / "a.plan.bin", node / "u" / "x", node / "x"):
        assert not may(BOB, "touch", theirs)
    assert not may(BOB, "cat", node / "plan" / "data.mdb")
    for folder in (node, node / "plan", node / "s", node / "u", adas):
        assert not may(BOB, "ls", folder)
    assert not may(BOB, "mv", adas, node / "u" / "old")
    assert list(wrong_rights(node)) == []


@as_root
def test_a_process_is_heard_only_where_it_is_of_the_user_whose_folder_it_is(node: Path) -> None:
    given(node, ADA)
    store(node, port=0, ack=persisted(t=ADA))
    with ExitStack() as stack:
        stores = stack.enter_context(closing(SampleStores(node)))
        workers = {
            user: stack.enter_context(subprocess.Popen(["sleep", "600"], user=user))
            for user in (ADA, BOB)
        }
        for user, worker in workers.items():
            stack.callback(worker.kill)
            file = node / "u" / ADA / f"6700-{worker.pid}.ack.bin"
            file.write_bytes(ack("t", 6700))
            shutil.chown(file, user)
        found, said = looked(stores)
        assert [worker.topology for worker in found.workers] == ["t"]
        (why,) = said
        assert f"6700-{workers[BOB].pid} is of user 65534, and its process of user 1" in why
        shutil.chown(node / "u" / ADA / f"6700-{workers[ADA].pid}.ack.bin", BOB)
        assert "belongs to user 1, not 65534" in looked(stores)[1][0]


@as_root
def test_what_is_wrong_with_the_rights_is_named(node: Path) -> None:
    given(node, ADA)
    assert list(wrong_rights(node)) == []
    (node / "plan").chmod(0o755)
    node.chmod(0o770)
    shutil.chown(node / "u" / ADA, BOB, "games")
    (node / "u" / ADA).chmod(0o755)
    assert list(wrong_rights(node)) == [
        f"others may only enter {node}, and its mode is 0770",
        f"others have no rights in {node}/plan, and its mode is 0755",
        f"{node}/u/{ADA} belongs to {BOB}",
        f"{node}/u/{ADA} is of group games, and the store of root",
        f"{node}/u/{ADA} has mode 0755, not 2770",
    ]
