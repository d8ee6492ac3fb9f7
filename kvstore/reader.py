"""Reads the newest sound value of a store that another process writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kvstore.env import Env, Files, OwnedFiles
from kvstore.envelope import Envelope, unpack
from kvstore.errors import EnvelopeError, FormatError, StoreError


@dataclass(frozen=True, slots=True)
class Reading:
    """The last good envelope of a key, and what was wrong with a newer one if something was."""

    envelope: Envelope | None
    problem: str | None


class StoreReader:
    """A reader of one environment: a worker's or a supervisor's samples, or the plan.

    Transactions are as short as one `get`: a reader that stays in one pins the writer's pages. A
    `StoreError` if it cannot be opened. With `owned`, files of another user, nothing else is.
    """

    def __init__(self, path: Path, owned: OwnedFiles | None = None) -> None:
        self._path = path
        self._files = files = owned or Files(path)
        self._env: Env | None = None
        self._problem: str | None = None
        self._good: dict[bytes, Envelope] = {}
        if isinstance(files, OwnedFiles):
            return
        try:
            self._env = Env(path, writable=False)
        except StoreError:
            if not files.there():
                raise

    def read(self, key: bytes) -> Reading:
        """Read the newest value of a key, be it in the environment or in a file.

        If it is damaged, older than the last one read or gone, the last good one is given with the
        problem. A `StoreError` if the store itself cannot be read.
        """
        newest, problem = self._newest(key)
        good = self._good.get(key)
        if newest is None:
            gone = None if good is None else f"{self._at(key)}: is gone"
            return Reading(good, problem or gone)
        if good is not None and newest.version < good.version:
            late = f"{self._at(key)}: {newest.version} came after {good.version}"
            return Reading(good, problem or late)
        self._good[key] = newest
        return Reading(newest, None)

    def _newest(self, key: bytes) -> tuple[Envelope | None, str | None]:
        """Return the newest sound envelope, and what was wrong with another one."""
        newest, problem = None, self._problem
        # A JVM that can no longer use its environment goes on in files.
        for get in (self._files.get, self._of_env):
            try:
                data = get(key)
                found = None if data is None else unpack(data)
            except EnvelopeError as error:
                problem = f"{self._at(key)}: {error}"
            except FormatError as error:
                problem = self._problem = str(error)
                self.close()
            else:
                newest = max(newest, found, key=_version)
        return newest, problem

    def _of_env(self, key: bytes) -> bytes | None:
        return None if self._env is None else self._env.get(key)

    def _at(self, key: bytes) -> str:
        return f"{self._path}, key {key.decode()}"

    def check_readers(self) -> None:
        """Free what dead readers of this environment hold; open it again if it is whole again."""
        if self._env is None:
            self._reopen()
            return
        try:
            self._env.check_readers()
        except FormatError as error:
            self._problem = str(error)
            self.close()

    def _reopen(self) -> None:
        if self._problem is None:
            return  # there are only files
        try:
            self._env = Env(self._path, writable=False)
        except StoreError:
            return  # every reading has the reason
        self._problem = None

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None


def _version(envelope: Envelope | None) -> int:
    return -1 if envelope is None else envelope.version
