"""Times a cycle of the controller, what the journal adds to it, and a replayed tick.

Times are of the processor, and are compared within one run only.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from controller.config import build
from controller.journal.reader import Log
from controller.journal.recorder import Message, RecordedController
from controller.journal.writer import Bounds, Writer
from controller.loop import CycleReport
from controller.ports import TopologyView
from controller.replay.ingest.world import WindowWorld
from controller.replay.playback import replay
from controller.replay.recording import spans
from controller.replay.rerun.run import rerun
from migration import wire
from migration.model import NodeAcks, NodeLoad, Plan, Publication
from tests.bench.replay.cases import publication, windows

M = TypeVar("M", Publication, NodeAcks, NodeLoad)
# The first ticks have nothing to compare with, and load what they need.
WARM = 2


class _Bytes:
    """Hands messages over as the agents' and Nimbus' bytes, and decodes them as the mirror does."""

    def __init__(self, world: WindowWorld) -> None:
        self._world = world
        self._bytes: list[tuple[type[Message], bytes]] = []
        self._data: dict[int, bytes] = {}
        self._plan: Plan | None = None

    def prepare(self) -> None:
        """Encode what the others would have written meanwhile; not the controller's time."""
        (view,) = self._world.topologies()
        messages: list[Message] = [view.publication, *view.acks, *self._world.loads()]
        self._bytes = [(type(message), wire.encode(message)) for message in messages]
        self._plan = view.plan
        self._data = {}

    def topologies(self) -> list[TopologyView]:
        """Decode the publication and the answers."""
        (publication,) = self._decoded(Publication)
        assert self._plan is not None
        return [TopologyView(publication, self._plan, tuple(self._decoded(NodeAcks)))]

    def loads(self) -> list[NodeLoad]:
        """Decode the reports."""
        return self._decoded(NodeLoad)

    def paused(self) -> str | None:
        """Nobody pauses it."""
        return None

    def data_of(self, messages: Sequence[Message]) -> list[bytes]:
        """Give the bytes back."""
        return [self._data[id(message)] for message in messages]

    def _decoded(self, kind: type[M]) -> list[M]:
        data = [data for of, data in self._bytes if of is kind]
        messages = [wire.decode(kind, one) for one in data]
        self._data |= {id(m): one for m, one in zip(messages, data, strict=True)}
        return messages


class _Timed(RecordedController):
    """Takes the time of all that the journal adds to a cycle."""

    journal_s = 0.0

    def head(self) -> bytes:
        """Begin a segment."""
        return self._head()

    def _tick_record(self, reports: Iterable[CycleReport]) -> bytes:
        begun_s = time.thread_time()
        body = super()._tick_record(reports)
        self.journal_s = time.thread_time() - begun_s
        return body


def cost(executors: int, ticks: int, folder: Path) -> dict[str, Any]:
    """Run a controller over some ticks, and then its journal.

    Parameters
    ----------
    executors, ticks : int
        Size of the run; more than two ticks.
    folder : Path
        Where the journal goes.

    Returns
    -------
    dict
        Milliseconds, medians over the ticks: of a cycle with reading its messages, of what the
        journal takes of it on the loop's thread and on its own (without compression), of the
        beginning of a segment; of a tick decided again by the whole loop, read as arrays, and
        decided by the array replay. Also bytes of a record, and the journal's share of a cycle.
    """
    world, window = WindowWorld(publication(executors)), windows(executors)
    source, config = _Bytes(world), build({"mode": "advise"})
    writer = Writer(folder, "bench", Bounds())
    recorded = _Timed(
        config,
        view=source,
        source=source,
        sink=world,
        lead=world,
        clock=world,
        journal=writer,
        data_of=source.data_of,
    )
    spent: list[tuple[float, float, float]] = []
    for tick in range(ticks):
        world.advance(window(tick))
        source.prepare()
        others_s = time.process_time() - time.thread_time()
        whole_s = cpu_s(recorded.cycle)
        writer.wait()
        others_s = time.process_time() - time.thread_time() - others_s
        spent.append((whole_s - recorded.journal_s, recorded.journal_s, others_s))
    head_s = cpu_s(recorded.head)
    recorded.close()
    cycle_s, journal_s, writer_s = np.median(np.array(spent[WARM:]), axis=0)
    size = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
    return {
        "executors": executors,
        "ticks": ticks,
        "cycle_ms": _ms(cycle_s),
        "journal_ms": _ms(journal_s),
        "journal_frac": round(journal_s / cycle_s, 5),
        "head_ms": _ms(head_s),
        "writer_thread_ms": _ms(writer_s),
        "record_bytes": size // ticks,
        **_replayed(folder),
    }


def _replayed(folder: Path) -> dict[str, float]:
    """Time a tick of each way to replay."""
    found = list(spans(Log.open([folder])))
    ticks = sum(len(span.time_s) for span in found)
    config = build({})
    rerun(found, config)  # which compiles, where nothing is compiled yet
    return {
        "replay_ms": _ms(cpu_s(lambda: list(replay(Log.open([folder]), 0))) / ticks),
        "read_ms": _ms(cpu_s(lambda: list(spans(Log.open([folder])))) / ticks),
        "rerun_ms": _ms(cpu_s(lambda: rerun(found, config)) / ticks),
    }


def cpu_s(run: Callable[[], object]) -> float:
    """Take the time of the processor that something needs on this thread.

    Parameters
    ----------
    run : callable
        What to time.

    Returns
    -------
    float
        Seconds.
    """
    begun_s = time.thread_time()
    run()
    return time.thread_time() - begun_s


def _ms(time_s: float) -> float:
    return round(1e3 * float(time_s), 4)
