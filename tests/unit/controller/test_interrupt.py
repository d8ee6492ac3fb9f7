"""Ctrl-C ends a command in one line: while it loads, and while it works."""

import signal
import subprocess
import sys
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
