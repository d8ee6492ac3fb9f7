"""Runs a real Storm cluster on this machine and leaves nothing of it behind."""

import fcntl
import os
import re
import shutil
import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploy.lab import LabError
from deploy.lab.daemons import Daemons, clear
from deploy.lab.home.assemble import assemble
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.layout import (
    KAFKA_JAR,
    WORKLOAD_JAR,
    LabLayout,
    LabNode,
    LabOptions,
    free_ports,
    java_home,
    load,
)
from deploy.lab.ledger import Ledger
from deploy.lab.network import Network, plan_network, refuse_cores
from deploy.lab.processes import Processes, start_ticks
from deploy.lab.workloads import check_rate, configure, record

RUNS_DIR = REPOSITORY / "build" / "lab"
HOOKS_JAR = REPOSITORY / "migration/jvm/target/nstorm-hooks.jar"
# On a busy machine Storm starts a worker again after 120 s: a third start has to fit.
READY_LIMIT_S = 420.0


@dataclass(frozen=True, slots=True)
class AssignedExecutor:
    """An executor as Storm's assignment has it.

    Attributes
    ----------
    executor : tuple[int, int]
        First and last task.
    start_secs : int
        The start time that Nimbus keeps for it.
    """

    executor: tuple[int, int]
    component: str
    slot: str
    start_secs: int


