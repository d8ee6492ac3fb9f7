"""Compiles what decisions are made of, beside a controller that decides as Python until then."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from controller.core.compiled import run_as_python_until
from controller.core.decide import prepare

# It keeps what it compiles on disk. What the machine is there for comes first.
_COMPILE = "import os; os.nice(10); from controller.core.decide import prepare; prepare()"
_END_LIMIT_S = 2.0

log = structlog.get_logger()


@contextmanager
def compiling_beside() -> Iterator[threading.Event]:
    """Let this thread decide at once, as Python, and as machine code once that is there.

    A process compiles, since the compiler holds the interpreter's lock for seconds at a time on a
    busy machine. What it has kept is then loaded by a thread; where nothing could be kept, the
    thread compiles, which is slow but changes no answer.

    Yields
    ------
    threading.Event
        Set when decisions are compiled.
    """
    begun_s = time.monotonic()
    done, ended = threading.Event(), threading.Event()
    compiler = subprocess.Popen([sys.executable, "-c", _COMPILE], stdin=subprocess.DEVNULL)

    def load() -> None:
        code = compiler.wait()
        if ended.is_set():
            return
        if code:
            log.warning("compiler_failed", exit_code=code)
        prepare()
        done.set()
        log.info("decisions_compiled", spent_s=round(time.monotonic() - begun_s, 1))

    loader = threading.Thread(target=load, name="load-compiled", daemon=True)
    loader.start()
    try:
        with run_as_python_until(done.is_set):
            yield done
    finally:
        ended.set()
        compiler.kill()
        compiler.wait()
        loader.join(_END_LIMIT_S)
