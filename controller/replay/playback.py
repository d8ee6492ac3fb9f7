"""Folds the controller's own cycle over a journal.

With the recorded configuration that gives the recorded cycles, byte for byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from controller.config import Config, build
from controller.core.topology import TopologyView
from controller.cycle import Memory, Report, Seen, cycle, failed
from controller.journal.memory import decode
from controller.journal.reader import Log, Tick
from controller.journal.record import JournalError, compact
from controller.journal.recorder import cycle_record
from controller.policies.partition.search import Answer
from migration import ConfigError, WireError, wire
from migration.model import (
    ExecutorId,
    ExecutorLoad,
    NodeAcks,
    NodeLoad,
    Plan,
    Publication,
    Slot,
    WorkerLoad,
)

M = TypeVar("M", NodeAcks, Plan, Publication)


class _RecordedError(Exception):
    """An error that kept the recorded cycle from looking; it is shown as it was then."""

    def __repr__(self) -> str:
        return str(self)


class SeenReader:
    """Makes each tick's `Seen` again; a record holds only the messages that had changed."""

    def __init__(self) -> None:
        self._publications: dict[str, Publication] = {}
        self._acks: dict[str, NodeAcks] = {}
        self._loads: dict[str, NodeLoad] = {}

    def seen(self, record: dict[str, Any]) -> Seen:
        """Read the next tick."""
        for one in record["publications"]:
            publication = read_message(Publication, one)
            self._publications[publication.topology] = publication
        for one in record["acks"]:
            acks = read_message(NodeAcks, one)
            self._acks[acks.node] = acks
        self.take_loads(record["loads"])
        return Seen(
            float(record["now_s"]),
            float(record["time_s"]),
            record["epoch"],
            record["paused"],
            tuple(self._views(record)),
            tuple(self._loads[node] for node in record["load_nodes"] if node in self._loads),
            tuple((t, ExecutorId.parse(executor), s) for t, executor, s in record["rests"]),
            tuple((t, ExecutorId.parse(executor)) for t, executor in record["not_begun"]),
            tuple((one["topology"], decode(Answer, one["answer"])) for one in record["answers"]),
        )

    def take_loads(self, documents: Sequence[Any]) -> Sequence[NodeLoad]:
        """Take reports in."""
        loads = [_load(one) for one in documents]
        self._loads.update({load.node: load for load in loads})
        return loads

    def _views(self, record: dict[str, Any]) -> Iterator[TopologyView]:
        for view in record["views"]:
            if view["topology"] in self._publications:
                yield TopologyView(
                    self._publications[view["topology"]],
                    read_message(Plan, view["plan"]),
                    tuple(self._acks[node] for node in view["acks"] if node in self._acks),
                    view["stand_back"],
                )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A tick, decided again.

    Attributes
    ----------
    cycles : list of dict
        The report as the journal records it, one a topology.
    """

    tick: Tick
    seen: Seen
    report: Report
    cycles: list[dict[str, Any]]

    @property
    def identical(self) -> bool:
        """Whether the cycles are the recorded ones, byte for byte."""
        return compact(self.cycles) == compact(self.tick.record["cycles"])


def replay(log: Log, writer: int, since_s: float = 0.0) -> Iterator[Replayed]:
    """Decide one controller's ticks again, with its own configuration.

    Parameters
    ----------
    writer : int
        Index of the controller.
    since_s : float
        Unix seconds; begins with the segment that holds this moment.

    Raises
    ------
    JournalError
        The journal is of a version of nstorm whose configuration or messages this one cannot read.
    """
    reader, memory, config = SeenReader(), None, Config()
    for tick in log.ticks(writer, since_s):
        if tick.gap:  # what was decided there is not known
            memory = None
        if tick.head is not None and memory is None:
            config = recorded_config(tick.head)
            loads = reader.take_loads(tick.head["loads"])
            memory = decode(Memory, tick.head["memory"], loads)
        if memory is None:
            continue
        record = tick.record
        seen = reader.seen(record)
        if record["error"] is None:
            memory, report = cycle(memory, seen, config)
        else:
            memory, report = failed(memory, seen.time_s, _RecordedError(record["error"]))
        cycles = [cycle_record(one) for one in report.topologies]
        yield Replayed(tick, seen, report, cycles)


def recorded_config(head: dict[str, Any]) -> Config:
    """Read the configuration that a segment was written with.

    Raises
    ------
    JournalError
        It has keys or values that this version does not know.
    """
    try:
        return build(head["config"])
    except ConfigError as error:
        raise JournalError(f"the journal's configuration is of another version: {error}") from error


def _load(document: Any) -> NodeLoad:
    """Read a report without looking twice: it was strictly read when it was written down.

    Reports are nearly all of a journal, and reading them strictly would be most of a replay.
    """
    try:
        workers = tuple(
            WorkerLoad(
                row["topology"],
                Slot.parse(row["slot"]),
                row["incarnation"],
                row["time_ms"],
                row["process_cpu_ns"],
                tuple(map(_executor_load, row["executors"])),
                tuple(map(tuple, row["traffic"])),
            )
            for row in document["workers"]
        )
        left_out = document.get("left_out", 0)
        return NodeLoad(document["node"], document["time_ms"], workers, left_out)
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"the journal is of another version of nstorm: {error!r}") from error


def _executor_load(row: dict[str, Any]) -> ExecutorLoad:
    numbers = row["cpu_ns"], row["queue"]
    return ExecutorLoad(_executor(*row["executor"]), row["component"], *numbers, row["pinned"])


_executor = lru_cache(maxsize=100_000)(ExecutorId)


def read_message(kind: type[M], document: Any) -> M:
    try:
        return wire.decode(kind, compact(document))
    except WireError as error:
        raise JournalError(f"the journal is of another version of nstorm: {error}") from error
