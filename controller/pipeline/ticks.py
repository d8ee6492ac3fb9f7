"""Turns a segment of the journal into rows, and rows into spans that a replay goes through."""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from controller.core.cluster import Cluster, Floats, LoadSnapshot, Singles
from controller.core.spaces import COLUMNS
from controller.core.times import DAY_S
from controller.journal.reader import Log, Segment, by_writer, open_segment
from controller.journal.record import decode, encode
from controller.pipeline.schemas import (
    DECODED,
    LAYOUT,
    LED,
    LEFT_OUT,
    MOVED,
    NO_DAY,
    NO_TOPOLOGY,
    PART,
    RUN,
    SEGMENT,
    TICK,
    folder_of,
    named,
)
from controller.replay.recording import (
    Counts,
    Ended,
    PlacementChange,
    Room,
    Span,
    SpanReader,
)

Batches = Iterator[pa.RecordBatch]


class Unchanging(NamedTuple):
    """What a span needs that has no column of its own."""

    cluster: Cluster
    hosts: dict[str, str]
    first: LoadSnapshot
    size_bytes: Floats


def led(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Find when a segment's controller led first and last in each epoch."""
    for segment in _segments(batches):
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for key, time_s in segment.led():
            known = {"writer": segment.writer, "number": segment.number}
            known |= {"cluster": key[0], "epoch": key[1], "time_s": time_s, "last_s": time_s}
            row = found.setdefault(key, known)
            row["time_s"] = min(row["time_s"], time_s)
            row["last_s"] = max(row["last_s"], time_s)
        yield pa.RecordBatch.from_pylist(list(found.values()), LED)


def decoded(
    batches: Iterable[pa.RecordBatch],
    order_s: float,
    began_s: Mapping[tuple[str, int], float],
    follows: bool,
) -> Batches:
    """Decode a segment, but for its first tick, and the first tick of the one after it.

    So each tick is compared with the one before it, though each segment is decoded for itself.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Rows of `RAW`: the segment, and the one after it if there is one.
    order_s : float
        Where its ticks belong among those of other segments.
    began_s : mapping
        When each epoch began, by cluster and epoch; what a leader saw later did not count.
    follows : bool
        Whether there is a segment before it, with which the first tick comes.

    Yields
    ------
    pyarrow.RecordBatch
        Rows of `DECODED`.
    """
    segment, *after = _segments(batches)
    log = Log(by_writer([segment, *(one.begun_alone() for one in after)]), began_s)
    reader = SpanReader()
    found = reader.read(log, 0, skips_first=follows)
    head = segment.head()
    follows_tick = None if head is None else head.seq
    yield from rows_of(found, order_s, segment.writer, segment.number, follows_tick)
    known = {"order_s": order_s, "writer": segment.writer, "number": segment.number}
    left_out = {**known, "kind": LEFT_OUT, **named(NO_TOPOLOGY, NO_DAY)}
    rows = [
        {**left_out, "rule": rule, "count": count}
        for rule, count in sorted(log.skipped.items())
        if count
    ]
    rows += [
        {**known, "kind": RUN, "time_s": begun_s, "effect": effect.decode()}
        | named(topology, int(begun_s // DAY_S))
        for (topology, begun_s), effect in sorted(reader.effects.items())
    ]
    yield pa.RecordBatch.from_pylist(rows, DECODED)


def rows_of(
    spans: Iterable[Span],
    order_s: float,
    writer: str,
    number: int,
    follows_tick: int | None = None,
) -> Batches:
    """Make rows of `DECODED`: ticks, cut at the ends of days, and what there is of each day."""
    known = {"order_s": order_s, "writer": writer, "number": number}
    parts: dict[tuple[str, int], dict[str, Any]] = {}
    row = 0
    for piece, span in enumerate(part for one in spans for part in _days(one)):
        day = int(span.middle_s[0] // DAY_S)
        yield _rows(span, {**known, "piece": piece, "day": day}, row)
        row += len(span.time_s)
        _count(parts, span, day)
    rows = [{**known, "kind": PART, "row": follows_tick, **part} for part in parts.values()]
    yield pa.RecordBatch.from_pylist(rows, DECODED)


def spans_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Span]:
    """Put ticks of one topology, in their order, together again; as they were decoded."""
    rows: list[pa.RecordBatch] = []
    for batch in batches:
        begins = np.flatnonzero(batch.column("layout").is_valid().to_numpy(zero_copy_only=False))
        bounds = [0, *(int(at) for at in begins if at), batch.num_rows]
        for start, stop in itertools.pairwise(bounds):
            if start == stop:
                continue
            if rows and start in begins:
                yield _span(rows)
                rows = []
            rows.append(batch.slice(start, stop - start))
    if rows:
        yield _span(rows)


def in_order(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Put the ticks of each segment in order; segments come in theirs, one after the other.

    Spark keeps the order in which rows were written in most cases, and promises it in none.
    """
    for _, own in itertools.groupby(_by_segment(batches), key=itemgetter(0)):
        table = pa.Table.from_batches(batch for _, batch in own)
        row = table["row"].to_numpy()
        yield from (table if (row[1:] > row[:-1]).all() else table.sort_by("row")).to_batches()


def _by_segment(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, pa.RecordBatch]]:
    for batch in batches:
        names = zip(*(batch.column(name).to_pylist() for name in SEGMENT), strict=True)
        start = 0
        for segment, rows in itertools.groupby(names):
            count = len(list(rows))
            yield segment, batch.slice(start, count)
            start += count


def _segments(batches: Iterable[pa.RecordBatch]) -> list[Segment]:
    """Take files in the order of their numbers, in whichever they come."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    named = (Segment.named(Path(r["path"]), _opened(r["path"], r["data"])) for r in rows)
    return sorted((one for one in named if one is not None), key=lambda one: one.number)


def _opened(uri: str, data: bytes | None) -> Callable[[], IO[bytes]]:
    """Open what a row of `RAW` names; without data it lies on this machine."""
    if data is None:
        return lambda: open_segment(Path(uri.removeprefix("file:")))
    return partial(io.BytesIO, data)


def _days(span: Span) -> Iterator[Span]:
    """Cut where another day begins."""
    days = span.middle_s // DAY_S
    bounds = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
    for start, stop in itertools.pairwise(bounds):
        yield span if stop - start == len(days) else span.rows(start, stop)


def _count(parts: dict[tuple[str, int], dict[str, Any]], span: Span, day: int) -> None:
    part = parts.setdefault(
        (span.topology, day),
        {
            **named(span.topology, day),
            "ticks": 0,
            "executors": 0,
            "span_s": 0.0,
            "free_s": 0.0,
        },
    )
    part["ticks"] += len(span.time_s)
    part["executors"] = max(part["executors"], len(span.first.executors))
    part["span_s"] += float(span.span_s.sum())
    part["free_s"] += float(span.span_s[~span.held].sum())


def _rows(span: Span, known: Mapping[str, Any], row: int) -> pa.RecordBatch:
    count = len(span.time_s)
    moved: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for shift in span.shifts:
        moved[shift.row].append(
            {"executor": shift.executor, "worker": shift.worker, "own": shift.own}
        )
    columns = {
        "row": np.arange(row, row + count),
        "time_s": span.time_s,
        "span_s": span.span_s,
        "held": span.held,
        "moved": pa.array(moved, pa.list_(MOVED)),
        "cpu_cores": _bytes(span.cpu_cores),
        "traffic_tps": _bytes(span.traffic_tps),
        **{name: _bytes(table) for name, table in span.room.spaces.items()},
        "other_cores": _bytes(span.room.other_cores),
        "other_peak_cores": _bytes(span.room.other_peak_cores),
        "peak_tps": span.room.peak_tps,
        "acked": span.ended.acked,
        "failed": span.ended.failed,
        "timed": _lists(span.ended.timed),
        "layout": pa.array([_layout(span), *[None] * (count - 1)], LAYOUT),
        **{name: [value] * count for name, value in known.items()},
        "kind": [TICK] * count,
        "topology": [span.topology] * count,
        "folder": [folder_of(span.topology)] * count,
    }
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in DECODED
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=DECODED)


def _bytes(table: Singles) -> pa.Array:
    """Make bytes of each row, (T, N)."""
    rows = table.astype("<f4")
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * (rows.shape[1] * rows.itemsize)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


def _lists(table: Counts) -> pa.Array:
    """Make a list of each row, (T, B)."""
    count, width = table.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(table.reshape(-1)))


def _layout(span: Span) -> dict[str, Any]:
    cluster = span.cluster
    rest = Unchanging(cluster, dict(span.hosts), span.first, span.size_bytes)
    return {
        "executors": span.first.executors,
        "components": span.first.component_of,
        "workers": cluster.workers,
        "nodes": [cluster.nodes[node] for node in cluster.node_of],
        "place": span.place,
        "source": span.source,
        "target": span.target,
        "rest": encode(rest),
    }


def _span(rows: list[pa.RecordBatch]) -> Span:
    layout = rows[0].column("layout")[0].as_py()
    rest = decode(Unchanging, layout["rest"])
    count = sum(batch.num_rows for batch in rows)

    def joined(name: str) -> Any:
        return np.concatenate([b.column(name).to_numpy(zero_copy_only=False) for b in rows])

    def table(name: str) -> Singles:
        data = b"".join(row for batch in rows for row in batch.column(name).to_pylist())
        values = np.frombuffer(data, "<f4").astype(np.float32, copy=False)
        return values.reshape(count, -1 if len(values) else 0)

    def is_known(name: str) -> bool:
        return not rows[0].column(name).null_count

    def room() -> Room:
        spaces = {name: table(name) for name in COLUMNS if is_known(name)}
        if not is_known("other_cores"):
            return replace(Room.unknown(count, len(rest.cluster.nodes)), spaces=spaces)
        others = table("other_cores"), table("other_peak_cores")
        return Room(spaces, *others, joined("peak_tps"))

    def timed() -> Counts:
        values = [batch.column("timed").flatten().to_numpy() for batch in rows]
        return np.concatenate(values).reshape(count, -1)

    def indices(name: str) -> Any:
        return np.array(layout[name], dtype=np.int64)

    moved = [one for batch in rows for one in batch.column("moved").to_pylist()]
    return Span(
        cluster=rest.cluster,
        hosts=rest.hosts,
        first=rest.first,
        place=indices("place"),
        time_s=joined("time_s"),
        span_s=joined("span_s"),
        cpu_cores=table("cpu_cores"),
        traffic_tps=table("traffic_tps"),
        source=indices("source"),
        target=indices("target"),
        size_bytes=rest.size_bytes,
        held=joined("held"),
        ended=Ended(joined("acked"), joined("failed"), timed()),
        room=room(),
        shifts=tuple(
            PlacementChange(row, one["executor"], one["worker"], one["own"])
            for row, all_of in enumerate(moved)
            for one in all_of or ()
        ),
    )