class Lab(Daemons):
    """The cluster with its topologies and workers."""

    def __init__(self, layout: LabLayout) -> None:
        super().__init__(layout)
        self._rates_at_start: dict[str, float] = {}

    def submit(
        self,
        name: str,
        conf: Mapping[str, Any] | None = None,
        rate_tps: float = 0.0,
        workload: str = "wordcount",
    ) -> str:
        """Submit a workload, by default the acked WordCount.

        Parameters
        ----------
        conf : Mapping[str, Any] or None
            Keys of its configuration in addition to the defaults (4 workers, 2 ackers); the keys
            "workload.*" shape it.
        rate_tps : float
            Sentences per second once `wait_ready` has seen all tasks open; before, Storm would
            drop tuples to workers that are still starting.
        """
        check_rate(rate_tps, workload)
        shaped = configure(workload, conf or {})
        # It names a directory, which goes. Storm would refuse most others, but too late.
        if not re.fullmatch(r"\w[\w-]*", name, re.ASCII):
            raise LabError(f"topology {name!r}: must be of letters, digits, _ and -")
        if any(row["name"] == name for row in self._client.ask("cluster")["topologies"]):
            raise LabError(f"topology {name!r} runs: kill it first")
        directory = self.layout.run_dir / "ledgers" / name
        shutil.rmtree(directory, ignore_errors=True)
        self.ledger(name).set_rate(0)
        self._rates_at_start[name] = rate_tps
        if workload == "kafka":
            shaped = {**self._broker(), **shaped}
        wanted = {
            "topology.workers": 4,
            "topology.acker.executors": 2,
            "workload.ledger.dir": str(directory),
            **shaped,
        }
        record(directory, workload, wanted)
        return str(self._client.ask("submit", name, wanted, workload)["id"])

    def _broker(self) -> dict[str, Any]:
        """Give the address of this lab's broker."""
        port = self.layout.options.kafka_port
        if not port:
            raise LabError("workload kafka: start the lab with --kafka")
        return {"workload.kafka.host": self.layout.zookeeper_host, "workload.kafka.port": port}

    def ledger(self, name: str) -> Ledger:
        """Open the ledger of a topology.

        Returns
        -------
        Ledger
            A reader of its own, at the beginning.
        """
        return Ledger(self.layout.run_dir / "ledgers" / name)

    def topologies(self) -> dict[str, str]:
        """List the topologies.

        Returns
        -------
        dict[str, str]
            Status by topology id.
        """
        return {row["id"]: row["status"] for row in self._client.ask("cluster")["topologies"]}

    def supervisors(self) -> list[str]:
        """List the supervisors that Nimbus knows."""
        return [row["host"] for row in self._client.ask("cluster")["supervisors"]]

    def topology_id(self, name: str) -> str:
        """Find the id of a topology."""
        for row in self._client.ask("cluster")["topologies"]:
            if row["name"] == name:
                return str(row["id"])
        raise LabError(f"no topology {name!r} on the lab cluster")

    def assignment(self, name: str) -> list[AssignedExecutor]:
        """Give Storm's assignment of a topology.

        Returns
        -------
        list[AssignedExecutor]
            Its executors, system ones too, by task; empty while it has no assignment.
        """
        answer = self._client.ask("topology", self.topology_id(name))
        placed = (
            AssignedExecutor(
                (row["executor"][0], row["executor"][1]),
                row["component"],
                row["slot"],
                row["start_secs"],
            )
            for row in answer["executors"]
        )
        return sorted(placed, key=lambda executor: executor.executor)

    def kill_topology(self, name: str) -> None:
        """Kill a topology and wait until its workers have ended."""
        topology = self.topology_id(name)
        self._client.ask("kill", name, 0)
        self.wait_until(f"{name} ends", lambda: topology not in self.topologies())
        self.wait_until(f"workers of {name} end", lambda: not self._workers_of(topology))

    def rebalance(
        self,
        name: str,
        workers: int | None = None,
        executors: Mapping[str, int] | None = None,
        wait_secs: int = 0,
    ) -> None:
        """Let Storm rebalance a topology, with restarts as Storm does it.

        Parameters
        ----------
        wait_secs : int
            How long the topology stays inactive before.
        """
        options = {"wait_secs": wait_secs, "workers": workers, "executors": dict(executors or {})}
        self._client.ask("rebalance", name, options)

    def activate(self, name: str) -> None:
        """Let the spouts of a topology emit."""
        self._client.ask("activate", name)

    def deactivate(self, name: str) -> None:
        """Let the spouts of a topology rest."""
        self._client.ask("deactivate", name)

    def worker_pids(self) -> dict[str, int]:
        """Find the workers that run.

        Returns
        -------
        dict[str, int]
            Process id by slot, "<supervisor-id>:<port>".
        """
        return {slot: pid for slot, pid, _ in self._workers()}

    def kill_worker(self, slot: str) -> int:
        """Kill a worker; return the process id it had."""
        pids = self.worker_pids()
        if slot not in pids:
            raise LabError(f"no worker runs in slot {slot!r}: workers are in {sorted(pids)}")
        os.kill(pids[slot], signal.SIGKILL)
        return pids[slot]

    def wait_ready(self, name: str, limit_s: float = READY_LIMIT_S) -> None:
        """Wait until every spout and bolt task is open in a living worker.

        The first time after `submit`, feeding begins then.
        """
        ledger = self.ledger(name)

        def wanted() -> set[int]:
            return {
                task
                for placed in self.assignment(name)
                # Nor those that are none of the workload's own classes: Trident's, and Kafka's.
                if not placed.component.startswith(("__", "$", "b-", "kafka-"))
                for task in range(placed.executor[0], placed.executor[1] + 1)
            }

        def ready() -> bool:
            tasks = wanted()
            return bool(tasks) and tasks <= ledger.tasks()

        def missing() -> str:
            tasks = wanted()
            return (
                f"{len(tasks & ledger.tasks())} of {len(tasks)} are"
                if tasks
                else "none is assigned"
            )

        self.wait_until(f"all tasks of {name} are open", ready, limit_s, missing)
        if name in self._rates_at_start:
            ledger.set_rate(self._rates_at_start.pop(name))

    def _workers(self) -> Iterator[tuple[str, int, str]]:
        """Find workers: slot, process id, topology id."""
        by_dir = {f"-Dstorm.local.dir={n.local_dir}": n.supervisor_id for n in self.nodes}
        for pid, command in self._processes.java():
            # The process that launches a worker has the worker's whole command line in its own.
            if "org.apache.storm.LogWriter" in command:
                continue
            if "org.apache.storm.daemon.worker.Worker" not in command:
                continue
            named = dict(a[2:].split("=", 1) for a in command if a[:2] == "-D" and "=" in a)
            supervisor_id = by_dir[f"-Dstorm.local.dir={named['storm.local.dir']}"]
            yield f"{supervisor_id}:{named['worker.port']}", pid, named["storm.id"]

    def _workers_of(self, topology: str) -> list[int]:
        return [pid for _, pid, owner in self._workers() if owner == topology]


