"""Writes down what each cycle of a controller saw and did.

It stands between the loop and its ports, not below them: what the ports gave is all that a decision
can depend on, so the same answers give the same decision, whatever the world they came from.
Messages are copied as the bytes that they came in, and only when they have changed.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import structlog

from controller.config import Config
from controller.core.classify import Limits, classify
from controller.core.cluster import inter_node_tps
from controller.journal.memory import RememberingController, encode
from controller.journal.record import FORMAT, joined
from controller.journal.writer import Writer
from controller.loop import CycleReport
from controller.ports import Clock, ClusterView, Leadership, LoadSource, PlanSink, TopologyView
from controller.targeting.search import Answer, Question, Search, at_once
from migration import wire
from migration.model import Entry, ExecutorId, NodeAcks, NodeLoad, Plan, Publication

log = structlog.get_logger()

Message = Publication | NodeAcks | NodeLoad
DataOf = Callable[[Sequence[Message]], Sequence[bytes]]
T = TypeVar("T")


def encoded(messages: Sequence[Message]) -> list[bytes]:
    """Write messages that never were bytes.

    Parameters
    ----------
    messages : sequence of Publication, NodeAcks or NodeLoad
        Any.

    Returns
    -------
    list of bytes
        JSON, in the same order.
    """
    return [wire.encode(message) for message in messages]


class _Ports:
    """Passes the ports' answers on, remembers them for one tick, and stops the clock within it."""

    def __init__(
        self,
        *,
        view: ClusterView,
        source: LoadSource,
        sink: PlanSink,
        lead: Leadership,
        clock: Clock,
        search: Search,
    ) -> None:
        self._view, self._source, self._sink = view, source, sink
        self._lead, self._clock, self._search = lead, clock, search
        self._frozen: tuple[float, float] | None = None
        self._forget()

    def _forget(self) -> None:
        self.seen: dict[str, Any] = {}
        self.views: Sequence[TopologyView] = ()
        self.reports: Sequence[NodeLoad] = ()
        self.begun: list[dict[str, Any]] = []

    @property
    def within_tick(self) -> bool:
        """Whether a cycle is running."""
        return self._frozen is not None

    def begin_tick(self) -> None:
        """Forget the last tick, and hold the clock."""
        self._forget()
        self._frozen = (self._clock.now_s(), self._clock.time_s())
        self.seen = {"now_s": self._frozen[0], "time_s": self._frozen[1], "epoch": None}

    def end_tick(self) -> None:
        """Let the clock go on."""
        self._frozen = None

    def now_s(self) -> float:
        """Tell the monotonic time."""
        return self._clock.now_s() if self._frozen is None else self._frozen[0]

    def time_s(self) -> float:
        """Tell the time of day."""
        return self._clock.time_s() if self._frozen is None else self._frozen[1]

    @property
    def epoch(self) -> int | None:
        """The leader's epoch."""
        self.seen["epoch"] = self._lead.epoch
        found: int | None = self.seen["epoch"]
        return found

    def topologies(self) -> Sequence[TopologyView]:
        """Show the topologies."""
        self.views = self._noting("topologies", self._view.topologies)
        return self.views

    def loads(self) -> Sequence[NodeLoad]:
        """Deliver load."""
        self.reports = self._noting("loads", self._source.loads)
        return self.reports

    def paused(self) -> str | None:
        """Tell who paused the controller."""
        self.seen["paused"] = self._noting("paused", self._view.paused)
        found: str | None = self.seen["paused"]
        return found

    def begin(self, plan: Plan, entry: Entry) -> Plan | None:
        """Pass a move on."""
        wish: dict[str, Any] = {"executor": str(entry.executor), "to": str(entry.target)}
        self.begun.append(wish)
        written = self._noting("begin", lambda: self._sink.begin(plan, entry))
        wish["plan"] = _plain(written)
        return written

    def search(self, question: Question) -> Answer | None:
        """Pass a question on; that the answer is not there yet is an answer, too."""
        answer = self._noting("search", lambda: self._search(question))
        noted = {"topology": question.snapshot.topology, "answer": encode(answer)}
        self.seen.setdefault("answers", []).append(noted)
        return answer

    def _noting(self, port: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Exception as error:  # passed on as it is: the loop makes an outcome of it
            self.seen["failed"] = {"port": port, "error": repr(error)}
            raise


class RecordedController(RememberingController):
    """A controller that keeps a journal.

    Parameters
    ----------
    config : Config
        Settings.
    view, source, sink, lead, clock : ports
        As for `Controller`.
    journal : Writer or None
        Where to write; None keeps no journal.
    data_of : callable
        Gives the bytes that messages came in.
    search : Search
        As for `Controller`.
    """

    def __init__(
        self,
        config: Config,
        *,
        view: ClusterView,
        source: LoadSource,
        sink: PlanSink,
        lead: Leadership,
        clock: Clock,
        journal: Writer | None,
        data_of: DataOf = encoded,
        search: Search = at_once,
    ) -> None:
        ports = _Ports(view=view, source=source, sink=sink, lead=lead, clock=clock, search=search)
        super().__init__(
            config,
            view=ports,
            source=ports,
            sink=ports,
            lead=ports,
            clock=ports,
            search=ports.search,
        )
        self._ports = ports
        self._journal = journal
        self._data_of = data_of
        self._sequence = 0
        self._segment = 0
        self._written: dict[tuple[type, str], bytes] = {}
        self._notes: dict[str, list[Any]] = {"rests": [], "ended": [], "commands": []}
        self._fault = ""

    @property
    def journal_problem(self) -> str | None:
        """Why ticks are not written down; None if they are, or if no journal is kept."""
        return (self._journal.failed if self._journal is not None else "") or self._fault or None

    def cycle(self) -> tuple[CycleReport, ...]:
        """Run one cycle, and write it down.

        Returns
        -------
        tuple of CycleReport
            As `Controller.cycle`.
        """
        journal = self._journal
        writes = journal is not None and not journal.resting
        begins = journal is not None and journal.wants_segment
        head = self._guarded(self._head) if writes and begins else None
        self._ports.begin_tick()
        try:
            reports = super().cycle()
        finally:
            self._ports.end_tick()
        self._sequence += 1
        if journal is not None and writes and (head is not None or not begins):
            body = self._guarded(lambda: self._tick_record(reports))
            if body is not None:
                journal.append([body] if head is None else [head, body], begins=begins)
                self._notes = {kind: [] for kind in self._notes}
        return reports

    def close(self) -> None:
        """Write what is left to write."""
        if self._journal is not None:
            self._journal.close()

    def note_move(self, topology: str, executor: ExecutorId) -> None:
        """Start an executor's cool-down.

        Parameters
        ----------
        topology : str
            Its topology.
        executor : ExecutorId
            What moves.
        """
        super().note_move(topology, executor)
        if not self._ports.within_tick:  # there a replay begins the same moves by itself
            self._note("rests", [topology, str(executor), self._moved_s[topology, executor]])

    def note_end(self, move: dict[str, Any]) -> None:
        """Write down how a move ended.

        Parameters
        ----------
        move : dict
            Ready for JSON.
        """
        self._note("ended", move)

    def note_command(self, command: dict[str, Any]) -> None:
        """Write down what an operator asked for, or what has become of it.

        Parameters
        ----------
        command : dict
            Ready for JSON.
        """
        self._note("commands", command)

    def _note(self, kind: str, what: Any) -> None:
        if self._journal is not None and len(self._notes[kind]) < 1000:
            self._notes[kind].append(what)

    def _head(self) -> bytes:
        """Write what must be known before the first tick of a segment."""
        known = [r for r in self._ports.reports if (NodeLoad, r.node) in self._written]
        data = [self._written[NodeLoad, report.node] for report in known]
        fields = {
            "kind": "head",
            "format": FORMAT,
            "writer": self._journal.name if self._journal else "",
            "segment": self._segment,
            "seq": self._sequence,
            "time_s": self._ports.time_s(),
            "config": self._config.keys_in_force,
            "memory": encode(self.memory, known),
        }
        body = joined(fields, {"loads": data})
        self._segment += 1
        self._written = {}
        self._notes["rests"] = []  # they are in the memory
        return body

    def _tick_record(self, reports: Iterable[CycleReport]) -> bytes:
        ports = self._ports
        acks = {ack.node: ack for view in ports.views for ack in view.acks}
        cycles = [cycle_record(report, self._config.limits) for report in reports]
        fields = {
            "kind": "tick",
            "seq": self._sequence,
            # Epochs count within one cluster's life only. The reader relies on this order of keys.
            "cluster": next((view.plan.cluster for view in ports.views), ""),
            **ports.seen,
            "views": [_view_record(view) for view in ports.views],
            "load_nodes": [load.node for load in ports.reports],
            "begun": ports.begun,
            **{kind: notes for kind, notes in self._notes.items() if notes},
            "cycles": cycles,
        }
        publications = {view.publication.topology: view.publication for view in ports.views}
        changed: dict[str, Iterable[bytes]] = {
            "publications": self._changed(publications),
            "acks": self._changed(acks),
            "loads": self._changed({load.node: load for load in ports.reports}),
        }
        return joined(fields, changed)

    def _changed(self, messages: dict[str, Any]) -> Sequence[bytes]:
        """Give the bytes of messages that are not what was written last."""
        keys = [(type(message), name) for name, message in messages.items()]
        data = dict(zip(keys, self._data_of(list(messages.values())), strict=True))
        # What has not changed is mostly the very same object, so comparing costs little.
        new = {key: one for key, one in data.items() if self._written.get(key) != one}
        self._written |= new
        return list(new.values())

    def _guarded(self, make: Callable[[], bytes]) -> bytes | None:
        """Keep a fault of the journal away from the loop; part of the loop's own last resort."""
        try:
            made = make()
        except Exception as error:
            if not self._fault:
                log.exception("journal_fault", reason=repr(error))
            self._fault = repr(error)
            return None
        self._fault = ""
        return made


def _view_record(view: TopologyView) -> dict[str, Any]:
    return {
        "topology": view.publication.topology,
        "stand_back": view.stand_back,
        # Small, and whole each time: a lost record must not leave a wrong plan for long.
        "plan": _plain(view.plan),
        "acks": [ack.node for ack in view.acks],
    }


def cycle_record(report: CycleReport, limits: Limits) -> dict[str, Any]:
    """Write down how a cycle ended.

    Parameters
    ----------
    report : CycleReport
        The report.
    limits : Limits
        Which workers were high or low.

    Returns
    -------
    dict
        Ready for JSON; the same report gives the same bytes.
    """
    found: dict[str, Any] = {
        "tick": report.tick,
        "topology": report.topology,
        "time_s": report.time_s,
        "outcome": report.outcome.value,
        "reason": report.reason,
        "warnings": list(report.warnings),
        "moves": [move.as_row() for move in report.moves],
        "plan": _plain(report.plan),
    }
    cluster, snapshot = report.cluster, report.snapshot
    if cluster is None or snapshot is None:
        return found
    classes = classify(cluster, snapshot, limits)
    found["inter_node_tps"] = inter_node_tps(cluster, snapshot)
    found["total_tps"] = snapshot.traffic.total_tps
    found["workers"] = [
        {"slot": slot, "cpu_cores": load, "load_frac": share, "class": _class(high, low)}
        for slot, load, share, high, low in zip(
            cluster.workers,
            classes.load_cores.tolist(),
            classes.load_frac.tolist(),
            classes.high.tolist(),
            classes.low.tolist(),
            strict=True,
        )
    ]
    return found


def _class(high: bool, low: bool) -> str:
    return "high" if high else "low" if low else "normal"


def _plain(plan: Plan | None) -> Any:
    return None if plan is None else json.loads(wire.encode(plan))
