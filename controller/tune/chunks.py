"""Puts a decoded log on disk, in pieces that fit into memory, and holds a part of it back.

A piece is of one topology and one day. It lies before or after the moment from which on the load is
held back from the choice.
"""

import itertools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from controller.core.cluster import Floats
from controller.errors import TuneError
from controller.replay.recording import Span
from migration.model import topology_name

# A topology on a day: its ticks depend on each other, those of others do not.
Episode: TypeAlias = tuple[str, int]
DAY_S = 86400.0
# Of each topology's time in which something could be decided.
HELD_BACK_FRAC = 0.3
# What is handed to the workers at a time.
WAVE_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the log on disk."""

    topology: str
    day: int  # since 1970, UTC; each begins with the placement as recorded
    held_back: bool  # serves only to test what was chosen
    path: Path  # where the span is
    executors: int
    ticks: int
    size_bytes: int
    span_s: float  # the time it stands for
    free_s: float  # that in which something could be decided

    @property
    def episode(self) -> Episode:
        return self.topology, self.day

    def load(self) -> Span:
        span: Span = pickle.loads(self.path.read_bytes())
        return span


def unpack(spans: Iterable[Span], folder: Path, topology: str | None = None) -> list[Chunk]:
    """Lay a log out, of one topology (by id or name) or of all, as it is read.

    In the order of days, and within a topology of time. Raises `TuneError` where there is nothing
    to tune with.
    """
    found: list[Chunk] = []
    others: set[str] = set()
    ahead: dict[str, float] = {}
    for span in spans:
        if topology not in (None, span.topology, topology_name(span.topology)):
            others.add(span.topology)
            continue
        forward = _forward(span, ahead.get(span.topology))
        ahead[span.topology] = float(forward.time_s[-1])
        for part in _days(forward):
            found.append(_write(folder / f"{len(found)}", part))
    if not found and others:
        raise TuneError(f"the log has no topology {topology}, it has {', '.join(sorted(others))}")
    if not found:
        raise TuneError("the log holds no tick in which a topology was measured")
    names = sorted({chunk.topology for chunk in found})
    by_topology = [[chunk for chunk in found if chunk.topology == name] for name in names]
    split = itertools.chain.from_iterable(map(_held_back, by_topology))
    return sorted(split, key=lambda chunk: chunk.day)


def waves(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Hand pieces out together, as many as fit into `WAVE_BYTES`, at least one."""
    wave: list[Chunk] = []
    for chunk in chunks:
        if wave and sum(one.size_bytes for one in wave) + chunk.size_bytes > WAVE_BYTES:
            yield wave
            wave = []
        wave.append(chunk)
    yield wave


def _forward(span: Span, before_s: float | None) -> Span:
    """Let time only go on: where the clock was set back, the length of the tick counts."""
    start_s = float(span.time_s[0]) if before_s is None else before_s
    steps: Floats = np.diff(span.time_s, prepend=start_s)
    back = steps < 0
    if not back.any():
        return span
    steps[back] = span.span_s[back]
    return replace(span, time_s=start_s + np.cumsum(steps))


def _days(span: Span) -> Iterator[Span]:
    first, last = (int(time_s // DAY_S) for time_s in span.time_s[[0, -1]])
    for day in range(first, last + 1):
        part = span.within(day * DAY_S, np.nextafter((day + 1) * DAY_S, 0.0))
        if len(part.time_s):
            yield part


def _write(path: Path, span: Span) -> Chunk:
    data = pickle.dumps(span, protocol=pickle.HIGHEST_PROTOCOL)
    path.write_bytes(data)
    return Chunk(
        topology=span.topology,
        day=int(span.time_s[0] // DAY_S),
        held_back=False,
        path=path,
        executors=len(span.first.executors),
        ticks=len(span.time_s),
        size_bytes=len(data),
        span_s=float(span.span_s.sum()),
        free_s=float(span.span_s[~span.held].sum()),
    )


def _held_back(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """Mark the last part of one topology's time, cutting the piece in which it begins."""
    left_s = (1 - HELD_BACK_FRAC) * sum(chunk.free_s for chunk in chunks)
    for chunk in chunks:
        if chunk.free_s <= left_s:
            yield chunk
        elif left_s <= 0:
            yield replace(chunk, held_back=True)
        else:
            yield from _cut(chunk, left_s)
        left_s -= chunk.free_s


def _cut(chunk: Chunk, at_s: float) -> Iterator[Chunk]:
    span = chunk.load()
    row = int(np.searchsorted(np.cumsum(span.span_s * ~span.held), at_s, side="right"))
    end_s = float(span.time_s[row - 1]) if row else -np.inf
    earlier = span.within(-np.inf, end_s)
    if len(earlier.time_s):
        yield replace(_write(chunk.path, earlier), day=chunk.day)
    later = span.within(np.nextafter(end_s, np.inf), np.inf)
    path = chunk.path.with_name(f"{chunk.path.name}-held-back")
    yield replace(_write(path, later), day=chunk.day, held_back=True)
