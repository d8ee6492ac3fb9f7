"""Turns a journal into arrays: the load of each tick, free of whatever was decided then.

The rates are those between two reports, not smoothed, and the placement is the one at the beginning
with the changes that nstorm did not make itself; so any configuration can be run over them.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.config import Config
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.decide import Outcome
from controller.core.metrics import Rates, build_cluster, build_snapshot, observe
from controller.core.plan import settled_placement
from controller.journal.reader import Log
from controller.ports import TopologyView
from controller.replay.playback import Ports, recorded_config
from controller.vetoes import hooked_slots, pinned_executors

# Half the memory; tuples per second need no more digits.
Singles: TypeAlias = NDArray[np.float32]
SPAN_BYTES = 32 * 2**20
# After a longer silence the time between is nobody's.
LONGEST_TICK_S = 60.0
_AWAY = frozenset({Outcome.STAND_BACK.value, Outcome.STALE_METRICS.value})


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of placement as recorded.

    Attributes
    ----------
    row : int
        The first tick with it.
    executor, worker : int
        Indices.
    own : bool
        Whether the recorded controller made it; a replay decides these anew.
    """

    row: int
    executor: int
    worker: int
    own: bool


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Ticks in which one topology kept its executors and workers.

    Attributes
    ----------
    cluster : Cluster
        Places; closed where a worker has no hooks.
    first : LoadSnapshot
        The first tick, for all that does not change within the span.
    place : Ints, shape (E,)
        Index of each executor's worker before the first tick's shifts.
    time_s : Floats, shape (T,)
        Unix seconds.
    span_s : Floats, shape (T,)
        How long each tick's load stands for.
    cpu_cores : Singles, shape (T, E)
        By executor.
    traffic_tps : Singles, shape (T, P)
        By pair, in the order of `source` and `target`.
    source, target : Ints, shape (P,)
        Pairs, sorted as in `Traffic`.
    held : array of bool, shape (T,)
        Nothing could be decided then, whatever the configuration.
    shifts : tuple of Shift
        Changes of placement.
    """

    cluster: Cluster
    first: LoadSnapshot
    place: Ints
    time_s: Floats
    span_s: Floats
    cpu_cores: Singles
    traffic_tps: Singles
    source: Ints
    target: Ints
    held: NDArray[np.bool_]
    shifts: tuple[Shift, ...]

    @property
    def topology(self) -> str:
        """Id of the topology."""
        return self.first.topology

    def within(self, begin_s: float, end_s: float) -> "Span":
        """Cut out a time.

        Parameters
        ----------
        begin_s, end_s : float
            Unix seconds, both included.

        Returns
        -------
        Span
            With the placement as recorded then; it may have no tick at all.
        """
        inside = (self.time_s >= begin_s) & (self.time_s <= end_s)
        if inside.all():
            return self
        rows = np.flatnonzero(inside)
        start, stop = (int(rows[0]), int(rows[-1]) + 1) if rows.size else (0, 0)
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
            shifts=tuple(
                replace(s, row=s.row - start) for s in self.shifts if start <= s.row < stop
            ),
        )


@dataclass(slots=True)
class _Open:
    """A span that still grows."""

    cluster: Cluster
    first: LoadSnapshot
    place: Ints
    # Where the recorded controller has sent executors, and where they came from.
    sent: dict[str, tuple[str, str]]
    time_s: list[float] = field(default_factory=list)
    span_s: list[float] = field(default_factory=list)
    cpu_cores: list[Floats] = field(default_factory=list)
    traffic: list[Traffic] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)
    size_bytes: int = 0
    start: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.place

    def takes(self, cluster: Cluster, snapshot: LoadSnapshot) -> bool:
        """Tell whether a tick belongs to the same span."""
        first, own = self.first, self.cluster
        same = (
            first.executors == snapshot.executors
            and first.pinned == snapshot.pinned
            and first.edges == snapshot.edges
            and own.workers == cluster.workers
            and own.closed == cluster.closed
            and bool(np.array_equal(own.capacity_cores, cluster.capacity_cores))
        )
        return same and self.size_bytes < SPAN_BYTES

    def add(self, snapshot: LoadSnapshot, span_s: float, *, held: bool) -> None:
        """Take a tick in."""
        row = len(self.time_s)
        for executor in np.flatnonzero(self.place != snapshot.place).tolist():
            worker = int(snapshot.place[executor])
            ends = self.sent.get(snapshot.executors[executor], ())
            own = self.cluster.workers[worker] in ends
            self.shifts.append(Shift(row, executor, worker, own))
        self.place = snapshot.place
        self.time_s.append(snapshot.time_s)
        self.span_s.append(span_s)
        self.cpu_cores.append(snapshot.cpu_cores)
        self.traffic.append(snapshot.traffic)
        self.held.append(held)
        self.size_bytes += 4 * (len(snapshot.traffic.tps) + len(snapshot.executors))

    def closed(self) -> Span:
        """Lay the ticks out as arrays."""
        count = len(self.first.executors)
        keys = [t.source * count + t.target for t in self.traffic]
        pairs = np.unique(np.concatenate(keys))
        tps = np.zeros((len(keys), len(pairs)), dtype=np.float32)
        for row, (key, traffic) in enumerate(zip(keys, self.traffic, strict=True)):
            tps[row, np.searchsorted(pairs, key)] = traffic.tps
        return Span(
            cluster=self.cluster,
            first=self.first,
            place=self.start,
            time_s=np.array(self.time_s),
            span_s=np.array(self.span_s),
            cpu_cores=np.array(self.cpu_cores, dtype=np.float32),
            traffic_tps=tps,
            source=pairs // count,
            target=pairs % count,
            held=np.array(self.held, dtype=np.bool_),
            shifts=tuple(self.shifts),
        )


@dataclass(slots=True)
class _Topology:
    """What is remembered of one topology while a journal is read."""

    rates: Rates = field(default_factory=dict)
    open: _Open | None = None
    own: dict[str, tuple[str, str]] = field(default_factory=dict)
    last: tuple[Cluster, LoadSnapshot] | None = None

    def place_in(self, cluster: Cluster, snapshot: LoadSnapshot) -> Ints:
        """Give the placement of the tick before, so that what changed since is a shift as well."""
        if self.last is None or self.last[0].workers != cluster.workers:
            return snapshot.place
        same = self.last[1].executors == snapshot.executors
        return self.last[1].place if same else snapshot.place


def spans(log: Log) -> Iterator[Span]:
    """Read a log as arrays.

    Parameters
    ----------
    log : Log
        Journals of one cluster.

    Yields
    ------
    Span
        In the order of their beginnings; of several topologies they come mixed. A span holds at
        most about `SPAN_BYTES` of traffic, so memory does not grow with the log.
    """
    of_writers = [_spans_of(log, writer) for writer in range(len(log.writers))]
    return heapq.merge(*of_writers, key=lambda span: float(span.time_s[0]))


def _spans_of(log: Log, writer: int) -> Iterator[Span]:
    ports, config = Ports(), Config()
    topologies: dict[str, _Topology] = {}
    before_s = -np.inf
    for tick in log.ticks(writer):
        if tick.head is not None:
            config = recorded_config(tick.head)
        if tick.gap:
            yield from _close(topologies.values())
            topologies = {}
            ports.take_loads((tick.head or {}).get("loads", ()))
        ports.show(tick.record)
        if tick.record["epoch"] is None or tick.superseded or tick.record.get("failed"):
            yield from _close(topologies.values())
            continue
        span_s = min(ports.now_s() - before_s, LONGEST_TICK_S)
        span_s = span_s if np.isfinite(before_s) else config.cycle_s
        before_s = ports.now_s()
        cycles = {cycle["topology"]: cycle for cycle in tick.record["cycles"]}
        views = {view.publication.topology: view for view in ports.topologies()}
        for gone in topologies.keys() - views.keys():
            yield from _close([topologies.pop(gone)])
        for name, view in views.items():
            known = topologies.setdefault(name, _Topology())
            cycle = cycles.get(name, {})
            known.rates = observe(known.rates, ports.loads(), name, now_s=ports.now_s(), ewma=1.0)
            if "total_tps" not in cycle:  # it could not be measured then
                continue
            cluster, snapshot = _measure(ports, view, known.rates, config)
            if known.open is not None and not known.open.takes(cluster, snapshot):
                yield from _close([known])
            held = cycle["outcome"] in _AWAY or tick.record.get("paused") is not None
            if known.open is None:
                known.open = _Open(cluster, snapshot, known.place_in(cluster, snapshot), known.own)
            known.open.add(snapshot, span_s, held=held)
            known.last = cluster, snapshot
            for move in cycle["moves"] if cycle["outcome"] == Outcome.MOVED else ():
                known.own[move["executor"]] = (move["from"], move["to"])
    yield from _close(topologies.values())


def _measure(
    ports: Ports, view: TopologyView, rates: Rates, config: Config
) -> tuple[Cluster, LoadSnapshot]:
    """Measure as the loop does, but with a worker without hooks closed."""
    publication = view.publication
    placement = settled_placement(publication, view.plan)
    slots = publication.slots | frozenset(placement.values())
    cluster = build_cluster(publication, slots, config.worker_capacity_cores)
    hooked = {str(slot) for slot in hooked_slots(view)}
    closed = tuple(None if name in hooked else "no worker with hooks" for name in cluster.workers)
    cluster = Cluster(
        cluster.nodes, cluster.workers, cluster.node_of, cluster.capacity_cores, closed
    )
    pinned = pinned_executors(view)
    snapshot = build_snapshot(cluster, publication, placement, rates, pinned, time_s=ports.time_s())
    return cluster, snapshot


def _close(topologies: Iterable[_Topology]) -> Iterator[Span]:
    for known in topologies:
        if known.open is not None:
            yield known.open.closed()
            known.open = None
