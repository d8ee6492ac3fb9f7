"""Which executors live in a JVM, from its thread dump over HotSpot's attach socket."""

import os
import re
import signal
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Self

from deploy.lab.processes import start_ticks
from migration.model import ExecutorId

LIMIT_S = 10.0
_EXECUTOR = re.compile(r'^"Thread-\d+-.+-executor\[(\d+), (\d+)\]" ', re.MULTILINE)


def executors(dump: str) -> Counter[ExecutorId]:
    """Count the live copies of each executor; Storm's own one in each worker, [-1, -1], is none."""
    return Counter(ExecutorId(int(start), int(end)) for start, end in _EXECUTOR.findall(dump))


def catches_quit(status: str) -> bool:
    """Check in /proc/<pid>/status whether SIGQUIT is handled; a JVM that starts would die of it."""
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGQUIT - 1) & 1)


class Dumps:
    """Asks JVMs for thread dumps, and removes the sockets of those that died by SIGKILL."""

    def __init__(self) -> None:
        # With its start: hours later another process may have the id.
        self._asked: dict[int, int | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for pid, started in self._asked.items():
            if start_ticks(pid) != started:
                _socket_of(pid).unlink(missing_ok=True)

    def executors(self, pid: int) -> Counter[ExecutorId]:
        """Count the live executors of a JVM; none while it starts, or if it does not answer."""
        try:
            return executors(self._dump(pid))
        except OSError:  # it has ended, or stands still
            return Counter()

    def _dump(self, pid: int) -> str:
        self._open(pid)
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(LIMIT_S)
            stream.connect(str(_socket_of(pid)))
            # Version of the protocol, command, three arguments.
            stream.sendall(b"1\0threaddump\0\0\0\0")
            parts = []
            while part := stream.recv(1 << 16):
                parts.append(part)
        return b"".join(parts).decode(errors="replace")

    def _open(self, pid: int) -> None:
        """Make the JVM listen: it does so when it finds this file at a SIGQUIT."""
        if _socket_of(pid).exists() or not catches_quit(Path(f"/proc/{pid}/status").read_text()):
            return
        self._asked[pid] = start_ticks(pid)
        wish = Path(f"/tmp/.attach_pid{pid}")
        wish.touch()
        try:
            os.kill(pid, signal.SIGQUIT)
            deadline = time.monotonic() + LIMIT_S
            while not _socket_of(pid).exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            wish.unlink(missing_ok=True)


def _socket_of(pid: int) -> Path:
    # HotSpot's fixed place, whatever java.io.tmpdir is.
    return Path(f"/tmp/.java_pid{pid}")
