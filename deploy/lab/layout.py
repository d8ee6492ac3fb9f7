"""Says where everything of one lab lies: directories, ports, configuration, commands."""

import json
import os
import random
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.lab import LabError
from deploy.lab.home.assemble import REPOSITORY, Homes
from deploy.lab.meters import PERIOD_S

WORKLOAD_JAR = REPOSITORY / "deploy/lab/workload/target/nstorm-workload.jar"
_PORT_BLOCK = 64
_LOWEST_PORT = 12_800
# Daemons live for minutes: starting fast beats running fast. Workers keep the full compiler.
_DAEMON_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True, slots=True)
class LabNode:
    """One supervisor and its directories.

    Attributes
    ----------
    host : str
        Its address, 127.0.0.2 and up.
    supervisor_id : str
        The id it gave itself; empty until it is up.
    thrift_port : int
        Where its workers talk to it.
    root : Path
        The directory that holds all of the node.
    """

    host: str
    supervisor_id: str
    ports: tuple[int, ...]
    thrift_port: int
    root: Path

    @property
    def conf_dir(self) -> Path:
        """Where its storm.yaml is."""
        return self.root / "conf"

    @property
    def local_dir(self) -> Path:
        """Storm's `storm.local.dir`."""
        return self.root / "local"

    @property
    def store_dir(self) -> Path:
        """The agent's `nstorm.store.dir`."""
        return self.root / "store"

    @property
    def log_dir(self) -> Path:
        """Logs of the supervisor, its agent and its workers."""
        return self.root / "logs"

    @property
    def slots(self) -> tuple[str, ...]:
        """Its slots as "<supervisor-id>:<port>"."""
        return tuple(f"{self.supervisor_id}:{port}" for port in self.ports)


@dataclass(frozen=True, slots=True)
class LabLayout:
    """One lab on paper.

    Attributes
    ----------
    run_dir : Path
        The directory of this lab; absolute.
    zookeeper_port : int
        ZooKeeper's port on 127.0.0.1.
    nimbus_port : int
        Nimbus' Thrift port on 127.0.0.1.
    agent_jar : Path or None
        The jar that every JVM of Storm loads; None for a stock cluster.
    worker_heap_mb : int
        Heap of a worker.
    conf : Mapping[str, Any]
        Keys of every storm.yaml beside the lab's own.
    """

    run_dir: Path
    homes: Homes
    zookeeper_port: int
    nimbus_port: int
    nodes: tuple[LabNode, ...]
    agent_jar: Path | None
    worker_heap_mb: int
    conf: Mapping[str, Any]

    @property
    def nimbus_dir(self) -> Path:
        """Configuration, state, logs and meters of Nimbus."""
        return self.run_dir / "nimbus"

    @property
    def tmp_dir(self) -> Path:
        """Temporary files of the daemons."""
        return self.run_dir / "tmp"

    @property
    def meter_dirs(self) -> list[Path]:
        """Where the daemons report their meters."""
        return [self.nimbus_dir / "meters", *(node.root / "meters" for node in self.nodes)]

    def write(self) -> None:
        """Write the configuration of ZooKeeper and of every daemon."""
        zookeeper_dir = self.run_dir / "zookeeper"
        (zookeeper_dir / "data").mkdir(parents=True)
        zoo_cfg = {
            "tickTime": 2000,
            "dataDir": zookeeper_dir / "data",
            "clientPort": self.zookeeper_port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr, mntr",
        }
        self.tmp_dir.mkdir()
        lines = (f"{key}={value}\n" for key, value in zoo_cfg.items())
        (zookeeper_dir / "zoo.cfg").write_text("".join(lines))
        _write_conf(self.nimbus_dir, self._storm_conf(self.nimbus_dir, "127.0.0.1"))
        for node in self.nodes:
            _write_conf(node.root, self._node_conf(node))

    def _storm_conf(self, root: Path, host: str) -> dict[str, Any]:
        worker_opts = f"-Xmx{self.worker_heap_mb}m -XX:+UseSerialGC {self._agent_option()}"
        return {
            "storm.zookeeper.servers": ["127.0.0.1"],
            "storm.zookeeper.port": self.zookeeper_port,
            "nimbus.seeds": ["127.0.0.1"],
            "nimbus.thrift.port": self.nimbus_port,
            "storm.local.hostname": host,
            "storm.local.dir": str(root / "local"),
            "worker.childopts": worker_opts.strip(),
            "topology.worker.logwriter.childopts": f"-Xmx32m {' '.join(_DAEMON_FLAGS)}",
            # Slots look every second (Storm: 3) whether their assignment has changed: moves settle
            # sooner, and a dead worker is back sooner.
            "supervisor.monitor.frequency.secs": 1,
            # The default lies in the Storm home, and one lab would lock it against another.
            "storm.metricstore.rocksdb.location": str(root / "local" / "metrics"),
            "storm.daemon.metrics.reporter.plugins": [
                "org.apache.storm.daemon.metrics.reporters.CsvPreparableReporter"
            ],
            "storm.daemon.metrics.reporter.interval.secs": PERIOD_S,
            "storm.daemon.metrics.reporter.csv.log.dir": str(root / "meters"),
            **self.conf,
        }

    def _node_conf(self, node: LabNode) -> dict[str, Any]:
        cores = len(os.sched_getaffinity(0))
        return {
            "supervisor.slots.ports": list(node.ports),
            "supervisor.thrift.port": node.thrift_port,
            "supervisor.cpu.capacity": 100.0 * cores / len(self.nodes),
            "nstorm.store.dir": str(node.store_dir),
            **self._storm_conf(node.root, node.host),
        }

    def _agent_option(self) -> str:
        return "" if self.agent_jar is None else f"-javaagent:{self.agent_jar}"

    def zookeeper_command(self) -> list[str]:
        """Give the command that runs ZooKeeper."""
        return [
            *self._java(96),
            # The data die with the lab: a killed process loses nothing without fsync.
            "-Dzookeeper.forceSync=no",
            *("-cp", f"{self.homes.zookeeper}/*"),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self.run_dir / "zookeeper" / "zoo.cfg"),
        ]

    def nimbus_command(self) -> list[str]:
        """Give the command that runs Nimbus."""
        main = "org.apache.storm.daemon.nimbus.Nimbus"
        return self._daemon(256, self.nimbus_dir, "nimbus", main)

    def supervisor_command(self, node: LabNode) -> list[str]:
        """Give the command that runs a supervisor."""
        main = "org.apache.storm.daemon.supervisor.Supervisor"
        return self._daemon(160, node.root, "supervisor", main)

    def client_command(self) -> list[str]:
        """Give the command that runs the client of Nimbus."""
        classpath = (self.homes.storm / "lib-worker" / "*", self.nimbus_dir / "conf", WORKLOAD_JAR)
        return [
            *self._java(96),
            f"-Dstorm.jar={WORKLOAD_JAR}",
            *("-cp", ":".join(map(str, classpath))),
            "nstorm.workload.Client",
        ]

    def _java(self, heap_mb: int) -> list[str]:
        return [
            *(java(), f"-Xmx{heap_mb}m", *_DAEMON_FLAGS),
            f"-Dnstorm.lab={self.run_dir}",
            # Nimbus unpacks RocksDB's library there; killed, it would leave it for good.
            f"-Djava.io.tmpdir={self.tmp_dir}",
        ]

    def _daemon(self, heap_mb: int, root: Path, name: str, main: str) -> list[str]:
        home = self.homes.storm
        classpath = [home / part / "*" for part in ("lib", "extlib", "extlib-daemon")]
        agent = self._agent_option()
        return [
            *self._java(heap_mb),
            *([agent] if agent else []),
            f"-Ddaemon.name={name}",
            f"-Dstorm.home={home}",
            f"-Dstorm.log.dir={root / 'logs'}",
            *("-Dstorm.conf.file=", "-Dstorm.options="),
            f"-Dlogfile.name={name}.log",
            f"-Dlog4j.configurationFile={home / 'log4j2' / 'cluster.xml'}",
            *("-cp", ":".join(map(str, [*classpath, root / "conf"]))),
            main,
        ]


