"""The stores on a real LMDB: one writer, readers in other processes, damage, killed writers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import lmdb
import pytest

from kvstore.env import Env
from kvstore.envelope import Envelope, pack
from kvstore.errors import FormatError, StoreError
from kvstore.reader import StoreReader
from kvstore.writer import PlanWriter

HAMMER = """
import sys, time
from pathlib import Path
from kvstore.writer import PlanWriter
with PlanWriter(Path(sys.argv[1]), b"plan") as writer:
    for count in range(1, 1_000_000):
        writer.write(b"%d," % count * 100)
        if count == 1:
            print("up", flush=True)
"""
PIN = """
import sys, time, lmdb
env = lmdb.open(sys.argv[1], readonly=True, lib_version=0)
txn = env.begin()
txn.get(b"plan")
print("pinned", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "plan"


@pytest.fixture
def writer(folder: Path) -> Iterator[PlanWriter]:
    with PlanWriter(folder, b"plan") as made:
        yield made


def raw(folder: Path, key: bytes, value: bytes) -> None:
    """Write bytes past the envelope, as no writer should."""
    with closing(Env(folder, writable=True)) as env:
        env.put(key, value)


def python(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )


def test_a_payload_is_written_and_the_same_one_not_again(writer: PlanWriter, folder: Path) -> None:
    assert writer.last is None
    first = writer.write(b"one")
    assert writer.write(b"one") == first
    second = writer.write(b"two")
    assert second > first
    assert writer.last == Envelope(second, b"two")


def test_versions_rise_when_the_clock_stands_still_and_over_a_restart(folder: Path) -> None:
    with PlanWriter(folder, b"plan", wall_ms=lambda: 1000) as writer:
        assert [writer.write(b"a"), writer.write(b"b"), writer.write(b"c")] == [1000, 1001, 1002]
    with PlanWriter(folder, b"plan", wall_ms=lambda: 5) as writer:
        assert writer.last == Envelope(1002, b"c")
        assert writer.write(b"d") == 1003


def test_there_is_one_writer(writer: PlanWriter, folder: Path) -> None:
    with pytest.raises(StoreError, match="another process writes"):
        PlanWriter(folder, b"plan")


def test_an_environment_is_not_opened_twice_in_a_process(writer: PlanWriter, folder: Path) -> None:
    with pytest.raises(StoreError, match="already open"):
        StoreReader(folder)


def test_the_format_is_the_old_one_whatever_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMDB_DEFAULT_LIB_VERSION", "1")
    with PlanWriter(folder, b"plan") as writer:
        writer.write(b"plan")
    data = (folder / "data.mdb").read_bytes()
    assert data[16:20] == (0xBEEFC0DE).to_bytes(4, sys.byteorder)
    assert data[20:24] == (1).to_bytes(4, sys.byteorder)


def test_the_reader_finds_the_newest(folder: Path) -> None:
    with PlanWriter(folder, b"plan", wall_ms=lambda: 7) as writer:
        writer.write(b"plan")
    with closing(StoreReader(folder)) as reader:
        assert reader.read(b"plan").envelope == Envelope(7, b"plan")
        assert reader.read(b"other") == type(reader.read(b"other"))(None, None)


def test_the_reader_keeps_the_last_good_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.mkdir()
    file = path / "ack.bin"
    file.write_bytes(pack(5, b"good"))
    good = Envelope(5, b"good")
    with closing(StoreReader(path)) as reader:
        assert reader.read(b"ack").envelope == good
        for content, said in (
            (b"garbage", "fewer than its own frame"),
            (pack(4, b"older"), "4 came after 5"),
            (pack(6, b"newer")[:-1] + b"!", "damaged"),
        ):
            file.write_bytes(content)
            reading = reader.read(b"ack")
            assert reading.envelope == good
            assert reading.problem is not None and said in reading.problem
        file.unlink()
        assert reader.read(b"ack").envelope == good
        file.write_bytes(pack(6, b"newest"))
        assert reader.read(b"ack").envelope == Envelope(6, b"newest")
        assert reader.read(b"ack").problem is None


def test_a_reader_needs_an_environment(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the store"):
        StoreReader(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_damaged_envelope_is_reported_and_written_over(folder: Path) -> None:
    raw(folder, b"plan", b"garbage")
    with PlanWriter(folder, b"plan") as writer:
        assert writer.last is None
        assert writer.problem is not None and "began without it" in writer.problem
        writer.write(b"plan")
    with closing(StoreReader(folder)) as reader:
        assert reader.read(b"plan").problem is None


def test_a_file_that_is_no_lmdb_is_put_aside_whole(folder: Path) -> None:
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"garbage" * 4000)
    with pytest.raises(FormatError):
        Env(folder, writable=True)
    with PlanWriter(folder, b"plan") as writer:
        assert writer.problem is not None and "began an empty one" in writer.problem
        writer.write(b"plan")
    (aside,) = folder.glob("data.mdb.bad-*")
    assert aside.read_bytes() == b"garbage" * 4000


def test_only_the_last_damaged_files_are_kept(folder: Path) -> None:
    for time_ms in range(1_700_000_000_000, 1_700_000_000_010):
        with PlanWriter(folder, b"plan", lambda: time_ms) as writer:  # noqa: B023
            writer.write(b"plan")
        (folder / "data.mdb").write_bytes(b"garbage" * 4000)
    kept = sorted(path.name for path in folder.glob("data.mdb.bad-*"))
    assert kept == [f"data.mdb.bad-170000000000{n}" for n in (7, 8, 9)]


def test_a_file_of_the_newer_format_is_put_aside(folder: Path) -> None:
    folder.mkdir()
    with lmdb.open(str(folder), lib_version=1) as env, env.begin(write=True) as txn:
        txn.put(b"plan", b"new format")
    (folder / "lock.mdb").unlink()
    with PlanWriter(folder, b"plan") as writer:
        assert writer.problem is not None
        assert writer.write(b"plan") > 0


def test_a_value_too_large_is_refused_and_the_last_stays(writer: PlanWriter) -> None:
    version = writer.write(b"plan")
    with pytest.raises(StoreError, match="cannot write"):
        writer.write(bytes(20 * 1024 * 1024))
    assert writer.last == Envelope(version, b"plan")
    assert writer.write(b"next") > version


def test_a_killed_reader_does_not_fill_the_map(writer: PlanWriter, folder: Path) -> None:
    writer.write(bytes(1000))
    reader = python(PIN, folder)
    assert reader.stdout is not None and reader.stdout.readline() == "pinned\n"
    # Half of the map in one value: two more would not fit while the first is pinned.
    writer.write(bytes(5_000_000))
    reader.kill()
    reader.wait()
    reader.stdout.close()
    for filling in (b"a", b"b", b"c", b"d"):
        writer.write(filling * 5_000_000)


def test_a_killed_writer_leaves_a_whole_plan(folder: Path) -> None:
    for _ in range(3):
        hammer = python(HAMMER, folder)
        assert hammer.stdout is not None and hammer.stdout.readline() == "up\n"
        time.sleep(0.2)
        os.kill(hammer.pid, signal.SIGKILL)
        hammer.wait()
        hammer.stdout.close()
        with PlanWriter(folder, b"plan") as writer:
            assert writer.problem is None
            assert writer.last is not None
            numbers = set(writer.last.payload.split(b",")[:-1])
            assert len(numbers) == 1
            writer.write(b"after")


def test_a_reader_beside_a_writer_sees_whole_and_rising_versions(folder: Path) -> None:
    hammer = python(HAMMER, folder)
    assert hammer.stdout is not None and hammer.stdout.readline() == "up\n"
    seen: list[int] = []
    with closing(StoreReader(folder)) as reader:
        began_s = time.monotonic()
        while time.monotonic() < began_s + 1.0 or len(set(seen)) <= 20:
            assert time.monotonic() < began_s + 300
            reading = reader.read(b"plan")
            assert reading.problem is None
            if reading.envelope is not None:
                seen.append(reading.envelope.version)
                assert len(set(reading.envelope.payload.split(b",")[:-1])) == 1
        reader.check_readers()
    hammer.kill()
    hammer.wait()
    hammer.stdout.close()
    assert seen == sorted(seen)


def test_readers_are_checked_once_a_second(
    writer: PlanWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(Env, "check_readers", lambda self: calls.append(self) or 0)  # type: ignore[func-returns-value]
    now_s = time.monotonic()
    for later_s in (1.1, 1.2, 2.0, 2.3):
        monkeypatch.setattr(time, "monotonic", lambda at=later_s: now_s + at)
        writer.check_readers()
    assert len(calls) == 2
