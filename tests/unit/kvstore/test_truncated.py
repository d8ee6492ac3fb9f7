"""Stores that are truncated while they are in use: no process may end of it (SIGBUS)."""

import subprocess
import sys
from pathlib import Path

import pytest

PREPARE = """
import os, sys
from contextlib import closing
from pathlib import Path
from kvstore.env import Env
from kvstore.envelope import pack
from kvstore.errors import StoreError
from kvstore.reader import StoreReader
from kvstore.writer import PlanWriter
folder, name, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
now_s = 0.0
import time
time.monotonic = lambda: now_s

def truncate():
    os.truncate(folder / name, size)

def later():
    global now_s
    now_s += 2.0
"""
WRITES = """
with PlanWriter(folder, b"plan") as writer:
    before = writer.write(b"plan" * 5000)
    truncate()
    assert writer.write(b"next") > before
    assert "was truncated" in writer.problem, writer.problem
with closing(StoreReader(folder)) as reader:
    assert reader.read(b"plan").envelope.payload == b"next"
"""
RESTS = """
with PlanWriter(folder, b"plan") as writer:
    before = writer.write(b"plan" * 5000)
    truncate()
    later()
    writer.check_readers()
    assert "was truncated" in writer.problem, writer.problem
with closing(StoreReader(folder)) as reader:
    found = reader.read(b"plan").envelope
    assert found.payload == b"plan" * 5000 and found.version > before
"""
CLOSES = """
with PlanWriter(folder, b"plan") as writer:
    writer.write(b"plan" * 5000)
    truncate()
"""
OPENS = """
with PlanWriter(folder, b"plan") as writer:
    writer.write(b"plan" * 5000)
truncate()
try:
    with closing(StoreReader(folder)) as reader:
        assert reader.read(b"plan").envelope is None
except StoreError as error:
    print(error)
with PlanWriter(folder, b"plan") as writer:
    assert writer.last is None
    writer.write(b"next")
"""
READS = """
with closing(Env(folder, writable=True)) as env:
    env.put(b"ack", pack(1, b"ack" * 5000))
with closing(StoreReader(folder)) as reader:
    good = reader.read(b"ack").envelope
    truncate()
    for _ in range(3):
        reading = reader.read(b"ack")
        assert reading.envelope == good
        assert "was truncated" in reading.problem, reading.problem
        reader.check_readers()
    (folder / "data.mdb").unlink()
    with closing(Env(folder, writable=True)) as env:
        env.put(b"ack", pack(2, b"new" * 5000))
    reader.check_readers()
    assert reader.read(b"ack").envelope.version == 2
    truncate()
    reader.check_readers()
    assert "was truncated" in reader.read(b"ack").problem
"""


def run(code: str, folder: Path, name: str, size: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREPARE + code, str(folder), name, str(size)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"


@pytest.mark.parametrize("code", [WRITES, RESTS, CLOSES, OPENS, READS])
@pytest.mark.parametrize("size", [0, 4096, 8192, 12288])
def test_a_truncated_data_file_ends_nobody(tmp_path: Path, code: str, size: int) -> None:
    run(code, tmp_path / "store", "data.mdb", size)


@pytest.mark.parametrize("code", [WRITES, RESTS, CLOSES])
def test_a_truncated_lock_file_ends_nobody(tmp_path: Path, code: str) -> None:
    run(code, tmp_path / "store", "lock.mdb", 0)


READS_LOCK = """
with closing(Env(folder, writable=True)) as env:
    env.put(b"ack", pack(1, b"ack"))
with closing(StoreReader(folder)) as reader:
    good = reader.read(b"ack").envelope
    truncate()
    for _ in range(3):
        assert reader.read(b"ack").envelope == good
        reader.check_readers()
"""


def test_a_reader_outlives_a_truncated_lock_file(tmp_path: Path) -> None:
    run(READS_LOCK, tmp_path / "store", "lock.mdb", 0)


def test_a_lock_file_stays_cut_so_that_the_jvm_that_writes_there_sees_it(tmp_path: Path) -> None:
    code = """
with closing(Env(folder, writable=True)) as env:
    env.put(b"ack", pack(1, b"ack"))
    truncate()
assert (folder / "lock.mdb").stat().st_size == 0
"""
    run(code, tmp_path / "store", "lock.mdb", 0)


def test_a_data_file_that_is_gone_is_written_anew(tmp_path: Path) -> None:
    code = """
with PlanWriter(folder, b"plan") as writer:
    writer.write(b"plan")
    (folder / "data.mdb").unlink()
    later()
    writer.check_readers()
    assert "is gone" in writer.problem
with closing(StoreReader(folder)) as reader:
    assert reader.read(b"plan").envelope.payload == b"plan"
"""
    run(code, tmp_path / "store", "data.mdb", 0)
