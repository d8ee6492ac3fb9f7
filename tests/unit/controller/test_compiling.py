"""A controller decides at once, and compiled once another process has compiled."""

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
import time
from threading import Event
from controller.compiling import compiling_beside
from controller.compiling import prepare
from controller.core.view import kernels
from kvstore.logs import log_to_stderr

log_to_stderr()
begun_s = time.process_time()
with compiling_beside(decided := Event()) as done:
    prepare()
    print(len(kernels.best.machine.signatures), time.process_time() - begun_s)
    decided.set()
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
    assert float(spent_s) < 10.0, "to compile it takes half a minute"
    assert loaded == "1 1"
    assert after == "1"


class Process:
    """Stands for the process that compiles."""

    def __init__(self, code: int) -> None:
        self.code, self.killed = code, False
        self.started, self.ends = threading.Event(), threading.Event()

    def start(self, *_: object, **__: object) -> "Process":
        self.started.set()
        return self

    def poll(self) -> int | None:
        return self.code if self.ends.is_set() else None

    def kill(self) -> None:
        self.killed = True
        self.ends.set()

    def wait(self) -> None:
        assert self.ends.is_set()


@compiled
def half(number: int) -> int:
    return number // 2


def stand_in(monkeypatch: pytest.MonkeyPatch, code: int) -> tuple[Process, list[int]]:
    process, asked = Process(code), []
    stand_in = SimpleNamespace(Popen=process.start, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(compiling, "subprocess", stand_in)
    # What the thread runs is compiled there, whatever this thread does.
    monkeypatch.setattr(compiling, "prepare", lambda: asked.append(half(8)))
    return process, asked


@pytest.mark.parametrize("code", [0, 1])
def test_loops_are_compiled_from_the_compilers_end_on(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    process, asked = stand_in(monkeypatch, code)
    ran, decided = [], threading.Event()
    # Made of the function as it is, not as it is watched.
    assert half(2) == half.machine(2) == 1  # type: ignore[attr-defined]
    monkeypatch.setattr(half, "python", lambda number: ran.append(number) or number // 2)  # type: ignore[func-returns-value]
    with capture_logs() as logs, compiling_beside(decided) as done:
        assert half(6) == 3
        assert not process.started.is_set()  # it would take CPU that this decision waits for
        decided.set()
        assert process.started.wait(60)
        assert (ran, asked) == ([6], [])
        process.ends.set()
        assert done.wait(60)
        assert half(6) == 3
    assert (ran, asked) == ([6], [4])
    events = [entry["event"] for entry in logs]
    assert events == ["compiler_failed"] * code + ["decisions_compiled"]


@pytest.mark.parametrize("has_decided", [False, True])
def test_the_end_of_the_controller_ends_the_compiler(
    monkeypatch: pytest.MonkeyPatch, has_decided: bool
) -> None:
    process, asked = stand_in(monkeypatch, 0)
    decided = threading.Event()
    with capture_logs() as logs, compiling_beside(decided) as done:
        if has_decided:
            decided.set()
            assert process.started.wait(60)
    assert process.started.is_set() == process.killed == has_decided
    assert not done.is_set()
    assert (asked, logs) == ([], [])
    prepare()  # afterwards this thread compiles again, as any other
