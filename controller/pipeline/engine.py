"""The contract of what does the work: this process, or Spark."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

import pyarrow as pa

from controller.journal.reader import Segment

ROOT = Path(__file__).parents[1]

Work: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class RawFile:
    """A segment of a journal, where it lies."""

    uri: str
    size_bytes: int
    segment: Segment


@dataclass(frozen=True, slots=True)
class Episode:
    """A topology on a day: its ticks depend on each other, those of others do not."""

    topology: str
    day: int  # since 1970, UTC
    folders: tuple[str, ...]  # of `DECODED`, a segment each, in order
    ticks: int
    executors: int
    span_s: float
    free_s: float  # of it, in which something could be decided
    # Of that, what sets are chosen by, None for all of it; the rest is held back.
    chosen_s: float | None


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a small table, in no order."""

    folders: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Job:
    """A part of a table that is made at a time, and kept once it is whole."""

    folder: str  # below the folder of tables
    of: RawFile | Episode | Rows
    work: Work
    schema: pa.Schema
    after: RawFile | None = None  # that the work needs too
    by: tuple[str, ...] = ()  # columns that become folders
    weight: float = field(default=1.0, compare=False)  # share of the work, in any unit


class Engine(Protocol):
    """Does jobs, in any order, and reads what they made."""

    cores: int

    def files(self, paths: Sequence[str]) -> list[RawFile]:
        """Find the segments of journals; of one that is there twice, both."""

    def quarantined(self, paths: Sequence[str]) -> Counter[str]:
        """Count by rule what the journals lack of the tables that they were made of."""

    def opened(self, file: RawFile) -> IO[bytes]:
        """Open a file."""

    def do(self, jobs: Sequence[Job], done: Callable[[Job], None]) -> None:
        """Do the jobs that are not done yet; `done` gets each when it is whole."""

    def rows(
        self, folders: Sequence[str], schema: pa.Schema, columns: Sequence[str] = (), **where: Any
    ) -> pa.Table:
        """Read rows of a small table; those with the values that are given.

        Of all its columns unless some are named.
        """

    def ticks(self, episode: Episode, folders: Sequence[str]) -> Iterable[pa.RecordBatch]:
        """Read ticks of an episode that lie in some of its folders, in order."""


def digest(*values: object) -> str:
    """Name what a part of a table was made of, the code of the decisions too."""
    return hashlib.sha256(repr((_code(), *values)).encode()).hexdigest()[:12]


@cache
def _code() -> str:
    files = sorted(ROOT.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
