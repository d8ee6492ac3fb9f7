"""Makes a journal of tables and metrics that something else has written.

The windows are run past a controller in `advise`, so what comes out is a journal like any other.
"""

import csv
import itertools
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from controller.config import build
from controller.core.cluster import Floats, Ints, natural_key
from controller.core.times import HOUR_S
from controller.ingest import MOST_FRAC
from controller.ingest.metrics_log import GAP_TIMES, Sample, loads, samples
from controller.ingest.prometheus import prometheus_rows
from controller.ingest.quarantine import Quarantine
from controller.ingest.signs import (
    IngestError,
    Sent,
    Sign,
    Used,
    gaps,
    times_apart,
    wrong_capacity,
    wrong_cpu,
    wrong_edges,
    wrong_time,
)
from controller.ingest.world import Window, WindowWorld, record_windows
from controller.journal.writer import Bounds, Writer
from controller.output import counted
from migration import ModelError
from migration.extras import pip_install
from migration.model import Component, Edge, ExecutorId, Node, PlacedExecutor, Publication, Slot

EDGES = ("time_s", "source", "target", "tuples")
CPU = ("time_s", "executor", "cpu_cores")
PLACES = ("executor", "worker")
KINDS = ("spout", "bolt")
TABLES = (".csv", ".parquet", ".json")
FIELDS = ("worker", "node", "component", "kind", "capacity_cores")
FIRST_PORT, ASSUMED_WORKERS, ASSUMED_SPAN_S = 6700, 4, 5.0
# More than any worker has, and any pair sends in a window. A journal has no numbers above 2^63.
MOST_CAPACITY_CORES, MOST_TUPLES = 1e4, 1e12
# How many names a message lists of what is missing.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class _TableRow:
    """A row of a table; `name` is what a refusal calls it, and `at` its number."""

    name: str
    at: int
    values: Mapping[str, Any]

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if value in (None, ""):
            raise _BadCell(self, "empty cell", "", f"{key} is empty")
        return str(value)

    def number(self, key: str, most: float = math.inf) -> float:
        text = self.text(key)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0 <= value <= most or value == math.inf:
            above = "" if most == math.inf else f" and at most {most:g}"
            why = f"{key} must be a number of at least 0{above}, is {text!r}"
            raise _BadCell(self, "no number", text, why)
        return value


