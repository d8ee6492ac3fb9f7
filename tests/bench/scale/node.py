"""Measures the real agent of a node with a thousand executors."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml

from deploy.lab.cluster import Lab
from kvstore.env import Env
from kvstore.envelope import pack
from kvstore.zookeeper import Session
from migration import wire
from migration.model import (
    ExecutorId,
    ExecutorLoad,
    PersistedSlot,
    Plan,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from tests.bench.frame import load_average

NODE = "node-of-many"
TOPOLOGY = "large-1-1700000000"
WORKERS, EXECUTORS = 4, 250
# What a worker names; the rest it folds by the five components that tuples go to.
NAMED, COMPONENTS = 1000, 5
# The periods of the hooks.
LOAD_S, ACK_S = 1.0, 2.0
WARM_UP_S = 8.0
FIRST_REPORT_S = 60.0
_MIB = 1024 * 1024


class Jvms:
    """Four workers and a supervisor as their agent sees them: stores that are written.

    Notes
    -----
    They report this process, which lives, as theirs.
    """

    def __init__(self, store_dir: Path) -> None:
        self._random = np.random.default_rng(1)
        self._began_s = time.time() - 86_400
        self._envs: list[Env] = []
        self.slots = [Slot(NODE, 6700 + n) for n in range(WORKERS)]
        folders = [store_dir / "w" / f"{slot.port}-{os.getpid()}" for slot in self.slots]
        self._workers = [self._open(folder) for folder in folders]
        self._supervisor = self._open(store_dir / "s" / str(os.getpid()))
        self._executors = [
            tuple(ExecutorId(t, t) for t in range(1 + n * EXECUTORS, 1 + (n + 1) * EXECUTORS))
            for n in range(WORKERS)
        ]
        self._tps = self._random.uniform(1, 100, (WORKERS, NAMED))
        self._ends = self._random.integers(1, WORKERS * EXECUTORS + 1, (WORKERS, NAMED, 2))

    def _open(self, folder: Path) -> Env:
        self._envs.append(Env(folder, writable=True))
        return self._envs[-1]

    def say_acks(self) -> None:
        """Report that all are alive and have read no plan."""
        now_ms = int(time.time() * 1000)
        common = ("0.2.0", wire.SPEAKS, now_ms)
        for slot, env, executors in zip(self.slots, self._workers, self._executors, strict=True):
            ack = WorkerAck(TOPOLOGY, slot, 1, "1-1", *common, "", 0, -1, executors=executors)
            env.put(wire.ACK_KEY, pack(now_ms, wire.encode(ack)))
        kept = tuple(
            PersistedSlot(slot.port, TOPOLOGY, executors)
            for slot, executors in zip(self.slots, self._executors, strict=True)
        )
        said = SupervisorAck(NODE, 1, *common, "", (), kept)
        self._supervisor.put(wire.ACK_KEY, pack(now_ms, wire.encode(said)))

    def say_loads(self) -> None:
        """Report what was measured."""
        now_s = time.time()
        now_ms, since_s = int(now_s * 1000), now_s - self._began_s
        for worker, (slot, env) in enumerate(zip(self.slots, self._workers, strict=True)):
            totals = (self._tps[worker] * since_s).astype(np.int64).tolist()
            ends = self._ends[worker].tolist()
            load = WorkerLoad(
                TOPOLOGY,
                slot,
                "1-1",
                now_ms,
                int(2e9 * since_s),
                tuple(
                    ExecutorLoad(e, f"bolt-{e.start % 5}", int(7e6 * since_s) + e.start, 0, None)
                    for e in self._executors[worker]
                ),
                traffic_of((a, b, total) for (a, b), total in zip(ends, totals, strict=True)),
                tuple(
                    (e.start, f"bolt-{c}", int(since_s * (c + 1)))
                    for e in self._executors[worker]
                    for c in range(COMPONENTS)
                ),
            )
            env.put(wire.LOAD_KEY, pack(now_ms, wire.encode(load)))

    def run(self, stop: threading.Event) -> None:
        """Go on saying both at the periods of the hooks."""
        turn = 0
        while not stop.wait(LOAD_S):
            turn += 1
            self.say_loads()
            if turn % round(ACK_S / LOAD_S) == 0:
                self.say_acks()

    def close(self) -> None:
        """Close the stores."""
        for env in self._envs:
            env.close()


@contextmanager
def _living(store_dir: Path) -> Iterator[None]:
    stop, jvms = threading.Event(), Jvms(store_dir)
    thread = threading.Thread(target=jvms.run, args=(stop,), name="jvms")
    jvms.say_acks()
    jvms.say_loads()
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        jvms.close()


def measure_agent(lab: Lab, seconds: float) -> dict[str, Any]:
    """Measure the agent of a node with 1,000 executors.

    Parameters
    ----------
    lab : Lab
        Its ZooKeeper runs and has nothing in it yet.
    """
    run_dir = lab.layout.run_dir
    conf, log = run_dir / "agent.yaml", run_dir / "agent.log"
    host, port = "127.0.0.1", lab.layout.zookeeper_port
    conf.write_text(
        yaml.safe_dump(
            {
                "storm.zookeeper.servers": [host],
                "storm.zookeeper.port": port,
                "nstorm.store.dir": str(run_dir / "store"),
            }
        )
    )
    with Session(lab.zookeeper) as session:
        assert session.connect()
        session.create("/storm")
    with ExitStack() as stack:
        session = stack.enter_context(Session(lab.storm_zookeeper))
        assert session.connect()
        session.create("/storms")
        session.create(wire.CLUSTER, b"of-the-bench")
        plan = Plan("of-the-bench", 1, 0, TOPOLOGY)
        session.create(wire.plan_path(TOPOLOGY), wire.encode(plan))
        stack.enter_context(_living(run_dir / "store"))
        command = [sys.executable, "-m", "agent", "--conf", str(conf)]
        with log.open("w") as sink:
            process = subprocess.Popen(command, stdout=sink, stderr=sink)
        try:
            deadline_s = time.monotonic() + FIRST_REPORT_S
            while session.read(wire.load_path(NODE)) is None and time.monotonic() < deadline_s:
                time.sleep(0.2)
            time.sleep(WARM_UP_S)
            watched = psutil.Process(process.pid)
            before, began_s = watched.cpu_times(), time.monotonic()
            time.sleep(seconds)
            after, ended_s = watched.cpu_times(), time.monotonic()
            rss_mb = watched.memory_info().rss / _MIB
            load, acks = (session.read(of(NODE)) for of in (wire.load_path, wire.acks_path))
        finally:
            process.terminate()
            process.wait()
    spent_s = after.user + after.system - before.user - before.system
    return {
        "executors": WORKERS * EXECUTORS,
        "cpu_percent_of_a_core": round(100 * spent_s / (ended_s - began_s), 2),
        "user_s": round(after.user - before.user, 2),
        "system_s": round(after.system - before.system, 2),
        "rss_mb": round(rss_mb),
        "load_bytes": None if load is None else len(load.data),
        "acks_bytes": None if acks is None else len(acks.data),
        "load_average": load_average(),
    }