def java() -> str:
    """Find the Java that Storm itself would take.

    Raises
    ------
    LabError
        When there is none.
    """
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if program is None or not Path(program).exists():
        raise LabError("no java on the PATH or in JAVA_HOME: install JDK 17, or run `make setup`")
    return program


def free_ports(count: int) -> list[int]:
    """Choose ports in a row that nobody listens on.

    They lie below the range from which the kernel takes ports for outgoing connections. Blocks are
    aligned and a lab listens on the first port of its block (ZooKeeper's) first and longest, so two
    labs never share one.

    Parameters
    ----------
    count : int
        How many, up to 64.

    Raises
    ------
    LabError
        When more are asked for than a block has, or no block is free.
    """
    if count > _PORT_BLOCK:
        raise LabError(f"a lab has at most {_PORT_BLOCK} ports, not {count}: fewer nodes or slots")
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    starts = [*range(_LOWEST_PORT, first_ephemeral - _PORT_BLOCK, _PORT_BLOCK)]
    random.shuffle(starts)
    for start in starts:
        ports = [*range(start, start + count)]
        if all(map(_is_free, ports)):
            return ports
    raise LabError(f"no {count} free ports in a row between {_LOWEST_PORT} and {first_ephemeral}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def _write_conf(root: Path, conf: Mapping[str, Any]) -> None:
    for name in ("conf", "local", "logs", "meters"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "conf" / "storm.yaml").write_text(yaml.safe_dump(dict(conf)))


def save(layout: LabLayout) -> None:
    """Write the layout into its run directory, for other processes."""
    row = {
        "storm": layout.homes.storm,
        "zookeeper": layout.homes.zookeeper,
        "zookeeper_port": layout.zookeeper_port,
        "nimbus_port": layout.nimbus_port,
        "nodes": [[n.host, n.supervisor_id, n.ports, n.thrift_port] for n in layout.nodes],
        "agent_jar": layout.agent_jar,
        "worker_heap_mb": layout.worker_heap_mb,
        "conf": dict(layout.conf),
    }
    partial = layout.run_dir / "lab.partial"
    partial.write_text(json.dumps(row, indent=1, default=str))
    partial.rename(layout.run_dir / "lab.json")


def load(run_dir: Path) -> LabLayout:
    """Read the layout of a lab that another process has started.

    Returns
    -------
    LabLayout
        What `save` wrote.

    Raises
    ------
    LabError
        When no lab is there.
    """
    try:
        row = json.loads((run_dir / "lab.json").read_text())
    except FileNotFoundError as error:
        raise LabError(f"no lab in {run_dir}: start one with `python -m deploy lab up`") from error
    nodes = (
        LabNode(host, supervisor_id, tuple(ports), thrift_port, run_dir / host)
        for host, supervisor_id, ports, thrift_port in row["nodes"]
    )
    return LabLayout(
        run_dir=run_dir,
        homes=Homes(Path(row["storm"]), Path(row["zookeeper"])),
        zookeeper_port=row["zookeeper_port"],
        nimbus_port=row["nimbus_port"],
        nodes=tuple(nodes),
        agent_jar=Path(row["agent_jar"]) if row["agent_jar"] else None,
        worker_heap_mb=row["worker_heap_mb"],
        conf=row["conf"],
    )
