"""Appends records to segment files on a thread of its own, so that no disk holds the controller up.

A segment is one writer's file. It is locked while it is written, compressed when it is full, and
deleted when the journal has grown too old or too large. Moves that have ended have files of their
own next to the segments, so small that they stay for much longer.
"""

import fcntl
import os
import queue
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from isal import igzip

from controller.config import JournalBounds
from controller.journal.lines import MOVES, OLDER_MOVES, is_whole, move_lines, to_line
from kvstore.logs import log

SUFFIX, PACKED = ".jsonl", ".jsonl.gz"
MOVES_BYTES = 16 * 2**20
# More records than these do not wait for a slow disk: they are dropped, and a new segment begins.
WAITING_RECORDS = 16
RETRY_S = 60.0
CLOSE_S = 10.0
_MIB = 2**20
_Work = tuple[Sequence[bytes], bool, Sequence[bytes]]  # as `append` takes it
_CHECKED = 16  # bytes at the beginning of a line, its checksum among them
SEGMENT_BYTES = 64 * _MIB
# The best that ISA-L has. zlib's sixth takes 15 times as long for files that are 1 % smaller.
_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept, and how it is cut."""

    days: float = 14.0  # older segments are deleted
    size_bytes: int = 1024 * _MIB  # all segments together stay below; the oldest go first
    # a segment is closed when it has grown so large, uncompressed...
    segment_bytes: int = SEGMENT_BYTES
    segment_s: float = 3600.0  # ... or so old

    @classmethod
    def of(cls, days: float, size_mb: float) -> "Bounds":
        """Choose segments that are small against the whole: there is room for some ten of them."""
        size = int(size_mb * _MIB)
        return cls(days, size, min(SEGMENT_BYTES, size // 10))


class Writer:
    """Writes one controller's journal into a folder, which is made if missing.

    The name is unique among all writers, made of letters and digits. `failed` is why the last
    writes failed; it is empty if they did not.
    """

    def __init__(self, folder: Path, name: str, bounds: Bounds) -> None:
        self.folder = folder
        self.name = name
        self._bounds = bounds
        self._waiting: queue.Queue[_Work | None] = queue.Queue(WAITING_RECORDS)
        self._moves: set[bytes] | None = None  # how the lines begin that the folder has
        self._thread: threading.Thread | None = None
        self._file = -1
        self._path = folder
        self._written_bytes = 0
        self._opened_s = 0.0
        self._segment = 0
        self.failed = ""
        self._resting_until_s = 0.0
        self._chain_broken = True

    @classmethod
    def of(cls, bounds: JournalBounds) -> "Writer | None":
        """Make a writer as configured; None if no journal is wanted."""
        if bounds.dir is None:
            return None
        return cls(bounds.dir, uuid.uuid4().hex[:12], Bounds.of(bounds.days, bounds.size_mb))

    @property
    def wants_segment(self) -> bool:
        """Whether the next record must begin a segment."""
        full = self._written_bytes >= self._bounds.segment_bytes
        old = time.monotonic() - self._opened_s >= self._bounds.segment_s
        return self._chain_broken or full or old

    @property
    def resting(self) -> bool:
        """Whether nothing is written now because the disk has just refused."""
        return time.monotonic() < self._resting_until_s

    def append(self, bodies: Sequence[bytes], *, begins: bool, moves: Sequence[bytes] = ()) -> None:
        """Hand records over that are written together; never waits.

        `begins`: the first of them is the head of a new segment. `moves` have ended; those that
        the folder has are not written again.
        """
        if self._chain_broken and not begins:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
            self._thread.start()
        self._chain_broken = False
        if begins:
            # As of now, though the thread opens it later: the next record belongs into it. Its head
            # does not count: one that fills the segment alone would end it at each tick.
            self._written_bytes, self._opened_s = -len(bodies[0]), time.monotonic()
        try:
            self._waiting.put_nowait((bodies, begins, moves))
        except queue.Full:
            self._fail("the disk is too slow")

    def wait(self) -> None:
        """Wait until all is written, as a live controller never does."""
        self._waiting.join()

    def close(self) -> None:
        """Write what waits, and leave the rest to the next writer if the disk hangs."""
        if self._thread is None:
            return
        try:
            self._waiting.put(None, timeout=CLOSE_S)
        except queue.Full:
            return
        self._thread.join(CLOSE_S)
        self._thread = None

    def _work(self) -> None:
        self._tidy()
        while (item := self._waiting.get()) is not None:
            try:
                self._take(*item)
            except OSError as error:
                self._fail(error.strerror or str(error))
                self._leave()
            finally:
                self._waiting.task_done()
        self._leave()

    def _take(self, bodies: Sequence[bytes], begins: bool, moves: Sequence[bytes]) -> None:
        if begins:
            self._begin()
        if self._file >= 0:
            self._write(b"".join(map(to_line, bodies)))
            if moves:
                self._try_moves(moves)

    def _try_moves(self, bodies: Sequence[bytes]) -> None:
        """Write moves down; those that cannot be are tried again with the next."""
        try:
            self._add_moves(bodies)
        except OSError as error:
            reason = error.strerror or str(error)
            log.warning("moves_not_written", folder=str(self.folder), reason=reason)

    def _add_moves(self, bodies: Sequence[bytes]) -> None:
        if self._moves is None:
            # A line that was cut off also begins with its checksum.
            whole = (line for line in move_lines(self.folder) if is_whole(line))
            self._moves = {line[:_CHECKED] for line in whole}
        new = {line[:_CHECKED]: line for line in map(to_line, bodies)}
        lines = [line for key, line in new.items() if key not in self._moves]
        path = self.folder / MOVES
        with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o640)) as file:
            # An empty line first: a full disk may have cut off what was written before.
            file.write(b"".join([b"\n", *lines]))
        self._moves |= new.keys()
        if path.stat().st_size >= MOVES_BYTES:
            path.replace(self.folder / OLDER_MOVES)

    def _begin(self) -> None:
        self._leave()
        self._tidy()
        self.folder.mkdir(parents=True, exist_ok=True)
        begun = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self._path = self.folder / f"{begun}-{self.name}-{self._segment:06d}{SUFFIX}"
        # Locked before it has its name: another writer would compress it.
        new = self._path.with_name(self._path.name + ".new")
        self._file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o640)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(self._path)
        self._segment += 1

    def _write(self, line: bytes) -> None:
        """Write in one call, so that a kill leaves at most one record cut off."""
        written = os.write(self._file, line)
        if written != len(line):
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(f"only {written} of {len(line)} bytes could be written")
        self._written_bytes += written
        if self.failed:
            log.info("journal_works_again", folder=str(self.folder))
            self.failed = ""

    def _leave(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _fail(self, reason: str) -> None:
        """Log it once; after a pause a new segment is tried."""
        if not self.failed:
            log.warning("journal_not_written", folder=str(self.folder), reason=reason)
        self.failed = reason
        self._chain_broken = True
        self._resting_until_s = time.monotonic() + RETRY_S

    def _tidy(self) -> None:
        """Compress what is closed, and delete what is too much; what fails is tried next time."""
        with self._tried():
            for path in sorted(self.folder.glob(f"*{SUFFIX}")):
                with self._tried():
                    pack(path)
            self._delete()

    def _delete(self) -> None:
        kept = []
        for path in sorted(self.folder.glob(f"*{SUFFIX}*")):
            if path != self._path:
                with self._tried():
                    kept.append((path, path.stat()))
        # Not by their names: a clock that was ahead gives names that stay the newest.
        kept.sort(key=lambda one: one[1].st_mtime)
        # A segment may grow to its full size before it is compressed, and compressing needs room.
        room = self._bounds.size_bytes - 2 * self._bounds.segment_bytes
        total = sum(stat.st_size for _, stat in kept)
        oldest_s = time.time() - self._bounds.days * 86400
        for path, stat in kept:
            with self._tried():
                if (total > room or stat.st_mtime < oldest_s) and not _in_use(path):
                    path.unlink()
                    total -= stat.st_size

    @contextmanager
    def _tried(self) -> Iterator[None]:
        """Go on after a fault: one file must not keep all others."""
        try:
            yield
        except OSError as error:
            log.warning("journal_not_tidied", folder=str(self.folder), reason=str(error))


def pack(path: Path) -> None:
    """Compress a segment that no writer holds, and delete its plain form once that is complete.

    Safe against being killed at any point.
    """
    with path.open("r+b") as plain:
        if not _locked(plain):
            return
        made = path.with_name(path.name + ".gz")
        if not made.exists():
            half = path.with_name(path.name + ".part")
            with half.open("wb") as file:
                with igzip.IGzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
                    shutil.copyfileobj(plain, packed, _MIB)
                file.flush()
                os.fsync(file.fileno())
            shutil.copystat(path, half)
            half.rename(made)
        path.unlink()


def _locked(file: IO[bytes]) -> bool:
    """Take the lock that the writer of a segment holds; False if it is taken."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _in_use(path: Path) -> bool:
    with path.open("r+b") as file:
        return not _locked(file)
