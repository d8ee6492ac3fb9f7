"""Starts the lab's processes, remembers them in the run directory, and ends every one of them."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from deploy.lab import LabError

STOP_LIMIT_S = 20.0
# As `python -m` names them.
_OURS = frozenset({"agent", "controller.cli"})


@dataclass(frozen=True, slots=True)
class Child:
    """A process; its start time distinguishes it from a later one with the same id.

    Attributes
    ----------
    name : str
        What it runs: "zookeeper", "nimbus", a host, "agent-" and a host.
    start_ticks : int
        When it started, in clock ticks since boot.
    """

    name: str
    pid: int
    start_ticks: int


def start_ticks(pid: int) -> int | None:
    """Find when a process started.

    Returns
    -------
    int or None
        Clock ticks since boot, or None when there is no such process or it has ended already.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name may hold spaces and brackets; the fields are counted after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


class Processes:
    """The processes of one run directory.

    Parameters
    ----------
    run_dir : Path
        The lab's directory; every process of the lab has it in an argument of its own.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._file = run_dir / "processes.json"
        self._popen: list[subprocess.Popen[bytes]] = []

    def start(
        self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> Child:
        """Start a process in a session of its own and remember it."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self._popen.append(popen)
        child = Child(name, popen.pid, start_ticks(popen.pid) or 0)
        self._write([*(c for c in self.recorded() if c.name != name), child])
        return child

    def recorded(self) -> list[Child]:
        """List what the run directory knows, living or not."""
        try:
            rows = json.loads(self._file.read_text())
        except FileNotFoundError:
            return []
        return [Child(**row) for row in rows]

    def alive(self, name: str) -> Child | None:
        """Find a recorded process that runs."""
        return next((c for c in self.recorded() if c.name == name and _runs(c)), None)

    def kill(self, name: str, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one recorded process; after SIGKILL wait for its end."""
        child = self.alive(name)
        if child is None:
            raise LabError(f"{name} does not run in {self._run_dir}")
        os.kill(child.pid, sig)
        if sig == signal.SIGKILL:
            self._reap(child.pid)

    def stop(self) -> None:
        """End every process of this run directory, whoever started it, workers included."""
        deadline = time.monotonic() + STOP_LIMIT_S
        quiet_scans = 0
        # A supervisor may be forking while we look: only the second empty scan in a row counts.
        while quiet_scans < 2:
            pids = list(self.living())
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            quiet_scans = 0 if pids else quiet_scans + 1
            if time.monotonic() > deadline:
                raise LabError(f"processes {pids} of {self._run_dir} do not end: kill -9 them")
            time.sleep(0.1)
        for popen in self._popen:
            popen.wait()
        self._popen.clear()
        self._file.unlink(missing_ok=True)

    def living(self) -> Iterator[int]:
        """Find the processes of this lab that run, daemons first."""
        recorded = {child.pid for child in self.recorded() if _runs(child)}
        yield from recorded
        # The others: workers, and what a start that was interrupted has not recorded.
        conf_dirs = f"{self._run_dir}/"
        for pid, command in _commands():
            ours = _OURS & set(command) and command[-1].startswith(conf_dirs)
            if pid not in recorded and (ours or self._is_java(command)):
                yield pid

    def java(self) -> Iterator[tuple[int, list[str]]]:
        """Find this lab's JVMs by the arguments that name its directory.

        Returns
        -------
        Iterator[tuple[int, list[str]]]
            Process id and command line.
        """
        return ((pid, command) for pid, command in _commands() if self._is_java(command))

    def _is_java(self, command: list[str]) -> bool:
        daemon, worker = f"-Dnstorm.lab={self._run_dir}", f"-Dstorm.local.dir={self._run_dir}/"
        return Path(command[0]).name == "java" and any(
            argument == daemon or argument.startswith(worker) for argument in command
        )

    def _reap(self, pid: int) -> None:
        for popen in self._popen:
            if popen.pid == pid:
                popen.wait()

    def _write(self, children: list[Child]) -> None:
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps([asdict(child) for child in children], indent=1))
        partial.rename(self._file)


def _commands() -> Iterator[tuple[int, list[str]]]:
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"]:
            yield process.pid, process.info["cmdline"]


def _runs(child: Child) -> bool:
    return start_ticks(child.pid) == child.start_ticks


def _signal(pid: int, sig: signal.Signals) -> None:
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        return
