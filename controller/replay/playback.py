"""Runs the controller's own loop over a journal: the ports answer what they answered then.

With the recorded configuration that gives the recorded cycles, byte for byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import starmap
from typing import Any, TypeVar

from controller.config import Config, build
from controller.journal.memory import Memory, RememberingController, decode
from controller.journal.reader import Log, Tick
from controller.journal.record import JournalError, compact
from controller.journal.recorder import cycle_record
from controller.loop import CycleReport
from controller.ports import TopologyView
from controller.targeting.search import Answer, Question
from migration import ConfigError, WireError, wire
from migration.model import (
    Entry,
    ExecutorId,
    ExecutorLoad,
    NodeAcks,
    NodeLoad,
    Plan,
    Publication,
    Slot,
    Traffic,
    WorkerLoad,
)

M = TypeVar("M", NodeAcks, Plan, Publication)


class _RecordedError(Exception):
    """An error that a port raised; it looks like the recorded one."""

    def __repr__(self) -> str:
        return str(self)


class Ports:
    """All ports of the loop, answering from one tick after the other."""

    def __init__(self) -> None:
        self._tick: dict[str, Any] = {"now_s": 0.0, "time_s": 0.0, "epoch": None}
        self._publications: dict[str, Publication] = {}
        self._acks: dict[str, NodeAcks] = {}
        self._loads: dict[str, NodeLoad] = {}
        self._begun: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []

    def show(self, record: dict[str, Any]) -> None:
        """Go to the next tick.

        Parameters
        ----------
        record : dict
            From the journal.
        """
        self._tick = record
        self._begun = list(record["begun"])
        self._answers = list(record.get("answers", ()))
        for one in record["publications"]:
            publication = read_message(Publication, one)
            self._publications[publication.topology] = publication
        for one in record["acks"]:
            acks = read_message(NodeAcks, one)
            self._acks[acks.node] = acks
        self.take_loads(record["loads"])

    def take_loads(self, documents: Sequence[Any]) -> Sequence[NodeLoad]:
        """Take reports in.

        Parameters
        ----------
        documents : sequence
            From the journal.

        Returns
        -------
        sequence of NodeLoad
            The same.
        """
        loads = [_load(one) for one in documents]
        self._loads.update({load.node: load for load in loads})
        return loads

    def now_s(self) -> float:
        """Tell the monotonic time of then."""
        return float(self._tick["now_s"])

    def time_s(self) -> float:
        """Tell the time of day of then."""
        return float(self._tick["time_s"])

    @property
    def epoch(self) -> int | None:
        """The epoch of then."""
        found: int | None = self._tick["epoch"]
        return found

    def topologies(self) -> Sequence[TopologyView]:
        """Show the topologies as they were seen."""
        self._raise_at("topologies")
        return [
            TopologyView(
                self._publications[view["topology"]],
                read_message(Plan, view["plan"]),
                tuple(self._acks[node] for node in view["acks"] if node in self._acks),
                view["stand_back"],
            )
            for view in self._tick["views"]
            if view["topology"] in self._publications
        ]

    def loads(self) -> Sequence[NodeLoad]:
        """Deliver the load that was delivered."""
        self._raise_at("loads")
        return [self._loads[node] for node in self._tick["load_nodes"] if node in self._loads]

    def paused(self) -> str | None:
        """Tell who had paused the controller."""
        self._raise_at("paused")
        found: str | None = self._tick.get("paused")
        return found

    def begin(self, plan: Plan, entry: Entry) -> Plan | None:
        """Answer to a move as it was answered; other moves are taken as written."""
        wish = self._begun.pop(0) if self._begun else {}
        if (wish.get("executor"), wish.get("to")) != (str(entry.executor), str(entry.target)):
            return plan.followed_by((*plan.entries, entry), self.epoch or 0)
        if "plan" not in wish:
            self._raise_at("begin")
        return None if wish["plan"] is None else read_message(Plan, wish["plan"])

    def search(self, question: Question) -> Answer | None:
        """Answer as it was answered; a search that was not asked for then has no answer yet."""
        if not self._answers:
            self._raise_at("search")
            return None
        given = self._answers.pop(0)
        if given["topology"] != question.snapshot.topology or given["answer"] is None:
            return None
        return decode(Answer, given["answer"])

    def _raise_at(self, port: str) -> None:
        failed = self._tick.get("failed")
        if failed and failed["port"] == port:
            raise _RecordedError(failed["error"])


@dataclass(frozen=True, slots=True)
class Replayed:
    """A tick, decided again.

    Attributes
    ----------
    tick : Tick
        As recorded.
    cycles : list of dict
        As decided now, in the form of the journal.
    reports : tuple of CycleReport
        The same with the snapshots.
    views : sequence of TopologyView
        What the ports showed.
    """

    tick: Tick
    cycles: list[dict[str, Any]]
    reports: tuple[CycleReport, ...]
    views: Sequence[TopologyView]

    @property
    def identical(self) -> bool:
        """Whether the cycles are the recorded ones, byte for byte."""
        return compact(self.cycles) == compact(self.tick.record["cycles"])


def replay(log: Log, writer: int, since_s: float = 0.0) -> Iterator[Replayed]:
    """Decide one controller's ticks again, with its own configuration.

    Parameters
    ----------
    log : Log
        The journal.
    writer : int
        Index of the controller.
    since_s : float
        Unix seconds; begins with the segment that holds this moment.

    Yields
    ------
    Replayed
        One a tick.

    Raises
    ------
    JournalError
        The journal is of a version of nstorm whose configuration or messages this one cannot read.
    """
    ports = Ports()
    controller: RememberingController | None = None
    config = Config()
    for tick in log.ticks(writer, since_s):
        if tick.head is not None and (tick.gap or controller is None):
            config = recorded_config(tick.head)
            controller = RememberingController(
                config,
                view=ports,
                source=ports,
                sink=ports,
                lead=ports,
                clock=ports,
                search=ports.search,
            )
            loads = ports.take_loads(tick.head["loads"])
            controller.recall(decode(Memory, tick.head["memory"], loads))
        assert controller is not None  # the log gives no tick before the first head
        ports.show(tick.record)
        controller.rest(
            (topology, ExecutorId.parse(executor), at_s)
            for topology, executor, at_s in tick.record.get("rests", ())
        )
        reports = controller.cycle()
        cycles = [cycle_record(report, config.limits) for report in reports]
        failed = tick.record.get("failed")
        views = () if failed else ports.topologies()
        yield Replayed(tick, cycles, reports, views)


def recorded_config(head: dict[str, Any]) -> Config:
    """Read the configuration that a segment was written with.

    Parameters
    ----------
    head : dict
        The segment's head.

    Returns
    -------
    Config
        The configuration.

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
                tuple(starmap(Traffic, row["traffic"])),
            )
            for row in document["workers"]
        )
        left_out = document.get("left_out", 0)
        return NodeLoad(document["node"], document["time_ms"], workers, left_out)
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"the journal is of another version of nstorm: {error!r}") from error


def _executor_load(row: dict[str, Any]) -> ExecutorLoad:
    numbers = row["cpu_ns"], row["queue"], row["queue_capacity"]
    return ExecutorLoad(_executor(*row["executor"]), row["component"], *numbers, row["pinned"])


_executor = lru_cache(maxsize=100_000)(ExecutorId)


def read_message(kind: type[M], document: Any) -> M:
    try:
        return wire.decode(kind, compact(document))
    except WireError as error:
        raise JournalError(f"the journal is of another version of nstorm: {error}") from error