class _BadCell(IngestError):
    """A cell cannot be read; where a row can be left out, that one is."""

    def __init__(self, row: _TableRow, rule: str, value: str, why: str) -> None:
        super().__init__(f"{row.name}: {why}")
        self.found = Sign(row.at, rule, value, why)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an executor is, and what else its row has, if anything; `row` names the row."""

    row: str
    worker: str
    node: str = ""
    component: str = ""
    kind: str = ""
    capacity_cores: float | None = None

    def joined(self, other: "_Place", *names: str) -> "_Place":
        """Take over what the other one has and this one does not; both may not differ."""
        for name in names:
            one, two = getattr(self, name), getattr(other, name)
            if one and two and one != two:
                raise IngestError(f"{other.row}: {name} is {two}, but {one} in {self.row}")
        return replace(
            self, **{name: getattr(self, name) or getattr(other, name) for name in names}
        )


@dataclass(slots=True)
class Tables:
    """What was read of all files, with lines on it for people."""

    quarantine: Quarantine
    edges: list[tuple[float, str, str, float]] = field(default_factory=list)
    cpu: list[tuple[float, str, float]] = field(default_factory=list)
    places: dict[str, _Place] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    # Of the logs of metrics, which are one run.
    logs: list[Path] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    # Ends of windows of a log, also of those without traffic.
    sampled_s: list[float] = field(default_factory=list)
    # Rows of each file that are right alone, with the number of all.
    kept: list[tuple[Path, int, list[Sent | Used]]] = field(default_factory=list)
    # Of all files together: the ends of the windows, in order, and what `gaps` finds in them.
    times_s: list[float] = field(default_factory=list)
    usual_s: float = 0.0
    long: list[tuple[float, float]] = field(default_factory=list)

    @property
    def first_span_s(self) -> float:
        return self.usual_s or ASSUMED_SPAN_S


def ingest(
    files: Iterable[Path], out: Path, topology: str, most_frac: float = MOST_FRAC
) -> list[str]:
    """Write a journal of tables, known by their columns, and of logs of metrics.

    The folder `out` must hold no journal yet. What was left out stays there as a table of its own.
    Gives lines on what was read, left out, and missing and assumed. Raises `IngestError` where a
    file cannot be read, more than `most_frac` of its rows are wrong, or there is no traffic in any.
    """
    if out.exists() and any(out.glob("*.jsonl*")):
        raise IngestError(f"{out}: holds a journal already; name another folder")
    tables = gathered(files, most_frac)
    names = _executors(tables)
    publication = _publication(tables, names, topology)
    windows = list(_windows(tables, names, publication))
    spans_s = [window.span_s for window in windows]
    config = build({"cycle.secs": max(float(np.median(spans_s)), 0.1)})
    world = WindowWorld(publication)
    left_out = tables.quarantine.write(out)
    writer = Writer(out, uuid.uuid4().hex[:12], Bounds(days=1e6, size_bytes=2**50))
    for _ in record_windows(world, windows, config, writer):
        pass
    if writer.failed:
        raise IngestError(f"{out}: {writer.failed}")
    if left_out is not None:
        rows = counted(tables.quarantine.count, "row")
        what = f"left out: {rows}" if tables.quarantine.count else "gaps"
        tables.said.append(f"{what}, listed in {left_out}")
    return [
        *tables.said,
        f"{counted(len(windows), 'window')} of {counted(len(names), 'executor')}: {out}",
    ]


def gathered(files: Iterable[Path], most_frac: float = MOST_FRAC) -> Tables:
    """Read all files, without what shows a sure sign; raises `IngestError` as `ingest` does."""
    tables = Tables(Quarantine(most_frac))
    # A table's row on an executor wins, so logs come last.
    for path in sorted(files, key=lambda path: path.suffix not in TABLES):
        _read(path, tables)
    _take_kept(tables)
    # Each table may be right alone, as that of a worker with seconds of its own.
    if why := times_apart(row[:3] for row in tables.edges):
        raise IngestError(f"the tables together: {why}")
    if tables.logs:
        _take_loads(tables)
    if not tables.edges:
        raise IngestError("no file holds traffic: a table with " + ", ".join(EDGES) + " is needed")
    times_s = {row[0] for row in tables.edges}
    first_s = min(times_s)
    tables.times_s = sorted(times_s.union(t for t in tables.sampled_s if t > first_s))
    tables.usual_s, tables.long = gaps(tables.times_s)
    _check_together(tables)
    of = [str(path) for path, _, rows in tables.kept if rows and isinstance(rows[0], Sent)]
    named = ", ".join(of or map(str, tables.logs))
    for time_s, span_s in tables.long:
        why = (
            f"no traffic is known for {span_s:g} s before {time_s:.0f}, where windows have "
            f"{tables.usual_s:g} s: taken to be as in the window after it"
        )
        tables.said.append(why)
        tables.quarantine.rows.append((named, Sign(None, "gap", f"{span_s:g} s", why)))
    return tables


def _take_kept(tables: Tables) -> None:
    """Take in the rows of all tables, without the few whose executor no placement has."""
    for path, count, rows in tables.kept:
        unknown = [
            Sign(row.row, "not in the placement", name, f"{name} is not in the placement")
            for row in rows
            for name in _named(row)
            if tables.places and name not in tables.places
        ]
        out = {one.row for one in unknown}
        # Of more the placement is of a part, and they are laid out evenly.
        if len(out) > tables.quarantine.most_frac * count or len(out) == len(rows):
            out = set()
        elif unknown:
            tables.said += tables.quarantine.take(path, unknown, count)
        for row in rows:
            if row.row in out:
                continue
            if isinstance(row, Sent):
                tables.edges.append((row.time_s, row.source, row.target, row.tuples))
            else:
                tables.cpu.append((row.time_s, row.executor, row.cores))


def _named(row: Sent | Used) -> tuple[str, ...]:
    return (row.source, row.target) if isinstance(row, Sent) else (row.executor,)


def _check_together(tables: Tables) -> None:
    """Refuse tables that are of other executors or of another time than the edges."""
    if tables.usual_s > HOUR_S:
        raise IngestError(
            f"windows have {tables.usual_s:g} s, and a journal has none above {HOUR_S:g} s: give "
            "the counts of shorter windows"
        )
    ends = {end for _, source, target, _ in tables.edges for end in (source, target)}
    for what, names in (("placement", set(tables.places)), ("CPU", {row[1] for row in tables.cpu})):
        if names and not names & ends:
            raise IngestError(
                f"no executor of the {what} ({_some(sorted(names))}) is in the edges "
                f"({_some(sorted(ends))})"
            )
    first_s, last_s = tables.times_s[0] - tables.first_span_s, tables.times_s[-1]
    if tables.cpu and not any(first_s <= row[0] <= last_s for row in tables.cpu):
        raise IngestError(
            f"no CPU is of the time of the edges, {first_s:.0f} to {last_s:.0f}: its first is of "
            f"{min(row[0] for row in tables.cpu):.0f}"
        )


def _read(path: Path, tables: Tables) -> None:
    try:
        if path.suffix == ".parquet":
            if not path.exists():
                raise IngestError(f"{path}: No such file or directory")
            _take(path, parquet_rows(path), tables)
        elif path.suffix == ".json":
            _take(path, prometheus_rows(path), tables)
        elif path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8-sig") as file:
                _take(path, list(csv.DictReader(file)), tables)
        else:
            with path.open(errors="replace") as file:
                _take_metrics(path, file, tables)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise IngestError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    """Read a table from a file, or from a folder of files as Spark writes it.

    Raises `IngestError` where pyarrow is missing, or where it is no Parquet.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        needed = pip_install("replay")
        raise IngestError(
            f"{path}: Parquet needs pyarrow; type in nstorm's folder: {needed}"
        ) from None
    try:
        found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except arrow.ArrowException as error:
        raise IngestError(f"{path}: {str(error).splitlines()[0]}") from error
    return found


