"""Reads the newest sound value of a store that another process writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kvstore.env import Env, Files
from kvstore.envelope import Envelope, unpack
from kvstore.errors import EnvelopeError


@dataclass(frozen=True, slots=True)
class Reading:
    """The last good envelope of a key, and what was wrong with a newer one if something was."""

    envelope: Envelope | None
    problem: str | None


class StoreReader:
    """A reader of one environment: a worker's or a supervisor's samples, or the plan.

    Parameters
    ----------
    path : Path
        The environment's folder.

    Raises
    ------
    StoreError
        If it cannot be opened.

    Notes
    -----
    Transactions are as short as one `get`: a reader that stays in one pins the writer's pages.
    """

    def __init__(self, path: Path) -> None:
        self._env = Files(path) if Files.there(path) else Env(path, writable=False)
        self._good: dict[bytes, Envelope] = {}

    def read(self, key: bytes) -> Reading:
        """Read the newest value of a key.

        Parameters
        ----------
        key : bytes
            The key.

        Returns
        -------
        Reading
            The newest envelope; if that is damaged, older than the last one read or gone, the last
            good one and the problem.

        Raises
        ------
        StoreError
            If the environment itself cannot be read.
        """
        good = self._good.get(key)
        data = self._env.get(key)
        if data is None:
            return Reading(good, None if good is None else f"{self._at(key)}: is gone")
        try:
            newest = unpack(data)
        except EnvelopeError as error:
            return Reading(good, f"{self._at(key)}: {error}")
        if good is not None and newest.version < good.version:
            return Reading(good, f"{self._at(key)}: {newest.version} came after {good.version}")
        self._good[key] = newest
        return Reading(newest, None)

    def _at(self, key: bytes) -> str:
        return f"{self._env.path}, key {key.decode()}"

    def check_readers(self) -> None:
        """Free what dead readers of this environment hold."""
        self._env.check_readers()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