def with_own_cores(lab: Lab, own_cores: float | None) -> Lab:
    """Refuse a lab whose nodes have no cores of their own though figures are to be had on such.

    Raises
    ------
    LabError
        When nodes share the machine's cores.
    """
    network = lab.layout.options.network
    if own_cores is not None and (network is None or network.cores is None):
        why = "; ".join(lab.layout.options.cannot_show)
        raise LabError(f"no nodes with {own_cores:g} cores of their own here: {why}")
    return lab


def plan_lab(
    name: str,
    *,
    nodes: int = 2,
    slots: int = 2,
    hooks_jar: Path | None = None,
    conf: Mapping[str, Any] | None = None,
    worker_heap_mb: int = 256,
    cores: float | None = None,
    link: str | None = None,
    nimbuses: int = 1,
    trimmed: bool | None = None,
    java_version: int | None = None,
    storm_version: str | None = None,
    beside: str | None = None,
    kafka: bool = False,
    secure: str = "",
) -> Lab:
    """Lay out a cluster on free ports; nothing runs yet.

    Parameters
    ----------
    nodes : int
        Number of supervisors: on 127.0.0.2 and up; with `cores`, `link` or a second Nimbus each in
        a network namespace.
    hooks_jar : Path or None
        The jar that every JVM of Storm loads; None for a stock cluster.
    worker_heap_mb : int
        Heap of a worker, if `trimmed`.
    cores : float or None
        What a node's processes may use together.
    link : str or None
        The rate of a node's link in each direction, such as "20mbit".
    trimmed : bool or None
        As in `LabOptions`; None where it follows from the network: loopback is trimmed.
    storm_version : str or None
        A row of migration/jvm/storm-versions.tsv; None for what the jars are compiled against.
    beside : str or None
        The lab whose ZooKeeper also serves this one.
    secure : str
        As in `LabOptions`.

    Raises
    ------
    LabError
        When a lab of this name runs, a jar is missing, no ports are free, or what was asked for
        cannot be.
    """
    refuse_cores(cores, nodes, slots)
    for jar in (WORKLOAD_JAR, *([hooks_jar] if hooks_jar else [])):
        if not jar.is_file():
            raise LabError(f"{jar} is not built: run `make setup`")
    if kafka and not KAFKA_JAR.is_file():
        raise LabError(f"{KAFKA_JAR} is not built: run `make kafka`")
    if kafka and secure:
        raise LabError("a broker has no credentials: a lab is with --kafka or with --secure")
    run_dir = _run_dir(name)
    if any(Processes(run_dir).living()):
        raise LabError(f"the lab {name!r} runs: `python -m deploy lab down --name {name}` ends it")
    network: Network | None = None
    cannot_show: list[str] = []
    if cores is not None or link is not None or nimbuses > 1:
        network, cannot_show = plan_network(run_dir, nodes, nimbuses - 1, cores, link)
    if network is None and nimbuses > 1:
        cannot_show.append("all Nimbuses have one port, so addresses of their own: only one starts")
    home = None if java_version is None else java_home(java_version)
    trimmed = network is None if trimmed is None else trimmed
    if network is None:
        ports = free_ports(4 + nodes * (1 + slots))
        own = [ports[4 + i * (1 + slots) :][: 1 + slots] for i in range(nodes)]
        hosts = tuple(f"127.0.0.{2 + i}" for i in range(nodes))
    else:
        # As in most clusters, the same on each node.
        ports = free_ports(5 + slots)
        own = [ports[4:]] * nodes
        hosts = network.node_hosts
    kafka_port = ports[2] if kafka else 0
    options = LabOptions(
        trimmed,
        home,
        network,
        kafka_port=kafka_port,
        cannot_show=tuple(cannot_show),
        secure=secure,
    )
    layout = LabLayout(
        run_dir=run_dir,
        homes=assemble(storm_version),
        zookeeper_port=ports[0],
        nimbus_port=ports[1],
        nodes=tuple(
            LabNode(host, "", tuple(thrift_and_slots[1:]), thrift_and_slots[0], run_dir / host)
            for host, thrift_and_slots in zip(hosts, own, strict=True)
        ),
        hooks_jar=hooks_jar,
        worker_heap_mb=worker_heap_mb,
        conf=dict(conf or {}),
        options=options,
    )
    return Lab(layout if beside is None else _served_by(beside, layout))


