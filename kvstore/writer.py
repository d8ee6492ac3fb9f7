"""Writes the local plan of a node: one writer, every change on the disk and in an envelope."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from kvstore.env import Env
from kvstore.envelope import Envelope, pack, unpack
from kvstore.errors import EnvelopeError, FormatError, StoreError
from kvstore.foreign import refuse_foreign

_CHECK_EVERY_S = 1.0
# Damaged files that are kept, for who looks into it; their names end in their time.
_KEPT_BAD = 3


class PlanWriter:
    """The one writer of a value that the other processes of the node read.

    An envelope's version is the time of its change in Unix milliseconds, or one more than the last.
    So it rises even if the folder was lost or the last envelope cannot be read. A `StoreError` if
    the environment cannot be opened, or if another process has it open for writing.
    """

    def __init__(
        self,
        path: Path,
        key: bytes,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._key = key
        self._wall_ms = wall_ms
        self._checked_s = time.monotonic()
        self.problem: str | None = None
        self._lock = _locked(path)
        try:
            self._env = self._open(path)
            self.last = self._load()
        except StoreError:
            self._lock.close()
            raise

    def _open(self, path: Path) -> Env:
        try:
            return Env(path, writable=True)
        except FormatError as error:
            return self._begin_again(path, error)

    def _begin_again(self, path: Path, error: FormatError) -> Env:
        # Renamed, never truncated: a process that has it mapped would die of SIGBUS.
        aside = path / f"data.mdb.bad-{self._wall_ms()}"
        with suppress(FileNotFoundError):
            (path / "data.mdb").rename(aside)
        for old in sorted(path.glob("data.mdb.bad-*"))[:-_KEPT_BAD]:
            old.unlink(missing_ok=True)
        self.problem = f"{error}; moved the old store to {aside.name} and began an empty one"
        return Env(path, writable=True)

    def _load(self) -> Envelope | None:
        """Read what was written last, None if there is nothing sound."""
        data = self._env.get(self._key)
        try:
            return None if data is None else unpack(data)
        except EnvelopeError as error:
            self.problem = f"{self._env.path}: {error}; began without it"
            return None

    def write(self, payload: bytes) -> int:
        """Write a payload, unless it is the last one; return the version that it has.

        A `StoreError` if it cannot be written; the last one stays.
        """
        if self.last is not None and self.last.payload == payload:
            return self.last.version
        return self._write(payload)

    def _write(self, payload: bytes) -> int:
        version = max(self._wall_ms(), 0 if self.last is None else self.last.version + 1)
        data = pack(version, payload)
        try:
            self._env.put(self._key, data)
        except FormatError as error:
            self._env.close()
            self._env = self._begin_again(self._env.path, error)
            self._env.put(self._key, data)
        self.last = Envelope(version, payload)
        return version

    def check_readers(self) -> None:
        """Free what dead readers hold, at most once a second; call it in every turn of a loop.

        If the environment is damaged, what was written last is written to a new one.
        """
        now_s = time.monotonic()
        if now_s - self._checked_s >= _CHECK_EVERY_S:
            self._checked_s = now_s
            try:
                self._env.check_readers()
            except FormatError:
                if self.last is not None:
                    self._write(self.last.payload)

    def close(self) -> None:
        self._env.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _locked(path: Path) -> IO[str]:
    """Take the folder for this process: LMDB itself would let two writers take turns."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        refuse_foreign(path)
        lock = (path / "writer.lock").open("w")
    except OSError as error:
        raise StoreError(f"cannot open the store {path}: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise StoreError(f"another process writes the store {path}; stop it first") from error
    return lock
