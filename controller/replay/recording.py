"""Turns a journal into arrays: the load of each tick, free of whatever was decided then.

The rates are those between two reports, not smoothed. The placement is the one at the beginning,
with the changes that nstorm did not make itself. So any configuration can be run over them.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from controller.config import Config
from controller.core.blocks import ended_between
from controller.core.capacity import Capacity
from controller.core.cluster import Cluster, Floats, Ints, Level, LoadSnapshot, Singles, Traffic
from controller.core.decision import Outcome
from controller.core.figures import Peak
from controller.core.fit import Fit, beside_each_other
from controller.core.latency import Timed, added, observe_timed
from controller.core.layout import Layout, layout_of, opened_by
from controller.core.limits import Limits
from controller.core.meters import NodeRates, observe_nodes
from controller.core.metrics import Rates, by_topology, observe
from controller.core.peaks import NO_PEAKS, Peaks, emitted_tps, peaks_each
from controller.core.picture import outside_of, unmeasured_nodes
from controller.core.sizes import pair_keys
from controller.core.spaces import COLUMNS, levels_of
from controller.core.tasks import component_targets
from controller.core.topology import TopologyView
from controller.cycle import Memory
from controller.journal.lines import of_another_version
from controller.journal.reader import Log, Tick
from controller.journal.record import TickRecord, decode
from controller.replay.playback import SeenReader, recorded_config
from migration.meters import ACKED, FAILED, STATE
from migration.model import LATENCY_BUCKETS, NodeAcks, Slot, WorkerLoad, topology_name

# Half the memory; tuples per second need no more digits.
Counts: TypeAlias = NDArray[np.int32]
SPAN_BYTES = 32 * 2**20
NONE_TIMED: Counts = np.zeros(LATENCY_BUCKETS, np.int32)
# What happened in a longer silence is not known: it counts for no more than this, or two cycles.
LONGEST_TICK_S = 60.0
_AWAY = frozenset({Outcome.STAND_BACK.value, Outcome.STALE_METRICS.value})


@dataclass(frozen=True, slots=True)
class PlacementChange:
    row: int  # the first tick with it
    executor: int
    worker: int
    own: bool  # the recorded controller made it; a replay decides these again


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """What users felt in each tick: tuples at the spouts that ended in it."""

    acked: Floats  # (T,), NaN where it is not known
    failed: Floats  # (T,), NaN where it is not known
    timed: Counts  # (T, B), acked tuples by time, as in `core.latency`; none where not known

    @classmethod
    def unknown(cls, ticks: int) -> "Ended":
        nothing = np.full(ticks, np.nan)
        return cls(nothing, nothing, np.zeros((ticks, LATENCY_BUCKETS), np.int32))

    def rows(self, cut: slice | NDArray[np.bool_]) -> "Ended":
        return Ended(self.acked[cut], self.failed[cut], self.timed[cut])


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """What limits placements in each tick, apart from what the topology's executors use.

    Where workers share the CPU of their node, as in a live run.
    """

    # (T, W) each, by the meters of `SPACES`; NaN where not known. One that is never known is not
    # there.
    spaces: Mapping[str, Singles]
    # (T, N), what others than the topology use of each node's CPU; NaN where not known
    other_cores: Singles
    other_peak_cores: Singles  # (T, N), how much more they use at their peaks; as `other_cores`
    peak_tps: Floats  # (T,), the topology's highest input, as in `Peaks`; NaN where not known

    @classmethod
    def unknown(cls, ticks: int, nodes: int) -> "Room":
        by_node = np.full((ticks, nodes), np.nan, np.float32)
        return cls({}, by_node, by_node, np.full(ticks, np.nan))

    def rows(self, cut: slice) -> "Room":
        spaces = {name: table[cut] for name, table in self.spaces.items()}
        others = self.other_cores[cut], self.other_peak_cores[cut]
        return Room(spaces, *others, self.peak_tps[cut])

    @property
    def others(self) -> Floats:
        """What others use, and how much more at their peaks, (T, 2, N)."""
        return np.stack([self.other_cores, self.other_peak_cores], axis=1).astype(np.float64)

    def levels_at(self, row: int) -> Mapping[str, Level]:
        """Give how full spaces were in a tick, by name, where something is known."""
        columns = {name: table[row].astype(np.float64) for name, table in self.spaces.items()}
        workers = [len(one) for one in columns.values()]
        return levels_of(columns, max(workers, default=0))


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Ticks in which one topology kept its executors and workers."""

    cluster: Cluster  # closed where a worker has no hooks
    hosts: Mapping[str, str]  # host name of each node
    # The first tick, for all that does not change within the span; its states are of the last one.
    first: LoadSnapshot
    place: Ints  # (E,), index of each executor's worker before the first tick's shifts
    time_s: Floats  # (T,), Unix seconds
    span_s: Floats  # (T,), how long each tick's load stands for
    cpu_cores: Singles  # (T, E)
    traffic_tps: Singles  # (T, P), in the order of `source` and `target`
    source: Ints  # (P,), sorted as in `Traffic`
    target: Ints  # (P,)
    size_bytes: Floats  # (P,), of a tuple at the end; NaN where not known
    held: NDArray[np.bool_]  # (T,), nothing could be decided then, whatever the configuration
    ended: Ended
    room: Room
    shifts: tuple[PlacementChange, ...]

    @property
    def topology(self) -> str:
        return self.first.topology

    def stretches(self) -> Iterator[tuple[int, int, list[PlacementChange]]]:
        """Cut the ticks where the placement changes: first row, end, and the changes."""
        changes: dict[int, list[PlacementChange]] = {0: [], len(self.time_s): []}
        for shift in self.shifts:
            changes.setdefault(shift.row, []).append(shift)
        for begin, end in pairwise(sorted(changes)):
            yield begin, end, changes[begin]

    @property
    def middle_s(self) -> Floats:
        """(T,), the middle of the time that each load stands for: its hour and day are those."""
        return self.time_s - self.span_s / 2

    def placements(self) -> Iterator[tuple[int, int, Ints]]:
        """Give each placement, (E,), as recorded, with the rows of its ticks: first and end."""
        place = self.place.copy()
        for begin, end, shifts in self.stretches():
            for shift in shifts:
                place[shift.executor] = shift.worker
            yield begin, end, place

    def within(self, begin_s: float, end_s: float) -> "Span":
        """Cut out a time, both ends (Unix seconds) included; it may have no tick at all.

        The placement is as recorded then.
        """
        inside = (self.time_s >= begin_s) & (self.time_s <= end_s)
        if inside.all():
            return self
        rows = np.flatnonzero(inside)
        return self.rows(*(int(rows[0]), int(rows[-1]) + 1) if rows.size else (0, 0))

    def rows(self, start: int, stop: int) -> "Span":
        """Cut out some ticks; the placement is as recorded then."""
        cut = slice(start, stop)
        place = self.place.copy()
        for shift in self.shifts:
            if shift.row < start:
                place[shift.executor] = shift.worker
        return replace(
            self,
            place=place,
            time_s=self.time_s[cut],
            span_s=self.span_s[cut],
            cpu_cores=self.cpu_cores[cut],
            traffic_tps=self.traffic_tps[cut],
            held=self.held[cut],
            ended=self.ended.rows(cut),
            room=self.room.rows(cut),
            shifts=tuple(
                replace(s, row=s.row - start) for s in self.shifts if start <= s.row < stop
            ),
        )