@contextmanager
def only_zookeeper(name: str, secure: str = "") -> Iterator[Lab]:
    """Run a ZooKeeper without a Storm until the end of the block."""
    lab = plan_lab(f"{name}-{os.getpid()}", nodes=0, secure=secure)
    try:
        lab.prepare(owned=True)
        lab.start_zookeeper()
        yield lab
    finally:
        lab.down()
        shutil.rmtree(lab.layout.run_dir)


def _served_by(other: str, layout: LabLayout) -> LabLayout:
    """Let a lab use the ZooKeeper of another."""
    first = attach(other)
    if layout.options.secure or first.layout.options.secure:
        raise LabError(f"--beside {other}: not with --secure, which is of one lab")
    if first.daemon("zookeeper") is None:
        raise LabError(f"--beside {other}: no ZooKeeper of its own runs there")
    host = first.layout.zookeeper_host
    if layout.options.network is not None and first.layout.options.network is None:
        raise LabError(
            f"--beside {other}: its ZooKeeper is at {host}, out of reach for network namespaces: "
            "start it with --cores or --link, too, or this one without"
        )
    # A root that no earlier lab can have left in that ZooKeeper.
    root = f"/{layout.run_dir.name}-{uuid.uuid4().hex[:8]}"
    options = replace(layout.options, ensemble_host=host, zookeeper_root=root)
    return replace(layout, zookeeper_port=first.layout.zookeeper_port, options=options)


def attach(name: str) -> Lab:
    """Take hold of a lab that another process has started."""
    return Lab(load(_run_dir(name)))


def _run_dir(name: str) -> Path:
    """Give the folder of a lab, which is removed when a lab starts: never another than its own."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is None:
        raise LabError(
            f"--name {name!r}: type a letter or digit, then letters, digits, '.', '_' or '-'"
        )
    return RUNS_DIR / name


@contextmanager
def unswept() -> Iterator[None]:
    """Let no process sweep inside the block; a sweep in it would wait for itself."""
    RUNS_DIR.mkdir(parents=True, exist_ok=True)
    with (RUNS_DIR / "sweep.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sweep() -> list[str]:
    """End the labs whose owning process has died without ending them.

    Returns
    -------
    list of str
        Their names; several processes may sweep, and one of them ends a lab.

    Raises
    ------
    LabError
        Some could not be ended; the others are.
    """
    swept, failed = [], []
    with unswept():
        for run_dir in [file.parent for file in RUNS_DIR.glob("*/owner") if _is_stale(file)]:
            try:
                Processes(run_dir).stop()
                clear(run_dir)
            except (LabError, OSError) as error:
                failed.append(f"{run_dir} outlives its owner and cannot be ended: {error}")
            else:
                swept.append(run_dir.name)
    if failed:
        raise LabError("; ".join(failed))
    return swept


def _is_stale(owner: Path) -> bool:
    """Check whether the owner has died; not where the lab has ended since."""
    try:
        pid, ticks = owner.read_text().split()
    except (FileNotFoundError, ValueError):
        return False
    return str(start_ticks(int(pid))) != ticks
