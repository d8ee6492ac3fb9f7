"""Starts and ends the daemons of the lab."""

import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from deploy.lab import LabError
from deploy.lab.client import NimbusClient
from deploy.lab.layout import LabLayout, LabNode, save
from deploy.lab.meters import read_meters
from deploy.lab.network import remove, token
from deploy.lab.processes import Child, Processes, start_ticks
from kvstore.ensemble import Ensemble
from migration import storm_yaml
from migration.access import ensemble

# Two cores shared with a build or another lab need minutes for what takes half of one alone.
UP_LIMIT_S = 240.0
# A limit is for a machine whose load is this many times its cores. It grows with the load, up to
# `MOST_TIMES`: with a load of 60 on two cores all takes some ten times as long.
USUAL_LOAD, MOST_TIMES = 4.0, 6.0
# After this time it prints what it waits for, and again each time it has waited as long again.
SAY_AFTER_S = 20.0


class Daemons:
    """ZooKeeper, Nimbus, the supervisors, and nstorm's agents.

    As a context manager it is up inside the block and gone after it, whatever ends the block.
    """

    def __init__(self, layout: LabLayout) -> None:
        self.layout = layout
        self._processes = Processes(layout.run_dir)
        self._client = NimbusClient(
            layout.client_command(),
            layout.run_dir / "client.log",
            {**os.environ, "STORM_CONF_DIR": str(layout.nimbus_dir / "conf")},
        )
        self._term_before: Any = None
        self.say: Callable[[str], None] = lambda text: None  # takes what it waits for

    def __enter__(self) -> Self:
        """Bring the cluster up, as one that ends with this process."""
        if threading.current_thread() is threading.main_thread():
            self._term_before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            self.up(owned=True)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything."""
        with _uninterrupted():
            self.down()
        if self._term_before is not None:
            signal.signal(signal.SIGTERM, self._term_before)

    @property
    def zookeeper(self) -> str:
        """ZooKeeper's address."""
        return f"{self.layout.zookeeper_host}:{self.layout.zookeeper_port}"

    @property
    def storm_zookeeper(self) -> str:
        """ZooKeeper's address with Storm's root there."""
        return f"{self.zookeeper}{self.layout.options.zookeeper_root}"

    @property
    def ensemble(self) -> Ensemble:
        """ZooKeeper as the first Nimbus' configuration has it, with the credentials there."""
        return ensemble(storm_yaml.read(self.layout.storm_yaml))

    @property
    def nodes(self) -> tuple[LabNode, ...]:
        """The supervisors."""
        return self.layout.nodes

    def up(self, owned: bool = False) -> None:
        """Start the daemons and wait until every supervisor is registered.

        Parameters
        ----------
        owned : bool
            Whether the cluster should end with this process; `sweep` ends it if this process
            could not.
        """
        self.prepare(owned)
        layout = self.layout
        if layout.options.network is not None:
            layout.options.network.create(layout.options.ensemble_host)
        if layout.options.ensemble_host is None:
            self.start_zookeeper()
        if layout.options.kafka_port:
            self.start_daemon("kafka")
        nimbuses = [nimbus.name for nimbus in layout.nimbuses]
        for name in (*nimbuses, *(node.host for node in self.nodes)):
            self.start_daemon(name)
        port = layout.nimbus_port
        self._wait_start(
            "Nimbus listens", lambda: all(_listens(n.host, port) for n in layout.nimbuses)
        )
        self._wait_start("supervisors register", self._learn_supervisor_ids)
        if kafka := layout.options.kafka_port:
            host = layout.zookeeper_host
            self._wait_start("Kafka listens", lambda: _listens(host, kafka))

    def prepare(self, owned: bool = False) -> None:
        """Write the run directory afresh."""
        run_dir = self.layout.run_dir
        shutil.rmtree(run_dir, ignore_errors=True)
        run_dir.mkdir(parents=True)
        self.layout.write()
        save(self.layout)
        if self.layout.kdc is not None:
            # Of this process as well, whose sessions log in as the daemons do.
            os.environ["KRB5_CONFIG"] = str(self.layout.kdc.conf)
        if owned:
            own(run_dir)

    def start_zookeeper(self) -> None:
        """Start ZooKeeper, and first what it asks, and wait until it listens."""
        if self.layout.kdc is not None:
            self.start_daemon("kdc")
        self.start_daemon("zookeeper")
        host, port = self.layout.zookeeper_host, self.layout.zookeeper_port
        self._wait_start("ZooKeeper listens", lambda: _listens(host, port))

    def release(self) -> None:
        """Let the cluster outlive the process that owns it."""
        (self.layout.run_dir / "owner").unlink()

    def down(self) -> None:
        """End every process of the lab and remove its state; logs and ledgers stay."""
        self._client.close()
        self._processes.stop()
        clear(self.layout.run_dir)

    def start_daemon(self, name: str) -> Child:
        """Start a daemon that does not run.

        Parameters
        ----------
        name : str
            "zookeeper", "kdc", "kafka", "nimbus", "nimbus-2", or the host of a supervisor.
        """
        layout = self.layout
        if name == "kdc" and layout.kdc is not None:
            log = layout.kdc.folder / "kdc.out"
            return self._processes.start(name, layout.kdc.command, log, layout.kdc.env)
        if name == "zookeeper":
            log = layout.run_dir / "zookeeper" / "zookeeper.out"
            return self._processes.start(name, layout.zookeeper_command(), log)
        if name == "kafka":
            log = layout.kafka_dir / "kafka.out"
            return self._processes.start(name, layout.kafka_command(), log)
        nimbus = next((n for n in layout.nimbuses if n.name == name), None)
        if nimbus is not None:
            root, command = nimbus.root, layout.nimbus_command(nimbus)
        else:
            node = self.node(name)
            root, command = node.root, layout.supervisor_command(node)
        env = {"STORM_CONF_DIR": str(root / "conf")}
        if layout.options.java_home is not None:
            env["JAVA_HOME"] = layout.options.java_home  # of the workers
        return self._processes.start(name, command, root / "logs" / "daemon.out", env)

    def kill_daemon(self, name: str, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a daemon or an agent.

        Parameters
        ----------
        name : str
            As for `start_daemon`, or "agent-<host>".
        sig : signal.Signals
            The signal; SIGKILL waits for the end.
        """
        self._processes.kill(name, sig)

    def daemon(self, name: str) -> Child | None:
        """Find a daemon or an agent."""
        return self._processes.alive(name)

    def start_agents(self) -> None:
        """Start nstorm's agent on every node."""
        for node in self.nodes:
            self.start_agent(node)

    def start_agent(self, node: LabNode) -> Child:
        """Start nstorm's agent on a node."""
        conf = str(node.conf_dir / "storm.yaml")
        inside = self.layout.inside(node.host)
        command = [*inside, sys.executable, "-m", "agent", "--conf", conf]
        return self._processes.start(f"agent-{node.host}", command, node.log_dir / "agent.log")

    def start_controller(self, mode: str, name: str = "controller") -> Child:
        """Start nstorm's controller on the host of Nimbus."""
        root = self.layout.nimbus_dir
        conf = str(root / "conf" / "storm.yaml")
        # The configuration last: by it `Processes.living` finds what was started but not recorded.
        command = [sys.executable, "-m", "controller.cli", "controller", "--mode", mode]
        log = root / "logs" / f"{name}.log"
        return self._processes.start(name, [*command, "--conf", conf], log)

    def stop_controller(self) -> None:
        """End nstorm's controller, if it runs."""
        if self.daemon("controller") is not None:
            self.kill_daemon("controller", signal.SIGTERM)
            self.wait_until("the controller ends", lambda: self.daemon("controller") is None)

    def node(self, key: str) -> LabNode:
        """Find a node.

        Parameters
        ----------
        key : str
            Its host or its supervisor's id.
        """
        for node in self.nodes:
            if key in (node.host, node.supervisor_id):
                return node
        raise LabError(f"no node {key!r} in the lab: it has {[n.host for n in self.nodes]}")

    def storm_meters(self) -> Counter[str]:
        """Read Storm's own meters, summed over the daemons and their restarts.

        Returns
        -------
        Counter[str]
            Count by name; up to two seconds old.
        """
        return read_meters(self.layout.meter_dirs)

    def storm_log(self, key: str) -> str:
        """Read a log.

        Parameters
        ----------
        key : str
            "nimbus", "nimbus-2", "zookeeper", a host for its supervisor, or a slot for its workers.
        """
        run_dir = self.layout.run_dir
        if key in ("zookeeper", *(nimbus.name for nimbus in self.layout.nimbuses)):
            files = [*(run_dir / key).glob("logs/*.log"), *(run_dir / key).glob("*.out")]
        elif ":" in key:
            supervisor_id, _, port = key.rpartition(":")
            artifacts = self.node(supervisor_id).log_dir / "workers-artifacts"
            files = sorted(artifacts.glob(f"*/{port}/worker.log*"))
        else:
            files = [self.node(key).log_dir / "supervisor.log"]
        return "".join(file.read_text(errors="replace") for file in files)

    def _wait_start(self, what: str, done: Callable[[], bool]) -> None:
        """Wait as `wait_until`, but not for a daemon that has died."""

        def done_or_dead() -> bool:
            for child in self._processes.recorded():
                if start_ticks(child.pid) != child.start_ticks:
                    logs = self.layout.run_dir
                    raise LabError(f"{child.name} ended while it started: see its log in {logs}")
            return done()

        self.wait_until(what, done_or_dead)

    def _learn_supervisor_ids(self) -> bool:
        rows = self._client.ask("cluster")["supervisors"]
        ids = {row["host"]: row["id"] for row in rows}
        if any(node.host not in ids for node in self.nodes):
            return False
        nodes = tuple(replace(node, supervisor_id=ids[node.host]) for node in self.nodes)
        self.layout = replace(self.layout, nodes=nodes)
        save(self.layout)
        return True

    def wait_until(
        self,
        what: str,
        done: Callable[[], bool],
        limit_s: float = UP_LIMIT_S,
        missing: Callable[[], str] = lambda: "",
    ) -> None:
        """Wait for something in the cluster to come true, and print it if it takes long.

        Parameters
        ----------
        limit_s : float
            When to give up, where the machine is not busy.

        Raises
        ------
        LabError
            When it did not come.
        """
        began_s, say_after_s = time.monotonic(), SAY_AFTER_S
        while not done():
            waited_s, most_s = time.monotonic() - began_s, patience_s(limit_s)
            if waited_s <= min(most_s, say_after_s):
                time.sleep(0.3)
                continue
            dead = [c.name for c in self._processes.recorded() if start_ticks(c.pid) is None]
            left = missing()
            hint = f" ({left})" if left else ""
            hint += f"; not running: {dead}" if dead else ""
            if waited_s > most_s:
                message = f"waited {waited_s:.0f} s until {what}, and it is not so{hint}"
                raise LabError(f"{message}: see the logs in {self.layout.run_dir}")
            say_after_s *= 2
            self.say(
                f"waiting until {what}{hint}: {waited_s:.0f} s so far, at most {most_s:.0f} s at a "
                f"load of {os.getloadavg()[0]:.0f}"
            )


def patience_s(limit_s: float) -> float:
    """Give how long to wait at the machine's load for what takes at most `limit_s` usually."""
    load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return limit_s * min(max(load / USUAL_LOAD, 1.0), MOST_TIMES)


def own(run_dir: Path) -> None:
    """Note in a run directory that what is in it ends with this process."""
    partial = run_dir / "owner.partial"
    partial.write_text(f"{os.getpid()} {start_ticks(os.getpid())}")
    partial.rename(run_dir / "owner")


def clear(run_dir: Path) -> None:
    """Remove the network and the state of a lab whose processes have ended, record or not."""
    remove(token(run_dir))
    daemons = [conf.parent.parent for conf in run_dir.glob("*/conf/storm.yaml")]
    states = [run_dir / "zookeeper" / "data", run_dir / "tmp", *(d / "local" for d in daemons)]
    for state in states:
        shutil.rmtree(state, ignore_errors=True)
    # The owner last: as long as it is there, `sweep` finds what is left.
    for name in ("lab.json", "owner"):
        (run_dir / name).unlink(missing_ok=True)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Make SIGTERM end the block as Ctrl-C does."""
    raise KeyboardInterrupt


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a second Ctrl-C wait until everything is down; it takes seconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
