"""Times a cycle of the controller, what the journal adds to it, and a replayed tick.

Times are of the processor, and are compared within one run only.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from controller.config import build
from controller.cycle import CycleInput, Memory, cycle
from controller.ingest.world import WindowWorld
from controller.journal.reader import Log
from controller.journal.recorder import Message, Recorder
from controller.journal.writer import Bounds, Writer
from controller.replay.playback import replay
from controller.replay.recording import spans
from controller.replay.rerun import Rerun
from migration import wire
from migration.model import NodeAcks, NodeLoad, Publication
from tests.bench.replay.cases import publication, windows
from tests.bench.replay.score import through

M = TypeVar("M", Publication, NodeAcks, NodeLoad)
# The first ticks have nothing to compare with, and load what they need.
WARM = 2


class _Bytes:
    """Hands messages over as the agents' and Nimbus' bytes, and decodes them as the mirror does."""

    def __init__(self, world: WindowWorld) -> None:
        self._world = world
        self._bytes: list[tuple[type[Message], bytes]] = []
        self._data: dict[int, bytes] = {}
        self._seen = world.seen()

    def prepare(self) -> None:
        """Encode what the others would have written by then; not the time of the controller."""
        self._seen = self._world.seen()
        (view,) = self._seen.topologies
        messages: list[Message] = [view.publication, *view.acks, *self._seen.loads]
        self._bytes = [(type(message), wire.encode(message)) for message in messages]
        self._data = {}

    def seen(self) -> CycleInput:
        """Decode everything."""
        (view,) = self._seen.topologies
        (publication,) = self._decoded(Publication)
        view = replace(view, publication=publication, acks=tuple(self._decoded(NodeAcks)))
        return replace(self._seen, topologies=(view,), loads=tuple(self._decoded(NodeLoad)))

    def data_of(self, messages: Sequence[Message]) -> list[bytes]:
        """Give the bytes back."""
        return [self._data[id(message)] for message in messages]

    def _decoded(self, kind: type[M]) -> list[M]:
        data = [data for of, data in self._bytes if of is kind]
        messages = [wire.decode(kind, one) for one in data]
        self._data |= {id(m): one for m, one in zip(messages, data, strict=True)}
        return messages


def cost(executors: int, ticks: int, folder: Path) -> dict[str, Any]:
    """Run a controller over some ticks, and then its journal.

    Returns
    -------
    dict
        Milliseconds, medians over the ticks. Of a cycle with reading its messages. Of what the
        journal takes of it on the loop's thread and on its own (without compression), and of the
        beginning of a segment. Of a tick decided again by the whole loop, read as arrays, and
        decided by the array replay. Also bytes of a record, and the journal's share of a cycle.
    """
    world, window = WindowWorld(publication(executors)), windows(executors)
    source, config = _Bytes(world), build({"mode": "advise"})
    writer = Writer(folder, "bench", Bounds())
    recorder, memory = Recorder(config, writer, source.data_of), Memory()
    spent: list[tuple[float, float, float]] = []
    heads_s: list[float] = []
    for tick in range(ticks):
        world.advance(window(tick))
        source.prepare()
        others_s = time.process_time() - time.thread_time()
        begun_s = time.process_time()
        seen = source.seen()
        after, report = cycle(memory, seen, config)
        cycle_s, begun_s = time.process_time() - begun_s, time.thread_time()
        heads = writer.wants_segment
        recorder.record(memory, seen, report)
        journal_s = time.thread_time() - begun_s
        if heads:
            heads_s.append(journal_s)
        memory = after
        writer.wait()
        others_s = time.process_time() - time.thread_time() - others_s
        spent.append((cycle_s, journal_s, others_s))
    recorder.close()
    cycle_s, journal_s, writer_s = np.median(np.array(spent[WARM:]), axis=0)
    size = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
    return {
        "executors": executors,
        "ticks": ticks,
        "cycle_ms": _ms(cycle_s),
        "journal_ms": _ms(journal_s),
        "journal_frac": round(journal_s / cycle_s, 5),
        "head_ms": _ms(max(heads_s)),
        "writer_thread_ms": _ms(writer_s),
        "record_bytes": size // ticks,
        **_replayed(folder),
    }


def _replayed(folder: Path) -> dict[str, float]:
    """Time a tick of each way to replay."""
    found = list(spans(Log.open([folder])))
    ticks = sum(len(span.time_s) for span in found)
    config = build({})
    through(Rerun(config), found)
    return {
        "replay_ms": _ms(cpu_s(lambda: list(replay(Log.open([folder]).ticks(0)))) / ticks),
        "read_ms": _ms(cpu_s(lambda: list(spans(Log.open([folder])))) / ticks),
        "rerun_ms": _ms(cpu_s(lambda: through(Rerun(config), found)) / ticks),
    }


def cpu_s(run: Callable[[], object]) -> float:
    """Take the time of the processor that something needs on this thread."""
    begun_s = time.thread_time()
    run()
    return time.thread_time() - begun_s


def _ms(time_s: float) -> float:
    return round(1e3 * float(time_s), 4)