def _take(path: Path, rows: list[dict[str, Any]], tables: Tables) -> None:
    """Find by its columns what a table is, and take it in."""
    if not rows:
        raise IngestError(f"{path}: holds no rows")
    columns = set(rows[0])
    kind = max((EDGES, CPU, PLACES), key=lambda kind: len(columns & set(kind)) / len(kind))
    missing = [name for name in kind if name not in columns]
    if missing:
        known = "; ".join(", ".join(kind) for kind in (EDGES, CPU, PLACES))
        raise IngestError(
            f"{path}: column {missing[0]} is missing; a table has the columns of one of: {known}"
        )
    sent: list[Sent] = []
    used: list[Used] = []
    found: list[Sign] = []
    for at, values in enumerate(rows, 2):
        row = _TableRow(f"{path}: row {at}", at, values)
        if kind is PLACES:
            _take_place(row, tables)
            continue
        try:
            time_s = row.number("time_s")
            if kind is EDGES:
                ends = row.text("source"), row.text("target")
                tuples, stream = row.number("tuples", MOST_TUPLES), str(values.get("stream"))
                one: Sent | Used = Sent(at, time_s, *ends, tuples, stream)
            else:
                one = Used(at, time_s, row.text("executor"), row.number("cpu_cores"))
        except _BadCell as error:
            found.append(error.found)
            continue
        if (wrong := wrong_time(at, time_s)) is not None:
            found.append(wrong)
        elif isinstance(one, Sent):
            sent.append(one)
        else:
            used.append(one)
    wrong_sent, doubtful = wrong_edges(sent)
    found += [*wrong_sent, *wrong_cpu(used)]
    tables.said.append(f"{path}: {counted(len(rows), 'row')}")
    tables.said += tables.quarantine.take(path, found, len(rows))
    tables.said += [f"{path}: {line}" for line in doubtful]
    if any(wrong.row is None for wrong in found):
        return
    out = {wrong.row for wrong in found}
    right: list[Sent | Used] = [
        *(r for r in sent if r.row not in out),
        *(r for r in used if r.row not in out),
    ]
    tables.kept.append((path, len(rows), right))


