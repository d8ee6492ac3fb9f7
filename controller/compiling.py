"""Compiles the loops of decisions in a process of its own; until then a controller decides as
Python.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import structlog

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.compiled import run_as_python_until
from controller.core.limits import Limits
from controller.core.policy import Case, Searching
from controller.policies.gather.policy import Gather
from controller.policies.options import TargetOptions
from controller.policies.otd import otd

# It keeps what it compiles on disk. What the machine is there for comes first.
_COMPILE = (
    "import os; os.setpriority(os.PRIO_PROCESS, 0, 19); "
    "from controller.compiling import prepare; prepare()"
)
_LOOK_S = 0.2
_END_LIMIT_S = 2.0

log = structlog.get_logger()


@contextmanager
def compiling_beside(decided: threading.Event) -> Iterator[threading.Event]:
    """Let this thread decide at once, as Python, and as machine code once that is there.

    Compiling would take CPU that the first decision waits for: it begins once that is `decided`. A
    process compiles, since the compiler holds the interpreter's lock for seconds at a time on a
    busy machine. What it has kept is then loaded by a thread; where nothing could be kept, the
    thread compiles, which is slow but changes no answer. The event is set when decisions are
    compiled.
    """
    done, ended = threading.Event(), threading.Event()

    def load() -> None:
        decided.wait()
        begun_s = time.monotonic()
        if ended.is_set():
            return
        compiler = subprocess.Popen([sys.executable, "-c", _COMPILE], stdin=subprocess.DEVNULL)
        while (code := compiler.poll()) is None:
            if ended.wait(_LOOK_S):
                compiler.kill()
                compiler.wait()
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
        decided.set()
        loader.join(_END_LIMIT_S)


def prepare() -> None:
    """Compile what decisions are made of, so that the first one does not wait for it.

    Takes some seconds once for each installation, and again after an update.
    """
    cluster = replace(
        Cluster.build("ab", [("a:1", "a", 1.0), ("b:1", "b", 1.0), ("b:2", "b", 1.0)]),
        node_cores=np.array([1.0, 2.0]),  # as a run that has no key for it sees them
    )
    traffic = Traffic(np.array([0, 1]), np.array([2, 2]), np.array([1.0, 2.0]), np.zeros(2))
    snapshot = LoadSnapshot(
        topology="",
        time_s=0.0,
        components=(),
        edges=(),
        executors=("1-1", "2-2", "3-3"),
        component_of=("", "", ""),
        place=np.array([0, 1, 2]),
        cpu_cores=np.full(3, 0.1),
        queue=np.zeros(3),
        pinned=(None,) * 3,
        traffic=traffic,
    )
    for rules in (Limits(max_moves=2), Limits(gain_tps=np.inf)):
        Searching(Gather(TargetOptions())).decide(Case(cluster, snapshot, rules), None)
        otd(cluster, snapshot, rules)
