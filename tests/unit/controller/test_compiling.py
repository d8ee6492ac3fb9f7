"""A controller decides at once, and compiled once a process beside it has compiled."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from controller import compiling
from controller.compiling import compiling_beside, prepare
from controller.core.compiled import compiled

ASKED = """
import sys, time
from controller.compiling import compiling_beside
from controller.compiling import prepare
from controller.core.view import kernels
from kvstore.service import log_to_stderr

log_to_stderr()
begun_s = time.monotonic()
with compiling_beside() as done:
    prepare()
    print(len(kernels.best.machine.signatures), time.monotonic() - begun_s)
    assert done.wait(300)
    print(len(kernels.best.machine.signatures), sum(kernels.best.machine.stats.cache_hits.values()))
    prepare()
    print(len(kernels.best.machine.signatures))
"""


def test_a_cold_start_decides_as_python_and_then_by_what_another_process_compiled(
    tmp_path: Path,
) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    first, loaded, after = done.stdout.splitlines()
    signatures, spent_s = first.split()
    assert signatures == "0"
    assert float(spent_s) < 5.0
    assert loaded == "1 1"
    assert after == "1"


class Compiler:
    """Stands for the process that compiles."""

    def __init__(self, code: int, ends: threading.Event) -> None:
        self.code, self.ends, self.killed = code, ends, False

    def wait(self) -> int:
        self.ends.wait()
        return self.code

    def kill(self) -> None:
        self.killed = True
        self.ends.set()


@compiled
def half(number: int) -> int:
    return number // 2


def stand_in(monkeypatch: pytest.MonkeyPatch, code: int) -> tuple[Compiler, list[int]]:
    compiler, asked = Compiler(code, threading.Event()), []
    stand_in = SimpleNamespace(Popen=lambda *_, **__: compiler, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(compiling, "subprocess", stand_in)
    # What the thread runs is compiled there, whatever this thread does.
    monkeypatch.setattr(compiling, "prepare", lambda: asked.append(half(8)))
    return compiler, asked


@pytest.mark.parametrize("code", [0, 1])
def test_loops_are_compiled_from_the_compilers_end_on(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    compiler, asked = stand_in(monkeypatch, code)
    ran = []
    assert half(2) == half.machine(2) == 1  # made of the function as it is, not as it is watched
    monkeypatch.setattr(half, "python", lambda number: ran.append(number) or number // 2)
    with capture_logs() as logs, compiling_beside() as done:
        assert half(6) == 3
        assert (ran, asked) == ([6], [])
        compiler.ends.set()
        assert done.wait(60)
        assert half(6) == 3
    assert (ran, asked) == ([6], [4])
    events = [entry["event"] for entry in logs]
    assert events == ["compiler_failed"] * code + ["decisions_compiled"]


def test_the_end_of_the_controller_ends_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, asked = stand_in(monkeypatch, 0)
    with capture_logs() as logs, compiling_beside() as done:
        pass
    assert compiler.killed
    assert not done.is_set()
    assert (asked, logs) == ([], [])
    prepare()  # afterwards this thread compiles again, as any other
