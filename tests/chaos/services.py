"""A small service manager: what ends is started again, as by systemd, Storm's daemons too."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Self

from deploy.lab import LabError
from deploy.lab.cluster import Lab

RESTART_AFTER_S = 1.0
LOOK_EVERY_S = 0.2


def agent_of(host: str) -> str:
    """Give the name of a node's agent."""
    return f"agent-{host}"


class Services:
    """One agent a node and two controllers, and the daemons; all kept running inside the block."""

    def __init__(self, lab: Lab, mode: str) -> None:
        self._lab = lab
        self._start: dict[str, Callable[[], object]] = {
            agent_of(node.host): partial(lab.start_agent, node) for node in lab.nodes
        }
        for name in ("controller-1", "controller-2"):
            self._start[name] = partial(lab.start_controller, mode, name)
        self.ours = (*self._start,)
        self.daemons = ("zookeeper", "nimbus", *(node.host for node in lab.nodes))
        self._start |= {name: partial(lab.start_daemon, name) for name in self.daemons}
        self._kept_down: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tend, name="service-manager")
        self.restarts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        for name in self.ours:
            self._start[name]()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def keep_down(self, name: str) -> None:
        """Do not start a service again until `let_up`."""
        self._kept_down.add(name)

    def let_up(self, name: str) -> None:
        """Start a service again that was kept down."""
        self._kept_down.discard(name)

    def missing(self) -> list[str]:
        """Name the services that do not run."""
        return [name for name in self._start if self._lab.daemon(name) is None]

    def name_of(self, pid: int) -> str:
        """Find a service by its process id."""
        pids = {name: self._lab.daemon(name) for name in self._start}
        return next(name for name, child in pids.items() if child and child.pid == pid)

    def pid_of(self, name: str) -> int:
        """Give the process id of a service that runs."""
        child = self._lab.daemon(name)
        if child is None:
            raise LabError(f"{name} does not run")
        return child.pid

    def _tend(self) -> None:
        gone_at_s: dict[str, float] = {}
        while not self._ended.wait(LOOK_EVERY_S):
            missing = {name for name in self.missing() if name not in self._kept_down}
            now_s = time.monotonic()
            gone_at_s = {name: gone_at_s.get(name, now_s) for name in missing}
            for name, since_s in gone_at_s.items():
                if now_s - since_s >= RESTART_AFTER_S:
                    self.restarts[name] += 1
                    self._start[name]()
