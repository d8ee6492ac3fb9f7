"""Measures what a plan costs: to read, to commit, and on its way from ZooKeeper to the workers."""

import random
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.interval import quantile
from deploy.lab.operator import beside
from kvstore.reader import StoreReader
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session
from migration.model import Base, Entry, ExecutorId, LocalPlan, Phase, Plan, Slot, WorkerAck
from migration.wire import (
    ACK_KEY,
    CLUSTER,
    EPOCH,
    PLAN_KEY,
    decode,
    encode,
    encode_local,
    plan_path,
)
from tests.bench import jmh
from tests.bench.frame import load_average

# A move or two is usual; a hundred is more than any plan will hold.
ENTRIES = (1, 100)
COMMITS = 300
READS = 500
TOPOLOGY = "bench"
RATE_TPS = 1000.0
LOOK_EVERY_S = 0.002
ARRIVAL_LIMIT_S = 10.0
SEED = 1


def run_plan(writes: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure on the disk of this machine and on a cluster of its own."""
    store_dir = REPOSITORY / "build" / "bench-plan"
    shutil.rmtree(store_dir, ignore_errors=True)
    tell("commits and reads in Python")
    python = {str(entries): in_python(store_dir / str(entries), entries) for entries in ENTRIES}
    tell("reads in the JVM")
    jmh.build()
    jvm = {
        name.removeprefix("PlanRead."): round(statistics.median(figures) / 1000, 3)
        for name, figures in jmh.run("PlanRead", params={"dir": str(store_dir)}).items()
    }
    shutil.rmtree(store_dir)
    tell("a cluster starts, for the way from ZooKeeper to the workers")
    with plan_lab("bench-plan", hooks_jar=HOOKS_JAR) as lab:
        lab.submit(TOPOLOGY, rate_tps=RATE_TPS)
        lab.wait_ready(TOPOLOGY)
        # A controller has to lead once, for the cluster's id and epoch, and is in the way then.
        with beside(lab, TOPOLOGY), Session(lab.storm_zookeeper) as session:
            session.connect()
            lab.wait_until("a controller leads", lambda: _epoch(session) > 0)
        tell(f"{writes} plans go from ZooKeeper to the workers")
        arrived = arrivals(lab, writes)
        ended_load = load_average()
    return {
        "jvm_read_cpu_us_by_entries": jvm,
        "python_by_entries": python,
        "to_worker": latencies(arrived),
        "load_average": ended_load,
    }


def in_python(path: Path, entries: int) -> dict[str, float]:
    """Commit plans of one size and read the last one, as the agent and its tools do.

    Parameters
    ----------
    path : Path
        A folder that is not there yet; the last plan stays in it.

    Returns
    -------
    dict of str to float
        Quantiles of wall time in milliseconds, and the size.
    """
    commit_ms, read_ms, parsed_ms = [], [], []
    with PlanWriter(path, PLAN_KEY) as writer:
        for version in range(COMMITS):
            local = sample_plan(version, entries)
            payload = encode_local(local.cluster, {p.topology: encode(p) for p in local.plans})
            began_s = time.perf_counter()
            writer.write(payload)
            commit_ms.append(1000 * (time.perf_counter() - began_s))
    with closing(StoreReader(path)) as reader:
        for _ in range(READS):
            began_s = time.perf_counter()
            envelope = reader.read(PLAN_KEY).envelope
            read_ms.append(1000 * (time.perf_counter() - began_s))
            assert envelope is not None
            decode(LocalPlan, envelope.payload)
            parsed_ms.append(1000 * (time.perf_counter() - began_s))
    return {
        "size_bytes": len(payload),
        **quantiles("commit_ms", commit_ms),
        **quantiles("read_ms", read_ms),
        **quantiles("read_and_parse_ms", parsed_ms),
    }


def sample_plan(version: int, entries: int) -> LocalPlan:
    """Make a plan such as an agent stores."""
    cluster = "6f1c2c1e-5a0e-4d6c-9a57-0b9a2f6f3c11"
    source = Slot("0e9d9bd5-93a5-4f08-8c3e-7d1c8a6c9a10-127.0.0.2", 6700)
    target = Slot("7c0a3fd2-1b8e-4f5b-8a52-9b1d4a5c2e77-127.0.0.3", 6701)
    moves = (
        Entry(
            id=f"m{task}",
            executor=ExecutorId(task, task),
            source=source,
            target=target,
            phase=Phase.SWITCH,
            base=Base(source, 1_700_000_000),
        )
        for task in range(1, entries + 1)
    )
    return LocalPlan(cluster, (Plan(cluster, 1, version, "bench-1-1700000000", tuple(moves)),))


@dataclass(frozen=True, slots=True)
class Arrival:
    """How long one plan was on its way; all counted from before it was written to ZooKeeper.

    Attributes
    ----------
    written_s : float
        Until ZooKeeper had confirmed it.
    stored_s : tuple of float
        Until the agent had committed it, one figure a node.
    taken_s : tuple of float
        Until a worker's ack of that version was in the worker's own store, one figure a worker.
    """

    written_s: float
    stored_s: tuple[float, ...]
    taken_s: tuple[float, ...]


class Watched:
    """A store in which a plan is to be seen; what has not changed is not parsed again.

    Parameters
    ----------
    key : bytes
        PLAN_KEY for an agent's store, ACK_KEY for a worker's.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.reader = StoreReader(path)
        self._key = key
        self._looked_at = -1

    def shows(self, plan: Plan) -> bool:
        """Check whether the plan has just arrived here.

        Returns
        -------
        bool
            True only when what the store holds is new since the last look.
        """
        envelope = self.reader.read(self._key).envelope
        if envelope is None or envelope.version == self._looked_at:
            return False
        self._looked_at = envelope.version
        if self._key == ACK_KEY:
            return decode(WorkerAck, envelope.payload).stamp == plan.stamp
        return decode(LocalPlan, envelope.payload).find(plan.topology) == plan


def arrivals(lab: Lab, writes: int) -> list[Arrival]:
    """Write plans without a move into ZooKeeper and wait for the workers' own word of each.

    Parameters
    ----------
    lab : Lab
        The cluster, with agents, and with the cluster's id and epoch in ZooKeeper.
    """
    pauses = random.Random(SEED)
    alive = set(lab.worker_pids().values())
    with ExitStack() as opened, Session(lab.storm_zookeeper) as session:
        nodes = [Watched(node.store_dir / "plan", PLAN_KEY) for node in lab.nodes]
        paths = (path for node in lab.nodes for path in sorted((node.store_dir / "w").iterdir()))
        workers = [
            Watched(path, ACK_KEY) for path in paths if int(path.name.rpartition("-")[2]) in alive
        ]
        for watched in (*nodes, *workers):
            opened.enter_context(closing(watched.reader))
        session.connect()
        plan = _plan_now(session, lab.topology_id(TOPOLOGY))
        made = []
        for _ in range(writes):
            plan = structs.replace(plan, version=plan.version + 1)
            made.append(_send(session, plan, nodes, workers))
            # Out of step with the workers, who look every 50 ms.
            time.sleep(pauses.uniform(0.05, 0.25))
    return made


def _plan_now(session: Session, topology: str) -> Plan:
    """Give the topology's plan, which has no move in it, or one to precede the first."""
    cluster = session.read(CLUSTER)
    if cluster is None:
        raise LabError(f"{CLUSTER} is not in ZooKeeper: no controller has ever led")
    stored = session.exists(plan_path(topology))
    version = -1 if stored is None else stored.version
    return Plan(cluster.data.decode(), _epoch(session), version, topology)


def _epoch(session: Session) -> int:
    """Give the epoch of the newest leader; 0 before the first."""
    stored = session.exists(EPOCH)
    return 0 if stored is None else stored.version


def _send(
    session: Session, plan: Plan, nodes: Sequence[Watched], workers: Sequence[Watched]
) -> Arrival:
    before = plan.version - 1
    fence, path = (EPOCH, plan.epoch), plan_path(plan.topology)
    began_s = time.monotonic()
    session.put_checked(path, encode(plan), None if before < 0 else before, fence)
    written_s = time.monotonic() - began_s
    seen_s: dict[Watched, float] = {}
    while len(seen_s) < len(nodes) + len(workers):
        for watched in (*nodes, *workers):
            if watched not in seen_s and watched.shows(plan):
                seen_s[watched] = time.monotonic() - began_s
        if time.monotonic() - began_s > ARRIVAL_LIMIT_S:
            raise LabError(f"plan {plan.stamp} has reached {len(seen_s)} stores in vain")
        time.sleep(LOOK_EVERY_S)
    stored_s, taken_s = (tuple(seen_s[one] for one in group) for group in (nodes, workers))
    return Arrival(written_s, stored_s, taken_s)


def latencies(arrived: Sequence[Arrival]) -> dict[str, Any]:
    """Summarise how long plans were on their way.

    Returns
    -------
    dict
        Milliseconds from before the write to ZooKeeper; the goal is for "worker".
    """
    return {
        "plans": len(arrived),
        "workers": len(arrived[0].taken_s),
        **quantiles("written_ms", [1000 * plan.written_s for plan in arrived]),
        **quantiles("agent_ms", [1000 * spent_s for plan in arrived for spent_s in plan.stored_s]),
        **quantiles("worker_ms", [1000 * spent_s for plan in arrived for spent_s in plan.taken_s]),
        **quantiles("last_worker_ms", [1000 * max(plan.taken_s) for plan in arrived]),
        "goal_worker_ms_p99": 200,
    }


def quantiles(name: str, values: Sequence[float]) -> dict[str, float]:
    """Give median, 99th percentile and maximum."""
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {f"{name}_{key}": round(quantile(values, share), 4) for key, share in shares.items()}