def _take_place(row: _TableRow, tables: Tables) -> None:
    executor = row.text("executor")
    given = {key: str(value) for key, value in row.values.items() if value is not None}
    node, component, kind = (given.get(key, "") for key in ("node", "component", "kind"))
    if kind not in ("", *KINDS):
        raise IngestError(f"{row.name}: kind must be {' or '.join(KINDS)}, is {kind!r}")
    cores = (
        row.number("capacity_cores", MOST_CAPACITY_CORES) if given.get("capacity_cores") else None
    )
    if cores == 0:
        raise IngestError(f"{row.name}: capacity_cores must be more than 0")
    place = _Place(row.name, row.text("worker"), node, component, kind, cores)
    before = tables.places.setdefault(executor, place)
    tables.places[executor] = before.joined(place, *FIELDS)


def _take_metrics(path: Path, lines: Iterable[str], tables: Tables) -> None:
    others: set[str] = set()
    every = list(samples(lines, others))
    wrong = wrong_capacity(every)
    left_out = tables.quarantine.take(path, wrong, len(every))
    out = {one.row for one in wrong}
    kept = [one for one in every if one.line not in out]
    if not kept and others:
        raise IngestError(
            f"{path}: has metrics ({_some(sorted(others))}) and no counts of tuples. Storm 2 gives "
            "them to metrics consumers only where topology.enable.v2.metrics.tick is true: set it, "
            "and give the log of two ticks or more"
        )
    if not kept:
        raise IngestError(
            f"{path}: neither a table ({', '.join(TABLES)}) nor a log of Storm's metrics"
        )
    tables.said += left_out
    tables.logs.append(path)
    tables.samples += kept


def _take_loads(tables: Tables) -> None:
    """Take in the samples of all logs together: a sender's may be in another log than a receiver's.

    Metrics are spread over the consumers of a topology, and logs are rotated.
    """
    found = loads(tables.samples)
    logs = _some([str(path) for path in tables.logs])
    tables.edges += found.edges
    tables.cpu += found.cpu
    tables.sampled_s += found.times_s
    for task, (component, worker) in found.places.items():
        tables.places.setdefault(task, _Place(logs, worker, component=component))
    tables.said += [
        f"{logs}: {len(found.places)} tasks. Storm does not count who sent to whom: what a task "
        "got from a component is split over the component's tasks by what each sent. That is right "
        "for shuffles, and a guess for fields groupings",
        f"{logs}: every task is taken as an executor of its own",
        f"{logs}: windows of {found.interval_s:g} s from the first sample on. What a task counted "
        "between its own samples is divided over them, as if it came evenly",
    ]
    if found.cut_s:
        tables.said.append(
            f"{logs}: the last {found.cut_s:g} s are left out, with {found.cut_tuples:.0f} tuples: "
            "the samples of some tasks end before"
        )
    if found.unknown:
        unknown = (
            f"{logs}: {sum(found.unknown.values()):.0f} tuples are left out: they came from "
            f"{_some(sorted(found.unknown))}, of which no log has a task. Are the logs of all "
            "metrics consumers there, and the rotated ones?"
        )
        if not tables.edges:
            raise IngestError(unknown)
        tables.said.append(unknown)
    if found.cpu:
        tables.said.append(f"{logs}: __capacity (share of the time in execute) is taken as cores")


