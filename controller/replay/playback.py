"""Folds the controller's own cycle over a journal.

With the recorded configuration that gives the recorded cycles, byte for byte.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from controller.config import Config, build
from controller.core.policy import Policy
from controller.core.topology import TopologyView
from controller.cycle import CycleInput, Memory, cycle, failed
from controller.journal.cycle_record import as_json, cycle_record
from controller.journal.lines import JournalError
from controller.journal.reader import Tick
from controller.journal.record import Head, TickRecord, decode, made
from controller.journal.rows import CycleRecord
from controller.policies.registry import policy
from controller.report import Report
from migration import ConfigError
from migration.model import ExecutorId, NodeAcks, NodeLoad, Publication, Slot


class _RecordedError(Exception):
    """An error that kept the recorded cycle from looking; it is shown as it was then."""

    def __repr__(self) -> str:
        return str(self)


class SeenReader:
    """Makes each tick's `CycleInput` again; a record holds only the messages that had changed."""

    def __init__(self) -> None:
        self._publications: dict[str, Publication] = {}
        self._acks: dict[str, NodeAcks] = {}
        self._loads: dict[str, NodeLoad] = {}

    def seen(self, record: TickRecord, answer_type: Any = Any) -> CycleInput:
        return CycleInput(
            record.now_s,
            record.time_s,
            record.epoch,
            record.controls,
            tuple(self.views(record)),
            self.loads(record),
            tuple((t, ExecutorId.parse(executor), s) for t, executor, s in record.rests),
            tuple((t, ExecutorId.parse(executor)) for t, executor in record.not_begun),
            tuple((topology, decode(answer_type, answer)) for topology, answer in record.answers),
            record.begun,
            record.drained,
            frozenset(map(Slot.parse, record.free)),
            record.refused,
            record.guard_answers,
            tuple((t, ExecutorId.parse(executor), s) for t, executor, s in record.earlier),
            record.searches,
        )

    def loads(self, record: TickRecord) -> tuple[NodeLoad, ...]:
        self._loads |= {load.node: load for load in record.loads}
        return tuple(self._loads[node] for node in record.load_nodes if node in self._loads)

    def views(self, record: TickRecord) -> Iterator[TopologyView]:
        self._publications |= {one.topology: one for one in record.publications}
        self._acks |= {acks.node: acks for acks in record.acks}
        for view in record.views:
            if view.topology in self._publications:
                yield TopologyView(
                    self._publications[view.topology],
                    view.plan,
                    tuple(self._acks[node] for node in view.acks if node in self._acks),
                    view.stand_back,
                )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A tick, decided again."""

    tick: Tick
    seen: CycleInput
    report: Report
    cycles: tuple[CycleRecord, ...]  # the report as the journal records it, one a topology

    @property
    def identical(self) -> bool:
        """Whether the cycles are the recorded ones, byte for byte."""
        return as_json(self.cycles) == bytes(self.tick.record.cycles)


def replay(ticks: Iterable[Tick]) -> Iterator[Replayed]:
    """Decide one controller's ticks again, with its own configuration, from the first head on.

    Raises `JournalError` where the journal is of a version of nstorm whose configuration or
    messages this one cannot read.
    """
    reader, memory, config = SeenReader(), None, Config()
    answer_type: Any = Any
    for tick in ticks:
        if tick.gap:  # what was decided there is not known
            memory = None
        if tick.head is not None and tick.head.seq + 1 == tick.record.seq and memory is None:
            config = recorded_config(tick.head)
            decides = policy(config.policy, config.options)
            memory, answer_type = recorded_memory(tick.head, decides), decides.answer_type
        if memory is None:
            continue
        record = tick.record
        seen = reader.seen(record, answer_type)
        if record.error is None:
            memory, report = cycle(memory, seen, config)
        else:
            memory, report = failed(memory, seen.time_s, _RecordedError(record.error))
        cycles = tuple(map(cycle_record, report.topologies))
        yield Replayed(tick, seen, report, cycles)


def recorded_memory(head: Head, decides: Policy[Any]) -> Memory:
    """Read what the controller remembered, its policy too."""
    memory, kind = decode(Memory, head.memory), decides.memory_type
    of_policy = {topology: made(kind, one) for topology, one in memory.of_policy.items()}
    return replace(memory, of_policy=of_policy)


def recorded_config(head: Head) -> Config:
    """Read the configuration that a segment was written with.

    Raises `JournalError` where it has keys or values that this version does not know.
    """
    try:
        return build(head.config)
    except ConfigError as error:
        raise JournalError(f"the journal's configuration is of another version: {error}") from error
