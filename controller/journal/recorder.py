"""Writes down what each cycle of a controller saw and decided.

A cycle depends on nothing else. So the same `CycleInput`, read back, gives the same decision.
Messages are copied as the bytes that they came in, and only when they have changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from controller.config import Config
from controller.core.topology import TopologyView
from controller.cycle import CycleInput, Memory
from controller.journal.cycle_record import as_json, cycle_record
from controller.journal.lines import compact
from controller.journal.record import FORMAT, Head, TickRecord, ViewRecord, encode
from controller.journal.writer import Writer
from controller.report import Report
from kvstore.logs import log
from migration import wire
from migration.model import NodeAcks, NodeLoad, Publication

Message = Publication | NodeAcks | NodeLoad
DataOf = Callable[[Sequence[Message]], Sequence[bytes]]
NOTES_LIMIT = 1000
T = TypeVar("T")
# The most ticks that an explanation decides again; a head takes the room of two or three.
HEAD_TICKS = 24


def encoded(messages: Sequence[Message]) -> list[bytes]:
    """Write messages that never were bytes."""
    return [wire.encode(message) for message in messages]


class Recorder:
    """Writes down what each cycle saw and decided.

    Without a journal it keeps none. `data_of` gives the bytes that messages came in.
    """

    def __init__(self, config: Config, journal: Writer | None, data_of: DataOf = encoded) -> None:
        self._config = config
        self._journal = journal
        self._data_of = data_of
        self._sequence = 0
        self._headed = 0  # the tick before the last head
        self._written: dict[tuple[type, str], bytes] = {}
        self._seen: dict[tuple[type, str], Message] = {}
        self._commands: list[dict[str, Any]] = []
        self._moves: list[bytes] = []
        self._begins_again = False
        self._fault = ""

    @property
    def problem(self) -> str | None:
        """Why ticks are not written down; None if they are, or if no journal is kept."""
        return (self._journal.failed if self._journal is not None else "") or self._fault or None

    def record(
        self, before: Memory, seen: CycleInput | None, report: Report, unwritten: Sequence[str] = ()
    ) -> None:
        """Write down one cycle, with what it remembered before.

        It saw nothing if an error kept it from looking. `unwritten` are the topologies whose plan
        another controller had changed in the meantime.
        """
        journal = self._journal
        if journal is None:
            return
        writes = not journal.resting
        begins = journal.wants_segment or self._begins_again
        time_s = report.topologies[0].time_s
        heads = begins or self._sequence - self._headed >= HEAD_TICKS
        head = self._guarded(lambda: self._head(before, time_s)) if writes and heads else None
        self._sequence += 1
        if writes and (head is not None or not begins):
            body = self._guarded(lambda: self._tick(seen, report, unwritten))
            if body is not None:
                bodies = [body] if head is None else [head, body]
                journal.append(bodies, begins=begins, moves=self._moves)
                self._commands, self._moves = [], []
                self._begins_again = False
                return
        # The next record cannot build on one that was not written.
        self._begins_again = True

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def add_moves(self, moves: Iterable[dict[str, Any]]) -> None:
        """Write moves that have ended with the next record; those that are there are not written
        again.
        """
        if self._journal is not None:
            self._moves = self._guarded(lambda: list(map(compact, moves))) or []

    def note(self, command: dict[str, Any]) -> None:
        """Put what operators ask for into the next record; no decision depends on it."""
        if self._journal is not None and len(self._commands) < NOTES_LIMIT:
            self._commands.append(command)

    def _head(self, before: Memory, time_s: float) -> bytes:
        head = Head(
            FORMAT,
            self._journal.name if self._journal else "",
            self._sequence,
            time_s,
            self._config.keys_in_force,
            encode(replace(before, layouts={})),
        )
        self._headed = self._sequence
        self._written, self._seen = {}, {}
        return compact(msgspec.to_builtins(head))

    def _tick(self, seen: CycleInput | None, report: Report, unwritten: Sequence[str]) -> bytes:
        found = seen or CycleInput(0.0, report.topologies[0].time_s, None)
        record = TickRecord(
            seq=self._sequence,
            cluster=next((view.plan.cluster for view in found.topologies), ""),
            now_s=found.now_s,
            time_s=found.time_s,
            epoch=found.epoch,
            controls=found.controls,
            drained=tuple(found.drained),
            free=tuple(sorted(map(str, found.free))),
            views=tuple(map(_view, found.topologies)),
            load_nodes=tuple(load.node for load in found.loads),
            rests=tuple((topology, str(executor), s) for topology, executor, s in found.rests),
            not_begun=tuple((topology, str(executor)) for topology, executor in found.not_begun),
            answers=tuple((topology, encode(answer)) for topology, answer in found.answers),
            begun=found.begun,
            refused=found.refused,
            guard_answers=found.guard_answers,
            earlier=tuple((topology, str(executor), s) for topology, executor, s in found.earlier),
            searches=found.searches,
            error=repr(report.error) if seen is None else None,
            unwritten=tuple(unwritten),
            commands=tuple(self._commands),
            cycles=Raw(as_json(map(cycle_record, report.topologies))),
            publications=self._changed({v.id: v.publication for v in found.topologies}),
            acks=self._changed({ack.node: ack for v in found.topologies for ack in v.acks}),
            loads=self._changed({load.node: load for load in found.loads}),
        )
        return wire.ENCODER.encode(record)

    def _changed(self, messages: Mapping[str, Message]) -> Any:
        """Give the bytes of messages that are not what was written last, as `Raw`."""
        keyed = {(type(message), name): message for name, message in messages.items()}
        # An unchanged value is usually the same object.
        fresh = {key: one for key, one in keyed.items() if self._seen.get(key) is not one}
        data = dict(zip(fresh, self._data_of(list(fresh.values())), strict=True))
        new = {key: one for key, one in data.items() if self._written.get(key) != one}
        self._seen |= fresh
        self._written |= new
        return tuple(map(Raw, new.values()))

    def _guarded(self, make: Callable[[], T]) -> T | None:
        """Keep a fault of the journal away from the cycle."""
        try:
            made = make()
        except Exception as error:
            if not self._fault:
                log.exception("journal_fault", reason=repr(error))
            self._fault = repr(error)
            return None
        self._fault = ""
        return made


def _view(view: TopologyView) -> ViewRecord:
    return ViewRecord(
        topology=view.id,
        stand_back=view.stand_back,
        plan=view.plan,
        acks=tuple(ack.node for ack in view.acks),
    )
