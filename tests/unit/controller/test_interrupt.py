"""Ctrl-C ends a command in one line: while it loads, and while it works."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# The signal comes once Python runs this: before, it ends as any program does. In the background of
# a shell Python would leave the signal ignored.
CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from controller import interrupt; interrupt.while_loading(); print('started', flush=True);"
    "from controller.cli import main; main()"
)


@pytest.mark.parametrize("works", [False, True], ids=["loads", "works"])
def test_ctrl_c_is_one_line_and_its_own_exit_code(works: bool, tmp_path: Path) -> None:
    conf = tmp_path / "storm.yaml"
    # Nobody listens there, so it tries for 15 s.
    conf.write_text("storm.zookeeper.servers: [127.0.0.1]\nstorm.zookeeper.port: 1\n")
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "pause", "--conf", str(conf)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == "started\n"
    if works:
        first = process.stderr.readline()  # which of them is first depends on the machine
        assert "zookeeper_away" in first or first.startswith("waits for ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    *before, last = err.splitlines()
    assert last == "nstorm: ended by Ctrl-C"
    assert all("zookeeper_away" in line or line.startswith("waits for ") for line in before)


@pytest.mark.parametrize("verb", ["assess", "tune", "report", "replay"])
def test_ctrl_c_while_a_journal_is_read_leaves_no_process_and_no_file(
    verb: str, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    segment = journal / "20261129T080000-a-000001.jsonl"
    os.mkfifo(segment)
    words = [verb, str(journal), *(["--html", "page.html"] if verb == "assess" else [])]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    with opened_when_read(segment):  # and is not written, so that it goes on to read
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all that it has started
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "started\n")
    assert err.splitlines()[-1] == "nstorm: ended by Ctrl-C"
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [segment]


@contextmanager
def opened_when_read(fifo: Path) -> Iterator[None]:
    """Open the other end once somebody reads it."""
    until_s = time.monotonic() + 40
    while True:
        try:
            end = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            assert time.monotonic() < until_s
            time.sleep(0.02)
    try:
        yield
    finally:
        os.close(end)
