"""A log as arrays: the load that the controller saw, and only what has changed made again."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from controller.core.capacity import Capacity
from controller.core.cluster import LoadSnapshot
from controller.core.layout import Layout, layout_of
from controller.core.metrics import Rates, observe_each
from controller.journal.lines import JournalError, compact
from controller.journal.reader import Log
from controller.journal.record import TickRecord
from controller.journal.writer import Bounds
from controller.replay.playback import SeenReader
from controller.replay.recording import Span, spans
from migration import wire
from migration.model import ExecutorId, Node
from tests.recorded_world import SLOTS, Recorded, edit, plain, record

SMALL = Bounds(segment_bytes=10_000)


def measured(log: Log) -> Iterator[LoadSnapshot]:
    """Measure each tick as the loop does, with nothing smoothed."""
    reader = SeenReader()
    rates: dict[str, Rates] = {}
    for tick in log.ticks(0):
        seen = reader.seen(tick.record)
        (view,) = seen.topologies
        rates = observe_each(rates, seen.loads, seen.topologies, now_s=0.0, ewma=1.0)
        layout = layout_of(view, Capacity(), None, {}).fitted(rates[view.id])
        if rates[view.id].known.all():
            yield layout.snapshot(rates[view.id], time_s=seen.time_s)


def dense(snapshot: LoadSnapshot | Span, tps: np.ndarray) -> np.ndarray:
    """Lay traffic out as a matrix."""
    first = snapshot.first if isinstance(snapshot, Span) else snapshot
    pairs = snapshot if isinstance(snapshot, Span) else snapshot.traffic
    table = np.zeros((len(first.executors), len(first.executors)))
    table[pairs.source, pairs.target] = tps
    return table


def test_each_tick_holds_what_the_loop_measures(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        if tick == 10:  # an operator's rebalance
            run.world.places[ExecutorId(4, 4)] = SLOTS[0]

    record(tmp_path, ticks=range(25), each=each)
    log = Log.open([tmp_path])
    wanted = list(measured(log))
    rows = [(span, row) for span in spans(log) for row in range(len(span.time_s))]
    assert len(rows) == len(wanted) == 24
    for (span, row), snapshot in zip(rows, wanted, strict=True):
        assert span.first.executors == snapshot.executors
        assert span.time_s[row] == snapshot.time_s
        assert span.cpu_cores[row] == pytest.approx(snapshot.cpu_cores, rel=1e-6)
        got = dense(span, span.traffic_tps[row])
        assert got == pytest.approx(dense(snapshot, snapshot.traffic.tps), rel=1e-6)
    span, snapshot = rows[0][0], wanted[0]
    assert span.first.pinned == snapshot.pinned
    assert span.first.component_of == snapshot.component_of
    assert span.first.place.tolist() == snapshot.place.tolist()
    assert span.first.traffic.tps == pytest.approx(snapshot.traffic.tps)


def test_a_log_whose_beginning_was_deleted_begins_with_load(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), bounds=SMALL)
    segments = sorted(tmp_path.iterdir())
    whole = list(spans(Log.open(segments)))
    part = list(spans(Log.open(segments[2:])))
    first = int(np.searchsorted(whole[0].time_s, part[0].time_s[0]))
    assert part[0].traffic_tps.any(axis=1).all()
    assert part[0].traffic_tps[0].sum() == pytest.approx(whole[0].traffic_tps[first].sum())
    assert len(part[0].time_s) == len(whole[0].time_s) - first


def test_a_lost_record_leaves_no_tick_without_load(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(12))
    (path,) = tmp_path.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6] + lines[7:]))
    log = Log.open([tmp_path])
    found = list(spans(log))
    assert [len(span.time_s) for span in found] == [4, 6]
    assert all(span.traffic_tps.any(axis=1).all() for span in found)
    assert log.skipped_texts() == ["1 ticks missing"]


def test_what_tells_only_its_age_makes_no_other_layout(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(3))
    (path,) = tmp_path.iterdir()
    later = plain(path.read_bytes().splitlines(keepends=True)[1])
    reader = SeenReader()

    def shown(before: Layout | None) -> Layout:
        (view,) = reader.views(wire.decoder(TickRecord).decode(compact(later)))
        return layout_of(view, Capacity(), before, {})

    before = shown(None)
    later["publications"][0] |= {"time_ms": 7, "round": 9}
    for ack in later["acks"]:
        ack["workers"][0]["time_ms"] = ack["time_ms"] = ack["supervisor"]["time_ms"] = 7
    assert shown(before) is before
    later["acks"][0]["workers"][0]["pinned"] = [{"executor": [2, 2], "reason": "state"}]
    assert shown(before).pinned[before.executors.index("2-2")] == "state"


@pytest.mark.parametrize("is_dying", [False, True])
def test_an_ack_that_shows_more_than_its_age_begins_a_span(tmp_path: Path, is_dying: bool) -> None:
    """Of two JVMs in one slot that which reported last counts: it alone pins an executor."""
    record(tmp_path, ticks=range(10))
    (path,) = tmp_path.iterdir()
    first = plain(path.read_bytes().splitlines(keepends=True)[1])["acks"][0]
    pins = [{"executor": [2, 2], "reason": "state"}]

    def shows(tick: dict[str, Any], row: int) -> None:
        own = {**first["workers"][0], "time_ms": row}
        other = {**own, "pinned": pins, "time_ms": 100 if row == 6 else 0}
        if not is_dying:
            own, other = ({**own, "pinned": pins} if row == 6 else own), {}
        workers = [one for one in (own, other) if one]
        tick["acks"] = [{**first, "workers": [*workers, *first["workers"][1:]], "time_ms": row}]

    for row in range(2, 11):
        edit(path, partial(shows, row=row), row=row)
    found = list(spans(Log.open([tmp_path])))
    at = [span.first.executors.index("2-2") for span in found]
    assert [span.first.pinned[e] for span, e in zip(found, at, strict=True)] == [
        None,
        "state",
        None,
    ]
    assert [len(span.time_s) for span in found] == [4, 1, 4]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("executors", [{}]),
        ("traffic", None),
        *[("traffic", rows) for rows in ([[1, 2]], [[1, 2, 0.5]], [["1", "2", "3"]], [1, 2, 3])],
    ],
)
def test_a_report_of_another_version_is_one_clear_message(
    tmp_path: Path, key: str, value: object
) -> None:
    record(tmp_path)
    (path,) = tmp_path.iterdir()
    edit(path, lambda tick: tick["loads"][0]["workers"][0].update({key: value}), row=3)
    with pytest.raises(JournalError, match="of another version"):
        list(spans(Log.open([tmp_path])))


def test_leaders_that_followed_each_other_come_in_their_order(tmp_path: Path) -> None:
    record(tmp_path / "b", name="b", epoch=6, ticks=range(8, 20))
    record(tmp_path / "a", name="a", epoch=5)
    record(tmp_path / "c", name="c", epoch=7, ticks=range(20, 30))
    begins = [span.time_s[0] for span in spans(Log.open([tmp_path]))]
    assert len(begins) == 3
    assert begins == sorted(begins)


@pytest.mark.parametrize(("cycle_s", "longest_s"), [(300.0, 600.0), (5.0, 60.0)])
def test_a_tick_stands_for_its_cycle_however_long_and_a_silence_for_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cycle_s: float, longest_s: float
) -> None:
    monkeypatch.setattr("tests.recorded_world.TICK_S", cycle_s)
    record(tmp_path, ticks=range(8), mode="advise", keys={"cycle.secs": cycle_s})
    (path,) = tmp_path.iterdir()

    def late(tick: dict[str, Any]) -> None:
        tick["now_s"] += 1000.0

    edit(path, late, row=8)
    (span,) = spans(Log.open([tmp_path]))
    assert span.span_s.tolist() == [cycle_s] * 6 + [longest_s]


def test_a_node_that_comes_begins_a_span(tmp_path: Path) -> None:
    """What others use is by node."""

    def grown(tick: int, run: Recorded) -> None:
        if tick == 6:
            known = run.world.publication
            nodes = (*known.nodes, Node("c", "host-c", 400.0, (1, 2), 0))
            run.world.publication = structs.replace(known, nodes=nodes)

    record(tmp_path, mode="observe", keys={"worker.cpu.capacity": None}, each=grown)
    found = list(spans(Log.open([tmp_path])))
    assert [span.room.other_cores.shape for span in found] == [(5, 2), (6, 3)]