def _executors(tables: Tables) -> dict[str, ExecutorId]:
    """Give every executor that is named anywhere an id; task numbers keep theirs."""
    named = {end for _, source, target, _ in tables.edges for end in (source, target)}
    named |= {executor for _, executor, _ in tables.cpu} | tables.places.keys()
    ordered = sorted(named, key=natural_key)
    try:
        ids = [ExecutorId.parse(n if "-" in n.strip("-") else f"{n}-{n}") for n in ordered]
    except ModelError:
        ids = []
    overlap = any(a.end >= b.start for a, b in itertools.pairwise(sorted(ids)))
    if not ids or ids[0].start < 0 or overlap:
        ids = [ExecutorId(i, i) for i in range(1, len(ordered) + 1)]
        first, last = ordered[0], ordered[-1]
        tables.said.append(
            f"executors are numbered in their natural order: {first} is 1-1, {last} is {ids[-1]}"
        )
    return dict(zip(ordered, ids, strict=True))


def _publication(tables: Tables, names: dict[str, ExecutorId], topology: str) -> Publication:
    slots, nodes = _slots(tables, names)
    targets = {target for _, _, target, _ in tables.edges}
    # What nobody named may differ in its costs, so it is not put together with anything.
    named = {name: place.component for name, place in tables.places.items() if place.component}
    component = {name: named.get(name, name) for name in names}
    if alone := [name for name in names if name not in named]:
        tables.said.append(
            f"{counted(len(alone), 'executor')} ({_some(alone)}) without a component: each is "
            "taken as a component of its own"
        )
    # The only sign of a spout is that no row sends tuples to it.
    fed = {component[name] for name in targets}
    kinds = {one: "bolt" if one in fed else "spout" for one in component.values()}
    given: dict[str, _Place] = {}
    for name, place in tables.places.items():
        before = given.setdefault(component[name], place) if place.kind else place
        if before.kind != place.kind:
            raise IngestError(f"{place.row}: {component[name]} is a {before.kind} in {before.row}")
    tables.said += _guessed({one: kind for one, kind in kinds.items() if one not in given})
    kinds |= {one: place.kind for one, place in given.items()}
    pairs = {(component[source], component[target]) for _, source, target, _ in tables.edges}
    count = list(component.values())
    return Publication(
        topology=topology,
        name=topology,
        status="ACTIVE",
        refresh_poll_secs=10,
        components=tuple(Component(c, kinds[c], count.count(c)) for c in sorted(kinds)),
        edges=tuple(Edge(source, target, "default", "unknown") for source, target in sorted(pairs)),
        nodes=nodes,
        executors=tuple(
            PlacedExecutor(executor, component[name], slots[name], 0)
            for name, executor in sorted(names.items(), key=lambda item: item[1])
        ),
    )


def _guessed(kinds: Mapping[str, str]) -> list[str]:
    """List which components were taken for spouts and bolts though no row has their kind."""
    if not kinds:
        return []
    spouts = [one for one, kind in kinds.items() if kind == "spout"]
    found = _some(sorted(spouts, key=natural_key)) or "none"
    return [
        f"taken as spouts, which stay, because no row sends tuples to them: {found}. All others "
        "are taken as bolts, which may move, ackers too. A column kind (spout or bolt) in the "
        "placement table comes first"
    ]


def _slots(
    tables: Tables, names: dict[str, ExecutorId]
) -> tuple[dict[str, Slot], tuple[Node, ...]]:
    """Find out where everything is, or lay it out evenly."""
    places = dict(tables.places)
    homeless = [name for name in names if name not in places]
    for i, name in enumerate(homeless):
        port = FIRST_PORT + i // 2 % (ASSUMED_WORKERS // 2)
        places[name] = _Place("assumed", f"assumed-{i % 2}:{port}")
    if homeless:
        tables.said.append(
            f"{counted(len(homeless), 'executor')} ({_some(homeless)}) without a placement: laid "
            f"evenly over up to {ASSUMED_WORKERS} workers of 2 nodes"
        )
    first: dict[str, _Place] = {}
    for place in places.values():
        before = first.setdefault(place.worker, place)
        first[place.worker] = before.joined(place, "node", "capacity_cores")
    workers = _slots_of(first)
    if any(place.capacity_cores is None for place in first.values()):
        tables.said.append("workers without capacity_cores are taken to have 1 core")
    cores = {workers[name]: place.capacity_cores or 1.0 for name, place in first.items()}
    nodes = []
    for node in sorted({slot.supervisor for slot in cores}):
        ports = tuple(sorted(slot.port for slot in cores if slot.supervisor == node))
        whole = sum(cores[Slot(node, port)] for port in ports)
        nodes.append(Node(node, node, 100 * whole, ports, len(ports)))
    return {name: workers[place.worker] for name, place in places.items()}, tuple(nodes)


