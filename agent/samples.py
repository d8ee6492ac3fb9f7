"""Finds the stores of this node's JVMs and reads what they say of themselves."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
import structlog

from kvstore.env import Files
from kvstore.errors import StoreError
from kvstore.reader import StoreReader
from migration import WireError
from migration.model import SupervisorAck, WorkerAck, WorkerLoad
from migration.wire import ACK_KEY, LOAD_KEY, decode

# JVMs refresh their ack every 2 s. Storm takes one that is silent for 30 s for dead; what says
# nothing for twice that is stopped for good, or its process id is another's by now.
SILENT_AFTER_MS = 60_000
# An environment in the making is no news; files are whole from the first.
_YOUNG_S = 2.0

log = structlog.get_logger()

Sample = TypeVar("Sample", SupervisorAck, WorkerAck, WorkerLoad)


@dataclass(frozen=True, slots=True)
class Samples:
    """The newest acks and loads of the JVMs of the node."""

    workers: tuple[WorkerAck, ...] = ()
    loads: tuple[WorkerLoad, ...] = ()
    supervisor: SupervisorAck | None = None

    @property
    def node(self) -> str | None:
        """The supervisor's id, as the supervisor or else a worker knows it."""
        if self.supervisor is not None:
            return self.supervisor.supervisor
        return self.workers[0].slot.supervisor if self.workers else None

    @property
    def topologies(self) -> frozenset[str] | None:
        """The topologies of this node's slots; None while no supervisor tells."""
        if self.supervisor is None:
            return None
        slots = {slot.topology for slot in self.supervisor.slots}
        return frozenset(slots.union(worker.topology for worker in self.workers))


class SampleStores:
    """The open sample stores of a node, below ``nstorm.store.dir``.

    Process ids tell the dead from the living, so agent and JVMs have to share a namespace of them.
    """

    def __init__(self, store_dir: Path) -> None:
        self._folders = (store_dir / "w", store_dir / "s")
        self._open: dict[Path, StoreReader] = {}
        self._decoded: dict[tuple[Path, bytes], tuple[int, object]] = {}
        self._said: dict[Path, set[str]] = {}

    def discover(self) -> None:
        """Open the stores that are new, and drop those whose process is gone."""
        found = {path for folder in self._folders for path in _stores(folder)}
        for path in set(self._open) - found:
            self._forget(path)
        for path in sorted(found):
            if not psutil.pid_exists(_pid(path)):
                self._forget(path)
                # A killed JVM also leaves the native library there that it had unpacked.
                shutil.rmtree(path, ignore_errors=True)
            elif path not in self._open and _is_made(path):
                self._try_open(path)

    def _try_open(self, path: Path) -> None:
        try:
            self._open[path] = StoreReader(path)
        except StoreError as error:
            self._report(path, str(error))

    def read(self, *, with_loads: bool = True) -> Samples:
        """Read all open stores; what is damaged is reported, and the last good value stands.

        Loads are large and seldom wanted: acks are looked at twenty times a second.
        """
        workers, loads = [], []
        supervisor: SupervisorAck | None = None
        for path in sorted(self._open):
            if path.parent.name == "s":
                supervisor = _newer(supervisor, self._read(path, ACK_KEY, SupervisorAck))
                continue
            ack = self._read(path, ACK_KEY, WorkerAck)
            if ack is not None and time.time() * 1000 - ack.time_ms < SILENT_AFTER_MS:
                workers.append(ack)
                load = self._read(path, LOAD_KEY, WorkerLoad) if with_loads else None
                loads += [] if load is None else [load]
        return Samples(tuple(workers), tuple(loads), supervisor)

    def _read(self, path: Path, key: bytes, kind: type[Sample]) -> Sample | None:
        try:
            reading = self._open[path].read(key)
        except StoreError as error:
            self._report(path, str(error))
            return None
        if reading.problem is not None:
            self._report(path, reading.problem)
        if reading.envelope is None:
            return None
        # Most looks find nothing new, and JSON is dear beside a look.
        version, held = self._decoded.get((path, key), (None, None))
        if version != reading.envelope.version:
            try:
                held = decode(kind, reading.envelope.payload)
            except WireError as error:
                self._report(path, str(error))
            self._decoded[path, key] = (reading.envelope.version, held)
        return held if isinstance(held, kind) else None

    def _report(self, path: Path, problem: str) -> None:
        """Say it once, not twenty times a second."""
        said = self._said.setdefault(path, set())
        if problem not in said:
            said.add(problem)
            log.warning("sample_unreadable", store=str(path), reason=problem)

    def _forget(self, path: Path) -> None:
        reader = self._open.pop(path, None)
        if reader is not None:
            reader.close()
        self._said.pop(path, None)
        for key in (ACK_KEY, LOAD_KEY):
            self._decoded.pop((path, key), None)

    def check_readers(self) -> None:
        """Free what dead readers of the stores hold."""
        for path, reader in self._open.items():
            try:
                reader.check_readers()
            except StoreError as error:
                self._report(path, str(error))

    def close(self) -> None:
        for path in list(self._open):
            self._forget(path)


def _stores(folder: Path) -> list[Path]:
    pattern = r"[0-9]+-[0-9]+" if folder.name == "w" else r"[0-9]+"
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if re.fullmatch(pattern, path.name)]


def _is_made(path: Path) -> bool:
    return Files(path).there() or time.time() - path.stat().st_mtime > _YOUNG_S


def _pid(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def _newer(one: SupervisorAck | None, other: SupervisorAck | None) -> SupervisorAck | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda ack: ack.time_ms)
