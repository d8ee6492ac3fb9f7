"""Finds the stores of this node's JVMs and reads their reports."""

from __future__ import annotations

import math
import os
import pwd
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
from msgspec import UNSET

from kvstore.env import Files, OwnedFiles
from kvstore.errors import StoreError
from kvstore.foreign import refuse_foreign
from kvstore.logs import log
from kvstore.reader import StoreReader
from migration import WireError
from migration.model import Slot, SupervisorAck, WorkerAck, WorkerLoad
from migration.wire import ACK_KEY, LOAD_KEY, USER_FOLDERS, decode

# JVMs refresh their ack every 2 s. One without a report for this time stands still or has ended, or
# another process has its id. The clock of this process counts: that of the node may be set.
SILENT_AFTER_S = 60.0
# An environment in the making is no news; files are whole from the first.
_YOUNG_S = 2.0

_ACK_OF_USER = r"([0-9]{1,5}-[0-9]{1,7})\.ack\.bin"
# A user may fill his folder.
_MOST_OF_USER = 256
# One that ends, and the one that comes after it.
_JVMS_OF_SLOT = 2


Sample = TypeVar("Sample", SupervisorAck, WorkerAck, WorkerLoad)


@dataclass(frozen=True, slots=True)
class Samples:
    """The newest acks and loads of the JVMs of the node."""

    workers: tuple[WorkerAck, ...] = ()
    loads: tuple[WorkerLoad, ...] = ()
    supervisor: SupervisorAck | None = None
    # Where a worker's process is there and has not reported for long, and none came after it.
    silent: tuple[Slot, ...] = ()

    @property
    def node(self) -> str | None:
        """The supervisor's id, as the supervisor or else a worker knows it."""
        if self.supervisor is not None:
            return self.supervisor.supervisor
        return self.workers[0].slot.supervisor if self.workers else None

    @property
    def topologies(self) -> frozenset[str] | None:
        """The topologies of this node's slots; None while no supervisor reports them."""
        if self.supervisor is None:
            return None
        slots = {slot.topology for slot in self.supervisor.slots}
        return frozenset(slots.union(worker.topology for worker in self.workers))

    @property
    def users(self) -> Mapping[str, str] | None:
        """The user of each topology whose workers have one of their own; as above."""
        if self.supervisor is None:
            return None
        return {
            slot.topology: slot.user for slot in self.supervisor.slots if slot.user is not UNSET
        }