def _slots_of(places: Mapping[str, _Place]) -> dict[str, Slot]:
    """Give every worker its slot; those that are not named like one get a free port."""
    slots: dict[str, Slot] = {}
    for worker, place in places.items():
        with suppress(ModelError):
            slot = Slot.parse(worker)
            slot = Slot(place.node or slot.supervisor, slot.port)
            if slot in slots.values():
                raise IngestError(f"{place.row}: there is another worker at {slot}")
            slots[worker] = slot
    for worker, place in places.items():
        if worker not in slots:
            ports = (Slot(place.node or worker, port) for port in itertools.count(FIRST_PORT))
            slots[worker] = next(slot for slot in ports if slot not in slots.values())
    return slots


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)


def _windows(
    tables: Tables, names: dict[str, ExecutorId], publication: Publication
) -> Iterator[Window]:
    index = {placed.executor: i for i, placed in enumerate(publication.executors)}
    at = {name: index[executor] for name, executor in names.items()}
    times_s = tables.times_s
    rows: dict[float, list[tuple[int, int, float]]] = {time_s: [] for time_s in times_s}
    for time_s, source, target, tuples in tables.edges:
        rows[time_s].append((at[source], at[target], tuples))
    cpu = sorted((time_s, at[name], cores) for time_s, name, cores in tables.cpu)
    if not cpu:
        tables.said.append(
            "no CPU is known: half of all capacity is shared out by the tuples sent and received"
        )
    capacity = sum(node.cpu_capacity for node in publication.nodes) / 100
    cores, done = np.zeros(len(index)), 0
    # CPU may be in longer windows than edges.
    holds_s = GAP_TIMES * max(tables.first_span_s, gaps(sorted({row[0] for row in cpu}))[0])
    of_all = capacity / 2
    at_s, missing = np.full(len(index), -np.inf), np.zeros(len(index), np.int64)
    times = {time_s: span_s / tables.usual_s for time_s, span_s in tables.long}
    for before_s, time_s in itertools.pairwise([times_s[0] - tables.first_span_s, *times_s]):
        table = np.array(rows[time_s], dtype=np.float64).reshape(-1, 3)
        ends = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        while done < len(cpu) and cpu[done][0] <= time_s:
            row_s, executor, used_cores = cpu[done]
            at_s[executor], cores[executor] = row_s, used_cores
            done += 1
        known, share = time_s - at_s <= holds_s, _by_tuples(len(index), *ends, table[:, 2])
        missing += ~known
        if share[known].any():  # else as in the window before
            of_all = min(capacity / 2, cores[known].sum() / share[known].sum())
        used = np.where(known, cores, share * of_all)
        yield Window(time_s, time_s - before_s, used, *ends, table[:, 2] * times.get(time_s, 1.0))
    if cpu and missing.any():
        names_at = sorted((i, name) for name, i in at.items() if missing[i])
        tables.said.append(
            f"no CPU is known of {counted(len(names_at), 'executor')} "
            f"({_some([name for _, name in names_at])}), in up to {missing.max()} of "
            f"{counted(len(times_s), 'window')}. Each is taken to need for a tuple what the others "
            "do, and at most its share by tuples of half of all capacity"
        )


def _by_tuples(count: int, source: Ints, target: Ints, tuples: Floats) -> Floats:
    handled = np.bincount(source, tuples, count) + np.bincount(target, tuples, count)
    return np.asarray(handled / max(float(handled.sum()), 1.0), dtype=np.float64)
