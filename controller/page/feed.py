"""What the page shows: the status, read again and again, and what it was in the last hour."""

import gzip
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
from msgspec import UNSET, Struct

from controller.cli.status_document import StatusDocument, TopologyStatus
from controller.core.figures import NOT_KNOWN
from controller.errors import ControllerError
from kvstore.errors import StoreError
from migration import ConfigError

# A point of the time line each so often, for an hour.
POINT_S = 5.0
MOST_POINTS = 720
# A higher one takes twice the time, and leaves nearly as much.
_GZIP_LEVEL = 5

# Gives, while it is open, a function that looks once.
Source = Callable[[], AbstractContextManager[Callable[[], StatusDocument]]]


class Drawn(Struct, frozen=True):
    """What is drawn of a topology; None where it is not known."""

    acked_tps: float | None
    failed_tps: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    inter_node_frac: float | None
    inter_node_bytes_per_s: float | None
    most_load_frac: float | None  # of any worker
    moves: int  # under way


class Point(Struct, frozen=True):
    """The topologies of one moment."""

    time_s: float  # Unix seconds
    topologies: dict[str, Drawn]  # by id


@dataclass(frozen=True)
class Packed:
    """A document as JSON, packed once for all visitors, when the first of them asks."""

    plain: bytes = b""

    @cached_property
    def gzip(self) -> bytes:
        return gzip.compress(self.plain, _GZIP_LEVEL)


@dataclass(frozen=True, slots=True)
class LastRead:
    """What was read last; `status` is empty until there was something."""

    number: int = 0
    status: Packed = Packed()
    points: Packed = Packed(b"[]")  # the time line, the oldest point first
    read_s: float = 0.0  # Unix seconds
    problem: str = "it has not been read yet"  # why there is nothing newer; empty where there is


class Feed:
    """Reads on a thread of its own; any number of visitors take what it has."""

    def __init__(self, source: Source, every_s: float) -> None:
        self._source = source
        self._every_s = every_s
        self._points: deque[Point] = deque(maxlen=MOST_POINTS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self.shown = LastRead()

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(timeout=5.0)

    def stop(self) -> None:
        """Read no more, and let those go who watch."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def after(self, time_s: float) -> Packed:
        """Give the points of later than this; all of them where the clock was set back."""
        if time_s <= 0 or (self._points and self._points[-1].time_s < time_s):
            return self.shown.points
        later = [point for point in tuple(self._points) if point.time_s > time_s]
        return Packed(msgspec.json.encode(later))

    def _run(self) -> None:
        while not self.is_stopped:
            try:
                with self._source() as look:
                    while not self.is_stopped:
                        self.take(look())
                        self._stopped.wait(self._every_s)
            except (ConfigError, ControllerError, StoreError) as error:
                self.fail(str(error))
            except Exception as error:  # what is read is other processes' text
                self.fail(f"the status cannot be shown: {error!r}")
            self._stopped.wait(self._every_s)

    def take(self, document: StatusDocument) -> None:
        """Show what was read."""
        now_s, points = time.time(), self.shown.points
        # A clock that was set back must not end the time line.
        if not self._points or abs(now_s - self._points[-1].time_s) >= POINT_S:
            found = {one.topology: _figures(one) for one in document.topologies}
            self._points.append(Point(now_s, found))
            points = Packed(msgspec.json.encode(list(self._points)))
        status = Packed(msgspec.json.encode(document))
        self.shown = LastRead(self.shown.number + 1, status, points, now_s, "")

    def fail(self, problem: str) -> None:
        """Go on to show what there was, and why nothing newer comes."""
        self.shown = replace(self.shown, number=self.shown.number + 1, problem=problem)


def _figures(one: TopologyStatus) -> Drawn:
    spouts = NOT_KNOWN if one.spouts is UNSET else one.spouts
    loads = [w.load_frac for w in one.workers if w.load_frac is not None]
    return Drawn(
        spouts.acked_tps,
        spouts.failed_tps,
        spouts.latency_p50_ms,
        spouts.latency_p99_ms,
        one.inter_node_frac,
        one.inter_node_bytes_per_s,
        max(loads, default=None),
        len(one.moves),
    )