class SampleStores:
    """The open sample stores of a node, below ``nstorm.store.dir``.

    A process id shows whether a JVM runs, so agent and JVMs have to share a namespace of them.
    """

    def __init__(self, store_dir: Path, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        # When each store was opened, and the version of its ack with when that was first seen.
        self._opened_s: dict[Path, float] = {}
        self._changed: dict[Path, tuple[int, float]] = {}
        self._folders = (store_dir / "w", store_dir / "s")
        self._users = store_dir / USER_FOLDERS
        self._open: dict[Path, StoreReader] = {}
        self._decoded: dict[tuple[Path, bytes], tuple[int, object]] = {}
        self._logged: dict[Path, set[str]] = {}

    def discover(self) -> None:
        """Open the stores that are new, and drop those whose process is gone."""
        found = {path for folder in self._folders for path in self._stores(folder)}
        found |= {path for folder in self._folders_of_users() for path in _stores_of_user(folder)}
        for path in {*self._open, *self._logged} - found - {*self._folders, self._users}:
            self._forget(path)
        for path in sorted(found):
            if not psutil.pid_exists(_pid(path)):
                self._forget(path)
                if self._is_of_user(path):
                    _unlink(path)
                else:
                    # A killed JVM also leaves the native library there that it had unpacked. That
                    # of another user stays, and a link is none of ours.
                    shutil.rmtree(path, ignore_errors=True)
            elif path not in self._open:
                self._try_open(path)

    def _stores(self, folder: Path) -> list[Path]:
        # Before anything in it is deleted: a link may lead out of the store.
        pattern = r"[0-9]+-[0-9]+" if folder.name == "w" else r"[0-9]+"
        return [path for path in self._within(folder) if re.fullmatch(pattern, path.name)]

    def _within(self, folder: Path) -> list[Path]:
        """Name what is in a folder of the store; nothing where others may have put it there."""
        try:
            refuse_foreign(folder, self._owners())
            return list(folder.iterdir())
        except FileNotFoundError:
            return []
        except (StoreError, OSError) as error:
            self._report(folder, str(error))
            return []

    def _is_of_user(self, path: Path) -> bool:
        return path.parent.parent == self._users

    def _folders_of_users(self) -> list[Path]:
        return [folder for folder in self._within(self._users) if folder.is_dir()]

    def _try_open(self, path: Path) -> None:
        try:
            if self._is_of_user(path):
                self._open[path] = StoreReader(path, OwnedFiles(path, _owner_of_user(path)))
                self._opened_s[path] = self._now_s()
                return
            refuse_foreign(path, self._owners())
            if not _is_made(path):
                return
            _refuse_another_user(path)
            self._open[path] = StoreReader(path)
            self._opened_s[path] = self._now_s()
        except (StoreError, OSError, psutil.Error) as error:  # it may go at any time
            self._report(path, str(error))

    def _owners(self) -> frozenset[int]:
        """Name the users whose JVMs are here: Storm's, who has the folder, or its parent."""
        store = self._folders[0].parent
        return frozenset({os.geteuid(), store.stat().st_uid, store.parent.stat().st_uid})

    def read(self, *, with_loads: bool = True) -> Samples:
        """Read all open stores; what is damaged is reported, and the last good value stands.

        Loads are large and seldom wanted: acks are looked at twenty times a second.
        """
        found: dict[str, tuple[Path, WorkerAck]] = {}  # by port
        silent: dict[str, Slot] = {}
        supervisor: SupervisorAck | None = None
        # Of a JVM that dies and its successor the later word counts.
        paths = sorted(self._open, key=lambda path: (self._opened_s[path], path))
        for path in paths:
            if path.parent == self._folders[1]:
                supervisor_ack = self._read(path, ACK_KEY, SupervisorAck)
                supervisor = _newer(supervisor, None if self._is_silent(path) else supervisor_ack)
        for path in self._worth_reading(paths, supervisor):
            ack = self._read(path, ACK_KEY, WorkerAck)
            if ack is None or not self._may_speak(path, ack, supervisor):
                continue
            port = path.name.partition("-")[0]
            if self._is_silent(path):
                silent[port] = ack.slot
            elif port not in found or not self._precedes(path, ack, *found[port]):
                found[port] = path, ack
        if supervisor is not None:
            found = self._of_node(supervisor.supervisor, found)
        loads = [self._read(path, LOAD_KEY, WorkerLoad) for path, _ in found.values() if with_loads]
        slots = {ack.slot for _, ack in found.values()}
        return Samples(
            tuple(ack for _, ack in found.values()),
            tuple(load for load in loads if load is not None and load.slot in slots),
            supervisor,
            tuple(sorted(slot for port, slot in silent.items() if port not in found)),
        )

    def _worth_reading(self, paths: list[Path], supervisor: SupervisorAck | None) -> list[Path]:
        """Take the stores of workers; of users only those whom the supervisor has started there.

        Of each of these the two that came last. A user may fill his folder, and reading takes long.
        """
        slots = supervisor.slots if supervisor is not None else ()
        started = {(slot.user, str(slot.port)) for slot in slots}
        of_slots: Counter[tuple[str, str]] = Counter()
        found = []
        for path in reversed(paths):
            if self._is_of_user(path):
                who = path.parent.name, path.name.partition("-")[0]
                of_slots[who] += 1
                if supervisor is not None and who not in started:
                    self._report(path, f"no worker of {who[0]} was started at port {who[1]}")
                if who not in started or of_slots[who] > _JVMS_OF_SLOT:
                    continue
            if path.parent != self._folders[1]:
                found.append(path)
        return found[::-1]

    def _may_speak(self, path: Path, ack: WorkerAck, supervisor: SupervisorAck | None) -> bool:
        """Return whether the supervisor has started a worker of this user and topology there."""
        if supervisor is None or not self._is_of_user(path):
            return True
        who = path.parent.name, ack.topology
        for slot in supervisor.slots:
            if slot.port == ack.slot.port and (slot.user, slot.topology) == who:
                return True
        self._report(path, f"{who[0]} speaks for {who[1]} at {ack.slot}, which is not theirs")
        return False

    def _of_node(
        self, supervisor: str, found: dict[str, tuple[Path, WorkerAck]]
    ) -> dict[str, tuple[Path, WorkerAck]]:
        """Leave out workers that speak for another node than that of the supervisor."""
        of_node = {}
        for port, (path, ack) in found.items():
            if ack.slot.supervisor == supervisor:
                of_node[port] = path, ack
            else:
                self._report(
                    path, f"the worker speaks for {ack.slot}, and the node is {supervisor}"
                )
        return of_node

    def _precedes(self, path: Path, ack: WorkerAck, other: Path, held: WorkerAck) -> bool:
        """Return whether a JVM was there before another one of its slot.

        Only for two that were met together, as at a start, their own clock decides.
        """
        return self._opened_s[path] == self._opened_s[other] and ack.time_ms < held.time_ms

    def _is_silent(self, path: Path) -> bool:
        _, since_s = self._changed.get(path, (0, math.inf))
        return self._now_s() - since_s >= SILENT_AFTER_S

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
        if key == ACK_KEY and self._changed.get(path, (-1, 0.0))[0] != reading.envelope.version:
            self._changed[path] = reading.envelope.version, self._now_s()
        # Most reads find nothing new, and JSON costs much more than a read.
        version, held = self._decoded.get((path, key), (None, None))
        if version != reading.envelope.version:
            try:
                found = decode(kind, reading.envelope.payload)
                _refuse_another_slot(found, path)
                held = found
            except WireError as error:
                self._report(path, str(error))
            self._decoded[path, key] = (reading.envelope.version, held)
        return held if isinstance(held, kind) else None

    def _report(self, path: Path, problem: str) -> None:
        """Log it once, not twenty times a second."""
        logged = self._logged.setdefault(path, set())
        if problem not in logged:
            logged.add(problem)
            log.warning("sample_unreadable", store=str(path), reason=problem)

    def _forget(self, path: Path) -> None:
        reader = self._open.pop(path, None)
        if reader is not None:
            reader.close()
        self._logged.pop(path, None)
        self._opened_s.pop(path, None)
        self._changed.pop(path, None)
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


def _stores_of_user(folder: Path) -> list[Path]:
    """Name what the workers of a user write, without what the name of each file ends in."""
    try:
        names = (re.fullmatch(_ACK_OF_USER, file.name) for file in folder.iterdir())
        return [folder / name[1] for name in names if name][:_MOST_OF_USER]
    except OSError:
        return []  # `wrong_rights` has the reason


def _unlink(path: Path) -> None:
    for end in ("ack.bin", "ack.tmp", "load.bin", "load.tmp"):
        with suppress(OSError):
            path.with_name(f"{path.name}.{end}").unlink()


def _owner_of_user(path: Path) -> int:
    """Find the user that the folder of a store is named after, who must run its process."""
    try:
        owner = pwd.getpwnam(path.parent.name).pw_uid
    except KeyError as error:
        raise StoreError(f"{path}: there is no user {path.parent.name}") from error
    user = psutil.Process(_pid(path)).uids().effective
    if owner != user:
        raise StoreError(f"{path} is of user {owner}, and its process of user {user}")
    return owner


def _is_made(path: Path) -> bool:
    # What is of a later time was made before the clock was set back.
    return Files(path).there() or abs(time.time() - path.stat().st_mtime) > _YOUNG_S


def _refuse_another_user(path: Path) -> None:
    """Refuse a store in the name of a process that another user runs."""
    owner, user = path.stat().st_uid, psutil.Process(_pid(path)).uids().effective
    if owner != user:
        raise StoreError(f"{path} belongs to user {owner}, and its process to user {user}")


def _refuse_another_slot(found: Sample, path: Path) -> None:
    """Refuse what a worker reports of another slot than that of its store."""
    if isinstance(found, SupervisorAck):
        return
    port = path.name.partition("-")[0]
    if found.slot.port != int(port):
        raise WireError("slot", f"the worker at port {port} speaks for {found.slot}")


def _pid(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def _newer(one: SupervisorAck | None, other: SupervisorAck | None) -> SupervisorAck | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda ack: ack.time_ms)