class _Look(NamedTuple):
    """A topology in a tick in which all of it was measured."""

    before: Layout | None  # of the tick before
    layout: Layout
    said: Traffic  # with pairs that are silent: so the pairs of most ticks are the very same arrays
    fit: Fit  # with what others use
    input_tps: float
    peak_tps: float = np.nan


@dataclass(slots=True)
class _Open:
    """A span that still grows."""

    layout: Layout
    # The placement before the first tick, and that of the newest.
    start: Ints
    place: Ints
    # Where the recorded controller has sent executors, and where they came from.
    sent: dict[str, tuple[str, str]]
    first: LoadSnapshot | None = None
    time_s: list[float] = field(default_factory=list)
    span_s: list[float] = field(default_factory=list)
    cpu_cores: list[Singles] = field(default_factory=list)
    traffic: list[tuple[Ints, Ints, Singles]] = field(default_factory=list)  # as in `Traffic`
    held: list[bool] = field(default_factory=list)
    ended: list[tuple[float, float, Counts]] = field(default_factory=list)
    spaces: list[dict[str, Singles]] = field(default_factory=list)
    others: list[Singles] = field(default_factory=list)  # (2, N), as in `Room.others`
    peak_tps: list[float] = field(default_factory=list)
    shifts: list[PlacementChange] = field(default_factory=list)
    rates: Rates = field(default_factory=Rates)  # of the newest tick
    kept_bytes: int = 0

    def takes(self, layout: Layout) -> bool:
        own = self.layout
        same = own is layout or (
            own.executors == layout.executors
            and own.pinned == layout.pinned
            and own.made_of.publication.edges == layout.made_of.publication.edges
            and own.cluster.workers == layout.cluster.workers
            and own.cluster.nodes == layout.cluster.nodes
            and own.cluster.closed == layout.cluster.closed
            and np.array_equal(own.cluster.capacity_cores, layout.cluster.capacity_cores)
        )
        return same and self.kept_bytes < SPAN_BYTES

    def add(
        self,
        look: _Look,
        rates: Rates,
        time_s: float,
        span_s: float,
        *,
        held: bool,
        ended: tuple[float, float, Counts],
    ) -> None:
        layout, said, cluster = look.layout, look.said, look.fit.cluster
        self._shift(layout)
        self.first = self.first or layout.snapshot(rates, time_s=time_s)
        self.layout = layout
        self.time_s.append(time_s)
        self.span_s.append(span_s)
        self.cpu_cores.append(look.fit.demand.astype(np.float32))
        self.traffic.append((said.source, said.target, said.tps.astype(np.float32)))
        self.held.append(held)
        self.ended.append(ended)
        self.spaces.append(_spaces(layout, rates))
        others = cluster.other_cores, cluster.peak_cores
        self.others.append(np.stack([_by_node(cluster, one) for one in others]))
        self.peak_tps.append(look.peak_tps)
        self.rates = rates
        self.kept_bytes += self.cpu_cores[-1].nbytes + self.traffic[-1][2].nbytes
        self.kept_bytes += ended[2].nbytes + self.others[-1].nbytes
        self.kept_bytes += sum(one.nbytes for one in self.spaces[-1].values())

    def _shift(self, layout: Layout) -> None:
        """Note which executors are elsewhere than in the tick before."""
        row = len(self.time_s)
        for executor in np.flatnonzero(self.place != layout.place).tolist():
            worker = int(layout.place[executor])
            ends = self.sent.get(layout.executors[executor], ())
            own = layout.cluster.workers[worker] in ends
            self.shifts.append(PlacementChange(row, executor, worker, own))
        self.place = layout.place

    def closed(self) -> Span:
        assert self.first is not None  # a span is opened with its first tick
        count, component = len(self.layout.executors), self.layout.tasks.component
        # The hooks look at states each minute: at the beginning of a log none is known.
        state_bytes = self.layout.executor_meters(self.rates).get(STATE.column)
        keys = {id(source): source * count + target for source, target, _ in self.traffic}
        pairs = np.unique(np.concatenate(list(keys.values())))
        at = {key: np.searchsorted(pairs, one) for key, one in keys.items()}
        tps = np.zeros((len(self.traffic), len(pairs)), dtype=np.float32)
        for row, (source, _, said) in enumerate(self.traffic):
            tps[row, at[id(source)]] = said
        loud, others = tps.any(axis=0), np.array(self.others)
        pairs, tps = pairs[loud], tps.compress(loud, axis=1)  # row by row, as loops need it
        return Span(
            cluster=self.layout.cluster,
            hosts=self.layout.made_of.publication.hosts,
            first=replace(self.first, state_bytes=state_bytes),
            place=self.start,
            time_s=np.array(self.time_s),
            span_s=np.array(self.span_s),
            cpu_cores=np.array(self.cpu_cores, dtype=np.float32),
            traffic_tps=tps,
            source=pairs // count,
            target=pairs % count,
            size_bytes=self.rates.sizes.mean_bytes(
                pair_keys(component[pairs // count], component[pairs % count])
            ),
            held=np.array(self.held, dtype=np.bool_),
            ended=Ended(*(np.array(column) for column in zip(*self.ended, strict=True))),
            room=Room(self._spaces(), others[:, 0], others[:, 1], np.array(self.peak_tps)),
            shifts=tuple(self.shifts),
        )

    def _spaces(self) -> dict[str, Singles]:
        unknown = np.full(len(self.layout.cluster.workers), np.nan, np.float32)
        known = [name for name in COLUMNS if any(name in row for row in self.spaces)]
        return {name: np.array([row.get(name, unknown) for row in self.spaces]) for name in known}


def _spaces(layout: Layout, rates: Rates) -> dict[str, Singles]:
    """Give what is known of the spaces of each worker, (W,) each, by meter."""
    shown = {} if layout.cluster.node_cores is None else layout.meters(rates)
    return {name: shown[name].astype(np.float32) for name in COLUMNS if name in shown}


def _by_node(cluster: Cluster, cores: Floats | None) -> Singles:
    return (np.full(len(cluster.nodes), np.nan) if cores is None else cores).astype(np.float32)


class _Remembered(msgspec.Struct):
    """What a replay needs of a head's `Memory` each time."""

    peaks: dict[str, Peaks] = {}


class _RecordedMove(msgspec.Struct, rename={"source": "from", "target": "to"}):
    executor: str
    source: str
    target: str


class _RecordedEffect(msgspec.Struct):
    """What a run of moves has changed; only which run it is."""

    begun_s: float


class _RecordedCycle(msgspec.Struct):
    """The end of a recorded cycle; it has a total if the load could be measured then."""

    topology: str
    outcome: str
    moves: tuple[_RecordedMove, ...] = ()
    total_tps: float | None = None
    effect: msgspec.Raw = msgspec.Raw(b"")


def _cycles(told: msgspec.Raw) -> dict[str, _RecordedCycle]:
    try:
        return {
            one.topology: one for one in msgspec.json.decode(told, type=tuple[_RecordedCycle, ...])
        }
    except msgspec.ValidationError as error:
        raise of_another_version(error) from error


@dataclass(slots=True)
class _Topology:
    """The memory of one topology while a journal is read."""

    rates: Rates
    timed: Mapping[Slot, Timed] = field(default_factory=dict)
    ended: tuple[float, float, Counts] = (np.nan, np.nan, NONE_TIMED)  # since the report before
    plain: Layout | None = None  # as the live cycle has it
    hooked: tuple[Slot, ...] = ()
    layout: Layout | None = None  # closed where a worker has no hooks
    seen: TopologyView | None = None  # what both were laid out for
    open: _Open | None = None
    own: dict[str, tuple[str, str]] = field(default_factory=dict)

    def observe(
        self, view: TopologyView, reports: Sequence[tuple[WorkerLoad, bool]], now_s: float
    ) -> None:
        targets = component_targets(view.publication)
        rates, timed = self.rates, self.timed
        self.rates = observe(rates, reports, targets, now_s=now_s, ewma=1.0)
        self.timed = observe_timed(timed, (report for report, _ in reports))
        self.ended = (
            ended_between(rates, self.rates, ACKED),
            ended_between(rates, self.rates, FAILED),
            added(timed, self.timed).astype(np.int32),
        )

    def look(
        self, view: TopologyView, capacity: Capacity, opened: Mapping[str, int]
    ) -> _Look | None:
        """Lay the topology out, and add its load up; None where a part of it is not known."""
        before, layout = self.layout, self._laid_out(view, capacity, opened)
        if not layout.knows_all(self.rates):
            return None
        self.layout, rows = layout, layout.rows
        said = Traffic(rows.source, rows.target, rows.sums(self.rates.tps))
        cores = layout.cpu_cores(self.rates, said)
        fit = Fit.at(layout.cluster, layout.place, cores, Limits())
        input_tps = emitted_tps(view.publication.components, layout.component_of, said)
        return _Look(before, layout, said, fit, input_tps)

    def add(
        self,
        view: TopologyView,
        look: _Look,
        record: TickRecord,
        cycle: _RecordedCycle,
        *,
        span_s: float,
    ) -> Iterator[Span]:
        """Take a tick in; gives the span before it if that has come to its end."""
        before, layout = look.before, look.layout
        if self.open is not None and not self.open.takes(layout):
            yield from self.close()
        if self.open is None:
            # What changed since the tick before is a shift as well.
            start = before.place if before and _same_places(layout, before) else layout.place
            self.open = _Open(layout, start, start, self.own)
        unwritten = record.unwritten and cycle.topology in record.unwritten
        paused = record.controls.held(view.publication.name, record.time_s) is not None
        held = unwritten or cycle.outcome in _AWAY or paused
        self.open.add(look, self.rates, record.time_s, span_s, held=bool(held), ended=self.ended)
        # A plan that was not written moved nothing.
        if cycle.outcome == Outcome.MOVED and not unwritten:
            self.own.update({move.executor: (move.source, move.target) for move in cycle.moves})

    def _laid_out(
        self, view: TopologyView, capacity: Capacity, opened: Mapping[str, int]
    ) -> Layout:
        seen, self.seen = self.seen, view
        if (
            self.layout is not None
            and seen is not None
            and not opened
            and not self.layout.made_of.opened
            and self.layout.made_of.capacity == capacity
            and _same_but_for_times(view, seen)
        ):
            return self.layout.fitted(self.rates)
        plain = layout_of(view, capacity, self.plain, opened)
        hooked = view.observation.hooked
        if self.layout is None or plain is not self.plain or hooked != self.hooked:
            self.plain, self.hooked, names = plain, hooked, set(map(str, hooked))
            workers = plain.cluster.workers
            closed = tuple(None if name in names else "no worker with hooks" for name in workers)
            self.layout = replace(plain, cluster=replace(plain.cluster, closed=closed))
        return self.layout.fitted(self.rates)

    def close(self) -> Iterator[Span]:
        if self.open is not None:
            yield self.open.closed()
            self.open = None


def _same_but_for_times(view: TopologyView, before: TopologyView) -> bool:
    """Return whether a topology is laid out as before: most acks only show that a JVM is alive."""
    return (
        view.publication is before.publication
        and view.plan == before.plan
        and len(view.acks) == len(before.acks)
        and all(map(_same_acks, view.acks, before.acks))
    )


def _same_acks(one: NodeAcks, other: NodeAcks) -> bool:
    if one is other:
        return True
    # Of two JVMs in one slot that which reported last counts, so there times matter.
    alone = len({ack.slot for ack in one.workers}) == len(one.workers)
    return alone and one.timeless() == other.timeless()


def _same_places(one: Layout, other: Layout) -> bool:
    """Return whether places of both mean the same: they have the same workers and executors."""
    same = one.cluster.workers == other.cluster.workers
    return same and one.executors == other.executors


def spans(log: Log) -> Iterator[Span]:
    """Read journals of one cluster as arrays; of several topologies the spans come mixed.

    They come in the order of their beginnings. A span holds at most about `SPAN_BYTES` of traffic,
    so memory does not grow with the log.
    """
    # A controller's journal is begun when its time comes: a long log may be of many.
    waiting = sorted((log.begins_s(writer), writer) for writer in range(len(log.writers)))
    begun: list[tuple[float, int, Span, Iterator[Span]]] = []
    while waiting or begun:
        while waiting and (not begun or waiting[0][0] <= begun[0][0]):
            _, writer = waiting.pop(0)
            _push(begun, writer, SpanReader().read(log, writer))
        if begun:
            _, writer, span, rest = heapq.heappop(begun)
            yield span
            _push(begun, writer, rest)


def _push(
    begun: list[tuple[float, int, Span, Iterator[Span]]], writer: int, rest: Iterator[Span]
) -> None:
    span = next(rest, None)
    if span is not None:
        heapq.heappush(begun, (float(span.time_s[0]), writer, span, rest))


class SpanReader:
    """Reads one controller's journal, or a part of it."""

    def __init__(self) -> None:
        # The newest effect of each run of moves, as JSON, by topology and when the run began.
        self.effects: dict[tuple[str, float], bytes] = {}
        self._seen = SeenReader()
        self._topologies: dict[str, _Topology] = {}
        self._config = Config()
        self._before_s = -np.inf
        # What a journal's first tick is compared with.
        self._remembered = Memory()
        self._nodes = NodeRates()
        self._peaks: Mapping[str, Peaks] = {}

    def read(self, log: Log, writer: int, *, skips_first: bool = False) -> Iterator[Span]:
        """Read the journal as arrays.

        The first tick may be there only for what the second is compared with; then nothing of it
        counts.
        """
        for number, tick in enumerate(log.ticks(writer)):
            if tick.head is not None:
                self._config = recorded_config(tick.head)
                # From each head, so that a segment alone gives what the whole log gives.
                self._peaks = decode(_Remembered, tick.head.memory).peaks
            if tick.gap:
                yield from self._close(self._topologies)
                self._remembered = decode(Memory, tick.head.memory) if tick.head else Memory()
                self._nodes = self._remembered.nodes
            views = list(self._seen.views(tick.record))
            loads = self._seen.loads(tick.record)
            now_s, reports = tick.record.now_s, by_topology(loads)
            self._nodes = observe_nodes(self._nodes, loads, now_s=now_s, ewma=1.0)
            if tick.record.epoch is None or tick.superseded or tick.record.error:
                yield from self._close(self._topologies)
            else:
                yield from self._tick(tick, views, reports)
            if skips_first and number == 0:
                for known in self._topologies.values():
                    known.open = None
                log.skipped.clear()
        yield from self._close(self._topologies)

    def _tick(
        self,
        tick: Tick,
        views: list[TopologyView],
        reports: Mapping[str, list[tuple[WorkerLoad, bool]]],
    ) -> Iterator[Span]:
        record, config = tick.record, self._config
        longest_s = max(LONGEST_TICK_S, 2 * config.cycle_s)
        span_s = min(record.now_s - self._before_s, longest_s)
        span_s = span_s if np.isfinite(self._before_s) else config.cycle_s
        self._before_s = record.now_s
        cycles = _cycles(record.cycles)
        self._note(cycles.values())
        gone = self._topologies.keys() - {view.id for view in views}
        yield from self._close(gone)
        opened, looks = opened_by(views), dict[str, _Look]()
        for view in views:
            if view.id not in self._topologies:
                rates = self._remembered.rates.get(view.id, Rates())
                # What is smoothed is no rate of a tick.
                unknown = np.zeros(len(rates.slots), np.bool_)
                # Moves that were begun before this tick are in the plan until they have ended.
                begun = {str(e.executor): (str(e.source), str(e.target)) for e in view.plan.entries}
                self._topologies[view.id] = _Topology(replace(rates, known=unknown), own=begun)
            known, cycle = self._topologies[view.id], cycles.get(view.id)
            known.observe(view, reports.get(view.id, ()), record.now_s)
            if cycle is not None and cycle.total_tps is not None:
                look = known.look(view, config.capacity, opened)
                if look is not None:
                    looks[view.id] = look
        looks = self._beside(views, looks, record)
        inputs = {view.id: looks[view.id].input_tps if view.id in looks else None for view in views}
        self._peaks = peaks_each(self._peaks, inputs, record.time_s)
        for view in views:
            if (look := looks.get(view.id)) is not None:
                known, cycle = self._topologies[view.id], cycles[view.id]
                yield from known.add(view, look, record, cycle, span_s=span_s)
        for name in gone:
            del self._topologies[name]
        self._remembered = Memory()

    def _beside(
        self, views: Sequence[TopologyView], looks: Mapping[str, _Look], record: TickRecord
    ) -> dict[str, _Look]:
        """Note the peaks, and what others than each topology use of its nodes, as a live run."""
        if not self._config.capacity.is_shared:
            return dict(looks)
        rates = {name: self._topologies[name].rates for name in looks}
        outside = outside_of(views, rates, self._nodes, record.now_s)
        by_name = {name: self._peaks.get(topology_name(name), NO_PEAKS) for name in looks}
        tps = {name: peaks.peak_tps(record.time_s) for name, peaks in by_name.items()}
        times = {name: Peak(look.input_tps, tps[name]).times for name, look in looks.items()}
        alone = {name: replace(look.fit, peak_times=times[name]) for name, look in looks.items()}
        fits = beside_each_other(alone, unmeasured_nodes(views, looks), outside)
        return {
            name: look._replace(fit=fits[name], peak_tps=tps[name]) for name, look in looks.items()
        }

    def _note(self, cycles: Iterable[_RecordedCycle]) -> None:
        for cycle in cycles:
            if effect := bytes(cycle.effect):
                begun = msgspec.json.decode(effect, type=_RecordedEffect)
                self.effects[cycle.topology, begun.begun_s] = effect

    def _close(self, names: Iterable[str]) -> Iterator[Span]:
        for name in names:
            yield from self._topologies[name].close()
