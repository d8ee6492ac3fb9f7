"""Reads journals back: whole records only, each leader's ticks once, and lists what was skipped.

Nothing is held but one record, so a log may be as long as it likes.
"""

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO

import msgspec
from isal import igzip, isal_zlib

from controller.journal.lines import JournalError, from_line, is_whole, refuse_gone
from controller.journal.record import FORMAT, Head, TickRecord, other_format
from controller.journal.writer import PACKED, SUFFIX
from migration import wire

_NAME = re.compile(r"(\d{8}T\d{6})-([0-9a-z]+)-(\d{6})\.jsonl(\.gz)?")
# The beginning of a tick, as the recorder orders its keys; matching saves reading all of it.
_EPOCH = re.compile(
    rb'\{"crc":"[0-9a-f]{8}","kind":"tick","seq":\d+,"cluster":"([^"]*)","now_s":[-+.0-9e]+,'
    rb'"time_s":([-+.0-9e]+),"epoch":(\d+)'
)


_IS_HEAD = re.compile(rb'\{"crc":"[0-9a-f]{8}","kind":"head"')
_GZIP = b"\x1f\x8b"  # begins each packed file
# No record is longer; what has no line end until then is none, such as a packed file of zeros.
MOST_LINE_BYTES = 2**28

_HEADS = msgspec.json.Decoder(Head)
_RECORDS = wire.decoder(Head | TickRecord)


@dataclass(frozen=True, slots=True)
class Segment:
    path: Path
    begun: str
    writer: str
    number: int
    # Opens it where it lies; None for a file of this machine.
    opened: Callable[[], IO[bytes]] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def named(cls, path: Path, opened: Callable[[], IO[bytes]] | None = None) -> "Segment | None":
        """Take a file for a segment by its name; None if it is not named like one."""
        name = _NAME.fullmatch(path.name)
        return None if name is None else cls(path, name[1], name[2], int(name[3]), opened)

    @property
    def begun_s(self) -> float:
        """Unix seconds of its beginning."""
        return datetime.strptime(self.begun, "%Y%m%dT%H%M%S").replace(tzinfo=UTC).timestamp()

    def head(self) -> Head | None:
        """Read its head; None if that is not whole."""
        return from_line(next(_lines(self), b""), _HEADS)

    def begun_alone(self) -> "Segment":
        """Keep its head and its first tick, and nothing else."""
        begun = b"".join(itertools.islice(_lines(self), 2))
        return replace(
            self, path=Path(self.path.name.removesuffix(".gz")), opened=partial(BytesIO, begun)
        )

    def led(self) -> Iterator[tuple[tuple[str, int], float]]:
        """List cluster, epoch and time of the ticks in which its controller led."""
        for line in _lines(self):
            named = _EPOCH.match(line)
            if named is not None:
                yield (named[1].decode(errors="replace"), int(named[3])), float(named[2])


@dataclass(frozen=True, slots=True)
class Tick:
    record: TickRecord
    head: Head | None  # the segment's, if this is its first tick that could be read
    gap: bool  # ticks of this writer are missing before this one
    superseded: bool  # a later leader had taken over already, so that nothing came of it


@dataclass(frozen=True, slots=True)
class Log:
    """One or more journals, which may be of several controllers."""

    # one a controller process, in the order of their beginnings
    writers: tuple[tuple[Segment, ...], ...]
    began_s: Mapping[tuple[str, int], float]  # when each epoch began, by cluster and epoch
    # what could not be used and how often; complete once all ticks have been read
    skipped: Counter[str] = field(default_factory=Counter)

    @classmethod
    def open(cls, paths: Iterable[Path]) -> "Log":
        """Find the segments in folders and files.

        Raises `JournalError` where a path is not there, a file is no segment, or there is no
        segment at all.
        """
        paths = list(paths)
        writers = by_writer(segment for path in paths for segment in segments_in(path))
        if not writers:
            raise no_segment(", ".join(map(str, paths)))
        return cls(writers, _began_s(writers))

    def newest_head(self) -> Head:
        """Read the head of the newest segment that has one.

        Raises `JournalError` where no segment has a head that this version can read.
        """
        segments = [segment for writer in self.writers for segment in writer]
        others = ""
        for segment in sorted(segments, key=lambda s: s.begun, reverse=True):
            head = segment.head()
            if head is not None and head.format == FORMAT:
                return head
            if head is not None and not others:
                others = f"; its newest has {other_format(head.format)}"
        raise JournalError(
            f"{segments[0].path.parent}: no segment begins with a whole head of format "
            f"{FORMAT}{others}"
        )

    def begins_s(self, writer: int) -> float:
        """Return when a controller first led, in Unix seconds; infinite if it never did."""
        led = (at_s for one in self.writers[writer] for _, at_s in one.led())
        return next(led, float("inf"))

    def ticks(self, writer: int, since_s: float = 0.0) -> Iterator[Tick]:
        """Read one controller's ticks that are whole, in their order.

        Segments that end before `since_s` (Unix seconds) are not read.
        """
        before: TickRecord | None = None
        segments = list(self.writers[writer])
        while len(segments) > 1 and segments[1].begun_s <= since_s:
            del segments[0]
        expected_segment = segments[0].number
        for segment in segments:
            self.skipped["segments missing"] += segment.number - expected_segment
            expected_segment = segment.number + 1
            head: Head | None = None
            for record in self._records(segment):
                if isinstance(record, Head):
                    head = record
                    if head.format != FORMAT:
                        self.skipped[f"segments of {other_format(head.format)}"] += 1
                        break
                elif head is None and before is None:
                    self.skipped["ticks without a head before them"] += 1
                elif before is not None and record.seq <= before.seq:
                    self.skipped["ticks that are there twice"] += 1
                else:
                    gap = before is None or self._is_gap(before, record)
                    yield Tick(record, head, gap, self._is_superseded(record))
                    before, head = record, None

    def _is_gap(self, before: TickRecord, record: TickRecord) -> bool:
        missing = record.seq - before.seq - 1
        self.skipped["ticks missing"] += missing
        # Ticks are in the order of the monotonic clock; the time of day only names them.
        self.skipped["times at which the clock went back"] += record.time_s < before.time_s
        return missing != 0

    def _is_superseded(self, record: TickRecord) -> bool:
        """Return whether a higher epoch had begun: nothing this controller wrote then counted."""
        if record.epoch is None:
            return False
        own = (record.cluster, record.epoch)
        later = [at for key, at in self.began_s.items() if key[0] == own[0] and key > own]
        late = record.time_s >= min(later, default=float("inf"))
        self.skipped["ticks of a leader that had lost its lead"] += late
        return late

    def _records(self, segment: Segment) -> Iterator[Head | TickRecord]:
        for line in _lines(segment):
            record = from_line(line, _RECORDS)
            if record is not None:
                yield record
            elif line.endswith(b"\n"):
                self.skipped["damaged records"] += 1
            else:
                self.skipped["records cut off at the end"] += 1

    def skipped_texts(self) -> list[str]:
        """Return what was skipped, one line a kind; nothing if all is whole."""
        return [f"{count} {what}" for what, count in sorted(self.skipped.items()) if count]


def size_bytes(path: Path) -> int:
    """Return the size of a file or of its packed form; raises `JournalError` where it is away."""
    try:
        with open_segment(path) as opened:
            return os.fstat(opened.fileno()).st_size
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}") from None


def by_writer(
    segments: Iterable[Segment],
    size_of: Callable[[Segment], int] = lambda one: size_bytes(one.path),
) -> tuple[tuple[Segment, ...], ...]:
    """Put segments in order; of one that is there twice the packed one counts, then the longest.

    The other was copied while it was written.
    """
    known: dict[tuple[str, int], Segment] = {}
    for segment in segments:
        first = known.setdefault((segment.writer, segment.number), segment)
        if first is not segment:
            best = max(first, segment, key=lambda one: (one.path.suffix == ".gz", size_of(one)))
            known[segment.writer, segment.number] = best
    of: dict[str, list[Segment]] = {}
    for key in sorted(known):
        of.setdefault(key[0], []).append(known[key])
    return tuple(tuple(of[w]) for w in sorted(of, key=lambda w: (of[w][0].begun, w)))


def no_segment(paths: str) -> JournalError:
    """Return that nothing is there to read."""
    return JournalError(f"{paths}: no journal segment (*{SUFFIX}, *{PACKED}) is there")


def segments_in(path: Path) -> Iterator[Segment]:
    """Find the segments of a folder, the packed form of each first, or take a file for one.

    Raises `JournalError` where the path is not there, or is a file and no segment.
    """
    refuse_gone(path)
    files = [path]
    if path.is_dir():
        # The compressed form first: it is complete once it has its name.
        # Looked for last: a live controller may pack one in between.
        plain = sorted(path.rglob(f"*{SUFFIX}"))
        files = sorted(path.rglob(f"*{PACKED}")) + plain
    for file in files:
        segment = Segment.named(file)
        if segment is not None:
            yield segment
        elif file == path:
            raise JournalError(
                f"{path}: not named like a segment of the journal. Of a metrics log or a table "
                "`nstorm ingest` makes a journal"
            )


def heads(folder: Path) -> Iterator[Head]:
    """Read the last head of each segment, the newest segment first, that this version can read.

    Nothing else is decoded.
    """
    for segment in sorted(segments_in(folder), key=lambda one: one.begun, reverse=True):
        last = b""
        for line in _lines(segment):
            if _IS_HEAD.match(line) and is_whole(line):
                last = line
        head = from_line(last, _HEADS)
        if head is not None and head.format == FORMAT:
            yield head


def _lines(segment: Segment) -> Iterator[bytes]:
    """Read lines as far as the file goes; a cut-off compressed file gives what is whole in it."""
    path = segment.path
    try:
        with _opened(segment) as raw, _unpacked(path, raw) as file:
            lines = iter(lambda: file.readline(MOST_LINE_BYTES), b"")
            first = next(lines, b"")
            if file is not raw and not first:
                raise EOFError
            if first:
                yield first
            yield from lines
    # Its types have an exception where the class is.
    except (EOFError, igzip.BadGzipFile, isal_zlib.error):  # type: ignore[misc]
        yield b"cut off"
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror or error}") from error


def _opened(segment: Segment) -> IO[bytes]:
    return open_segment(segment.path) if segment.opened is None else segment.opened()


def open_segment(path: Path) -> IO[bytes]:
    """Open a file, or its packed form: a live controller may pack it while a log is read."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return path.with_name(path.name + ".gz").open("rb")


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    packed = path.suffix == ".gz" or raw.read(len(_GZIP)) == _GZIP
    raw.seek(0)
    return igzip.open(raw) if packed else raw


def _began_s(writers: tuple[tuple[Segment, ...], ...]) -> dict[tuple[str, int], float]:
    """Find out when each epoch began; a controller alone is never overtaken."""
    found: dict[tuple[str, int], float] = {}
    for segments in writers if len(writers) > 1 else ():
        first = [next(segment.led(), None) for segment in segments]
        for segment, own, after in zip(segments, first, [*first[1:], None], strict=True):
            # Epochs only rise: between two equal ones there is no other, and nothing to read.
            same = own is not None and after is not None and own[0] == after[0]
            for key, at_s in [own] if own is not None and same else segment.led():
                found[key] = min(found.get(key, at_s), at_s)
    return found
