"""A sweep finds what is best by construction, or that nothing helps; in whatever pieces."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controller.config import build
from controller.core.cluster import Floats, Ints, Singles, Traffic
from controller.core.decision import Outcome
from controller.core.hops import HOP_COST_S
from controller.core.spaces import COLUMNS
from controller.core.times import DAY_S
from controller.errors import TuneError
from controller.pipeline.figures import Figures
from controller.pipeline.stages import HELD_BACK_FRAC, Ticks, episodes
from controller.pipeline.ticks import spans_of
from controller.replay import rerun as run
from controller.replay.recording import PlacementChange, Room, Span
from controller.replay.rerun import Rerun, measure
from controller.tune.choice import MOVE_S, Objective, felt_worse, ranked, suggest
from controller.tune.space import Space
from migration.model import Component
from tests.bench.replay.score import through
from tests.tuned_world import (
    BEGIN_S,
    HUBS,
    TICK_S,
    laid_out,
    span,
    strong_and_fickle,
    swept,
    three_that_go_together,
)

THRESHOLDS = (0.0, 0.005, 0.02, 0.03, 0.06)
# A guest comes as soon as it talks and goes as soon as it does not.
RESTLESS = {"cooldown.executor.secs": 10, "load.ewma": 1.0, "asc.threshold": 0.0}


def test_the_best_threshold_is_found(tmp_path: Path) -> None:
    ticks = 240
    space = Space({"asc.threshold": THRESHOLDS})
    _, outcomes = swept([strong_and_fickle(ticks)], tmp_path, space, RESTLESS)
    found = suggest(outcomes, Objective())
    assert found.held_back_gain_frac > 0.05
    # It is of one day.
    assert not found.helps
    # Above what the fickle gain and below what the strong gain, by construction.
    assert 0.01 < found.best.parameters.config.limits.gain_frac < 0.05
    # Four moves in the first four ticks; of 1000 t/s the fickle cross with 40 in every other turn.
    turns = np.array([0.04 if tick // 12 % 2 else 0.0 for tick in range(ticks)])
    strong = np.zeros(ticks)
    strong[:4] = [0.2, 0.15, 0.1, 0.05]
    known = float((turns + strong).mean()) + 4 * MOVE_S / (ticks * TICK_S)
    whole = found.best.chosen_by + found.best.held_back
    assert Objective().cost(whole) == pytest.approx(known, rel=0.02)
    assert min(Objective().cost(o.chosen_by + o.held_back) for o in outcomes) >= 0.98 * known


def test_a_gain_of_every_day_is_suggested(tmp_path: Path) -> None:
    """A guest talks to the other node, on each of 17 days a little more or less."""

    def day(number: int) -> Span:
        def tps(tick: int) -> list[tuple[int, int, float]]:
            return [(0, HUBS, 10.0 + number % 3), (0, 1, 90.0)]

        return span(12, [1], tps, begin_s=BEGIN_S + number * DAY_S)

    space = Space({"asc.threshold": (0.002,)})
    _, outcomes = swept([day(n) for n in range(17)], tmp_path, space, {"asc.threshold": 0.5})
    found = suggest(outcomes, Objective())
    assert len(found.best.by_day) >= 5
    assert found.helps
    assert found.interval_frac is not None
    assert 0 < found.interval_frac[0] <= found.held_back_gain_frac <= found.interval_frac[1]


@pytest.mark.parametrize("failed", [0.0, 100.0])
def test_what_users_felt_worse_is_not_suggested(tmp_path: Path, failed: float) -> None:
    """On each fourth day the guest is where a lower threshold brings it, and tuples fail there."""

    def day(number: int) -> Span:
        there = number % 4 == 3
        guest = span(
            12,
            [0 if there else 1],
            lambda tick: [(0, HUBS, 10.0), (0, 1, 90.0)],
            begin_s=BEGIN_S + number * DAY_S,
        )
        acked, fails = np.full(12, 1000.0), np.full(12, failed * there)
        return replace(guest, ended=replace(guest.ended, acked=acked, failed=fails))

    space = Space({"asc.threshold": (0.002,)})
    days = [day(n) for n in range(20)]
    _, outcomes = swept(days, tmp_path, space, {"asc.threshold": 0.5})
    found = suggest(outcomes, Objective())
    today, better = outcomes
    assert Objective().cost(better.held_back) < 0.5 * Objective().cost(today.held_back)
    assert [one.day % 4 for one in better.felt] == [better.felt[0].day % 4] * 5
    assert len(today.felt) == 20
    if failed:
        assert felt_worse(better, today) == "wc: fails 0.00% → 9.09%"
        assert ranked(outcomes, Objective()) == [today, better]
        assert (found.best, found.helps) == (today, False)
    else:
        assert felt_worse(better, today) == ""
        assert (found.best, found.helps) == (better, True)
        assert found.reason.endswith("on which executors stood as the set has them.")


def test_the_best_upper_limit_is_found(tmp_path: Path) -> None:
    """Eight guests of 0.4 cores belong to a; 0.84 of its 4 cores hold seven, 0.86 all of them."""

    def tps(tick: int) -> list[tuple[int, int, float]]:
        return [(0, guest, 100.0) for guest in range(HUBS, HUBS + 8)]

    load = span(100, [1] * 8, tps, cpu_cores=0.4)
    load = replace(
        load, cpu_cores=np.where(np.arange(12) < HUBS, 0.1, 0.4) * np.ones((100, 1), np.float32)
    )
    today = {"load.high": 0.62, "load.low": 0.5}
    space = Space({"load.high": (0.5, 0.6, 0.7, 0.8, 0.95, 1.0)})
    _, outcomes = swept([load], tmp_path, space, today)
    found = suggest(outcomes, Objective())
    assert dict(found.best.parameters.changes) == {"load.high": 0.95}
    assert found.held_back_gain_frac > 0.05
    assert found.best.held_back.unserved_core_s == 0
    full = {o.parameters.config.limits.high_frac: o.held_back for o in outcomes}
    # Above the default of load.high nothing is lost as long as all find a core.
    assert full[0.95].inter_node < full[0.8].inter_node


def shared(load: Span, hubs: Sequence[float]) -> Span:
    """Let workers share the four cores of their node, and hubs use some of them."""
    cpu_cores = load.cpu_cores.copy()
    cpu_cores[:, :HUBS] = hubs
    cluster = replace(load.cluster, node_cores=np.array([4.0, 4.0]))
    return replace(load, cluster=cluster, cpu_cores=cpu_cores)


def heaps(ticks: int, live_mb: Sequence[float], most_mb: float) -> Room:
    live, most = np.array(live_mb) * 1e6, np.full(len(live_mb), most_mb * 1e6)
    columns = zip(COLUMNS, (live, most), strict=True)
    spaces = {name: np.tile(row, (ticks, 1)).astype(np.float32) for name, row in columns}
    return replace(Room.unknown(ticks, 2), spaces=spaces)


def beside(room: Room, others: Singles) -> Room:
    """Let others, which have no peaks, use a part of each node, (T, N)."""
    return replace(room, other_cores=others, other_peak_cores=np.zeros_like(others))


def test_a_set_that_fills_a_heap_is_not_the_best(tmp_path: Path) -> None:
    """Eight guests belong to a by their traffic, and its heap cannot hold them all."""

    def tps(tick: int) -> list[tuple[int, int, float]]:
        return [(0, guest, 100.0) for guest in range(HUBS, HUBS + 8)]

    load = shared(span(100, [0, *[1] * 7], tps), [0.1, 0.1, 1.0, 1.0])
    space, known = Space({"policy": ("otd", "gather")}), heaps(100, [200.0, 450.0], 512.0)
    _, (otd, gather) = swept([load], tmp_path / "unknown", space, {"policy": "otd"})
    assert (otd.chosen_by.moves, gather.chosen_by.moves) == (7, 7)
    assert otd.chosen_by.unserved_core_s == gather.chosen_by.unserved_core_s == 0
    _, outcomes = swept([replace(load, room=known)], tmp_path / "known", space, {"policy": "otd"})
    found = suggest(outcomes, Objective())
    otd, gather = outcomes
    assert dict(found.best.parameters.changes) == {"policy": "gather"}
    assert (otd.chosen_by.moves, gather.chosen_by.moves) == (7, 3)
    # All ten executors of a worker with more in its heap than it has.
    assert otd.held_back.unserved_core_s == pytest.approx(10 * 0.1 * 30 * TICK_S, rel=0.01)
    assert gather.chosen_by.unserved_core_s == gather.held_back.unserved_core_s == 0


def test_a_set_that_leaves_room_for_a_neighbour_is_found(tmp_path: Path) -> None:
    """Eight guests belong to a by their traffic, and a minute in two others use 2.2 cores there."""

    def tps(tick: int) -> list[tuple[int, int, float]]:
        return [(0, 1, 800.0), *((0, guest, 100.0) for guest in range(HUBS, HUBS + 8))]

    ticks = np.arange(120)
    load = shared(span(120, [1] * 8, tps, cpu_cores=0.3), [0.1, 0.1, 1.15, 1.15])
    loud = (ticks >= 24) & (ticks // 12 % 2 == 0)
    others = np.column_stack([np.where(loud, 2.2, 0.45), np.zeros(120)]).astype(np.float32)
    known = replace(load, room=beside(load.room, others))
    # Nothing that has moved makes way for the neighbour.
    today, space = {"cooldown.executor.secs": 3000}, Space({"load.high": (0.5, 0.6, 0.8)})
    for one, best in ((load, {}), (known, {"load.high": 0.6})):
        _, outcomes = swept([one], tmp_path / f"{len(best)}", space, today)
        found = suggest(outcomes, Objective())
        assert dict(found.best.parameters.changes) == best


def test_a_set_that_keeps_room_for_a_daily_peak_is_found(tmp_path: Path) -> None:
    """Eight guests belong to a by their traffic; their input triples twice, for a minute."""
    ticks = np.arange(120)
    times = np.where((ticks // 12 == 3) | (ticks // 12 == 8), 3.0, 1.0)

    def tps(tick: int) -> list[tuple[int, int, float]]:
        pairs = [(0, 1, 400.0), (2, 1, 50.0), *((0, guest, 2.0) for guest in range(HUBS, HUBS + 8))]
        return [(source, target, rate * times[tick]) for source, target, rate in pairs]

    load = shared(span(120, [0] * 8, tps, cpu_cores=0.25), [0.1, 0.1, 0.05, 0.05])
    kinds = Component("spout", "spout", 1), *load.first.components
    first = replace(load.first, components=kinds, component_of=("spout", *["bolt"] * 11))
    # Tuples of known size from b: so moves to b fill no link more than it is.
    load = replace(
        load,
        first=first,
        cpu_cores=(load.cpu_cores * times[:, np.newaxis]).astype(np.float32),
        size_bytes=np.full(len(load.source), 10.0),
    )
    known = replace(load, room=replace(load.room, peak_tps=np.full(120, 3 * 416.0)))
    today, space = {"policy": "otd", "headroom.min": 1}, Space({"policy": ("otd", "gather")})
    for one, best in ((load, {}), (known, {"policy": "gather"})):
        _, outcomes = swept([one], tmp_path / f"{len(best)}", space, today)
        assert dict(suggest(outcomes, Objective()).best.parameters.changes) == best
    otd, gather = (outcome.chosen_by for outcome in outcomes)
    assert otd.unserved_core_s > 20
    assert (gather.unserved_core_s, gather.moves) == (0, 4)


def test_where_all_is_local_nothing_is_suggested(tmp_path: Path) -> None:
    load = span(60, [0, 1], lambda tick: [(0, HUBS, 10.0), (2, HUBS + 1, 10.0)])
    space = Space({"asc.threshold": THRESHOLDS, "load.high": (0.7, 0.8)})
    _, outcomes = swept([load], tmp_path, space, {})
    found = suggest(outcomes, Objective())
    assert not found.helps
    assert found.best is found.today
    assert found.reason.startswith("Keep what you have: nothing that was tried")


def test_what_helps_only_before_the_cut_is_not_suggested(tmp_path: Path) -> None:
    """The guest turns to the other node just where the load is held back."""
    ticks, cut = 200, int(200 * (1 - HELD_BACK_FRAC))
    load = span(ticks, [1], lambda tick: [(0 if tick < cut else 2, HUBS, 10.0), (0, 1, 90.0)])
    today = {"asc.threshold": 0.5, "cooldown.executor.secs": 3000}
    _, outcomes = swept([load], tmp_path, Space({"asc.threshold": (0.002,)}), today)
    found = suggest(outcomes, Objective())
    assert dict(found.best.parameters.changes) == {"asc.threshold": 0.002}
    assert found.gain_frac > 0.5
    assert not found.helps
    assert "The load held back gives" in found.reason
    assert "less than 1% is noise" in found.reason


def test_sets_are_ranked_with_the_targets_that_they_search(tmp_path: Path) -> None:
    """Without searches no set moved anything here, and none was suggested."""
    load, space, found = three_that_go_together(100), Space({"policy": ("gather",)}), {}
    for searched in ([], [load.topology]):
        folder = tmp_path / str(len(searched))
        _, outcomes = swept([load], folder, space, {"policy": "otd"}, searched)
        found[len(searched)] = suggest(outcomes, Objective())
    assert found[0].best is found[0].today
    assert found[1].gain_frac > 0.05
    assert dict(found[1].best.parameters.changes) == {"policy": "gather"}
    figures = found[1].best.chosen_by
    # The first cycle asks, the next three move; on the way it costs more.
    assert (figures.moves, figures.inter_node) == (3, (180 + 180 + 320 + 260) * TICK_S)


def test_pieces_do_not_matter(tmp_path: Path) -> None:
    load = strong_and_fickle(120)
    space = Space({"asc.threshold": (0.0, 0.02)})
    _, whole = swept([load], tmp_path / "a", space, RESTLESS)
    parts = [load.within(load.time_s[i], load.time_s[i + 9]) for i in range(0, 120, 10)]
    of, pieces = swept(parts, tmp_path / "b", space, RESTLESS)
    assert [len(one.folders) for one in of] == [12]
    for one, other in zip(whole, pieces, strict=True):
        assert one.parameters == other.parameters
        for figures, same in ((one.chosen_by, other.chosen_by), (one.held_back, other.held_back)):
            assert (figures.moves, figures.ticks) == (same.moves, same.ticks)
            assert figures.inter_node == pytest.approx(same.inter_node, rel=1e-12)
    assert whole[0].chosen_by.ticks == 84
    assert whole[0].held_back.ticks == 36
    (series,) = [through(Rerun(build(RESTLESS)), [load])]
    assert len(series.moves) == whole[0].chosen_by.moves + whole[0].held_back.moves


def test_a_span_comes_back_as_it_was(tmp_path: Path) -> None:
    load = replace(
        strong_and_fickle(9),
        held=np.arange(9) == 3,
        room=replace(
            heaps(9, [np.nan, 300.0], 512.0),
            other_cores=np.arange(18, dtype="f4").reshape(9, 2),
            other_peak_cores=np.arange(18, 36, dtype="f4").reshape(9, 2),
            peak_tps=np.arange(9.0),
        ),
        shifts=(PlacementChange(2, 4, 0, True), PlacementChange(2, 5, 0, False)),
        hosts={"a": "host-a", "b": "host-b"},
    )
    engine, ticks = laid_out([load], tmp_path)
    (one,) = episodes(ticks)
    rows = list(engine.ticks(one, one.folders))
    (back,) = spans_of(rows)
    for name in ("place", "time_s", "span_s", "cpu_cores", "traffic_tps", "source", "target"):
        assert np.array_equal(getattr(back, name), getattr(load, name)), name
        assert getattr(back, name).dtype == getattr(load, name).dtype, name
    assert np.array_equal(back.held, load.held)
    for name in COLUMNS:
        assert np.array_equal(back.room.spaces[name], load.room.spaces[name], equal_nan=True)
    of_room = "other_cores", "other_peak_cores", "peak_tps"
    for name in of_room:
        assert np.array_equal(getattr(back.room, name), getattr(load.room, name)), name
    (old,) = spans_of(_without(batch, {*COLUMNS, *of_room}) for batch in rows)
    assert not old.room.spaces
    assert all(np.isnan(getattr(old.room, name)).all() for name in of_room)
    assert (back.shifts, back.hosts, back.topology) == (load.shifts, load.hosts, load.topology)
    assert back.cluster.workers == load.cluster.workers
    assert back.first.pinned == load.first.pinned
    assert np.isnan(back.size_bytes).all()


def _without(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Give rows as they are read of tables that lack some columns."""
    columns = [
        pa.nulls(batch.num_rows, field.type) if field.name in names else batch.column(field.name)
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def test_each_day_begins_as_recorded_and_topologies_are_apart(tmp_path: Path) -> None:
    late = BEGIN_S - BEGIN_S % DAY_S + DAY_S - 30 * TICK_S
    load = span(60, [1], lambda tick: [(0, HUBS, 10.0)], begin_s=late)
    other = replace(load, first=replace(load.first, topology="other-1-7"))
    of, (today,) = swept([load, other], tmp_path, Space({"load.high": (0.85,)}), {})
    # 42 of 60 ticks are chosen by: all of the first day, 12 of the second.
    assert [(one.topology, one.ticks, one.chosen_s) for one in of] == [
        *[("other-1-7", 30, None), ("wc-1-7", 30, None)],
        *[("other-1-7", 30, 12 * TICK_S), ("wc-1-7", 30, 12 * TICK_S)],
    ]
    assert len({one.day for one in of}) == 2
    assert (today.chosen_by.ticks, today.held_back.ticks) == (84, 36)
    assert today.chosen_by.moves == 4
    _, ticks = laid_out([load, other], tmp_path)
    assert {one.topology for one in episodes(ticks, "wc")} == {"wc-1-7"}
    with pytest.raises(TuneError, match="no topology x, it has other-1-7, wc-1-7"):
        episodes(ticks, "x")
    with pytest.raises(TuneError, match="no tick in which a topology was measured"):
        episodes(Ticks((), (), ()))


def test_a_clock_that_goes_back_stops_nothing(tmp_path: Path) -> None:
    load = strong_and_fickle(80)
    load = replace(load, time_s=load.time_s + 2 * 3600)  # all of one day
    back = replace(load, time_s=np.where(np.arange(80) < 30, load.time_s, load.time_s - 3600))
    parts = [back.rows(0, 30), back.rows(30, 80)]
    assert [len(part.time_s) for part in parts] == [30, 50]
    for folder, spans in (("whole", [back]), ("parts", parts), ("right", [load])):
        _, outcomes = swept(spans, tmp_path / folder, Space({"load.high": (0.8,)}), RESTLESS)
        figures = outcomes[0].chosen_by + outcomes[0].held_back
        assert figures.ticks == 80
        # Four strong moves, and four there and back in every turn.
        assert figures.moves == 4 + 4 * 6


def test_time_in_which_nothing_can_be_decided_does_not_count_for_the_cut(tmp_path: Path) -> None:
    load, space = strong_and_fickle(100), Space({"load.high": (0.85,)})
    held = replace(load, held=np.arange(100) < 60)
    _, (today, *_) = swept([held], tmp_path / "some", space, {})
    assert (today.chosen_by.ticks, today.held_back.ticks) == (88, 12)
    never = replace(load, held=np.ones(100, dtype=np.bool_))
    _, (today, *_) = swept([never], tmp_path / "never", space, {})
    assert (today.chosen_by.ticks, today.held_back.ticks) == (100, 0)


def test_cpu_follows_the_hops() -> None:
    spans = span(1, [0, 1], lambda tick: [(0, HUBS, 1e5), (2, HUBS, 2e5)])
    moved = spans.place.copy()
    moved[HUBS] = 1
    node_s = HOP_COST_S[2]

    def found(place: Ints, recorded: Ints) -> tuple[Floats, list[float]]:
        table = np.zeros((1, 8))
        cores = measure(table, 0, spans, place, recorded, spaces={}, others=np.zeros(2))
        return cores, table[0, 2:5].tolist()

    there, elsewhere = spans.place, moved
    assert found(there, there)[0] == pytest.approx(spans.cpu_cores[0])
    # 100,000 tuples a second more between nodes, 200,000 less; none below zero.
    more, less = 1e5 * node_s, 2e5 * node_s
    added = np.array([more, 0.0, -less, 0.0, more - less, 0.0])
    now = found(elsewhere, there)
    assert now[0] == pytest.approx(np.maximum(spans.cpu_cores[0] + added, 0), abs=1e-6)
    assert now[1] == [1e5, 1e5, 3e5]
    now = found(there, elsewhere)
    assert now[0] == pytest.approx(np.maximum(spans.cpu_cores[0] - added, 0), abs=1e-6)


def test_the_fullest_direction_of_a_link_counts_bytes_of_what_crosses(tmp_path: Path) -> None:
    load = with_link(60)
    still, near = through(Rerun(None), [load]), load.place.copy()
    assert still.fullest_bytes_s.tolist() == [1000.0] * 60
    near[HUBS] = 0
    moved = through(Rerun(None), [replace(load, place=near)])
    assert moved.fullest_bytes_s.tolist() == [200_000.0] * 60
    assert moved.inter_node_frac < still.inter_node_frac
    unknown = through(Rerun(None), [replace(load, size_bytes=np.full(3, np.nan))])
    assert np.isnan(unknown.fullest_bytes_s).all()
    # By tuples the move is a gain, and otd makes it; today's policy keeps it from the link.
    _, outcomes = swept([load], tmp_path, Space({"policy": ("gather", "otd")}), {})
    found = suggest(outcomes, Objective())
    today, otd = outcomes
    assert Objective().cost(otd.chosen_by) < Objective().cost(today.chosen_by)
    assert (today.chosen_by.fullest_bytes_s, today.chosen_by.moves) == (1000.0, 0)
    assert (otd.chosen_by.fullest_bytes_s or 0) > 150_000
    assert found.best is today


def with_link(ticks: int) -> Span:
    """A guest gets few large tuples from its own node, and many small ones from the other.

    That one has more room on its CPU.
    """
    load = span(ticks, [1], lambda tick: [(0, HUBS, 100.0), (2, HUBS, 50.0), (3, 1, 10.0)])
    cluster = replace(load.cluster, node_cores=np.array([4.0, 4.0]))
    cpu = np.tile(np.array([0.1, 0.1, 0.2, 0.2, 0.1], np.float32), (ticks, 1))
    # By pair, in the order of their sources: the last one is not known.
    size_bytes = np.array([10.0, 4000.0, np.nan])
    return replace(load, cluster=cluster, cpu_cores=cpu, size_bytes=size_bytes)


def turning(ticks: int) -> Span:
    return span(ticks, [1], lambda tick: [(0 if tick // 15 % 2 else 2, HUBS, 10.0)])


@pytest.mark.parametrize(
    ("load", "keys", "bound"),
    [
        (with_link(60), {}, {"fills a link more": 6}),
        (turning(60), {"asc.threshold": 1.0}, {"BELOW_THRESHOLD": 2, "NOTHING_TO_GAIN": 4}),
        (turning(60), {"cooldown.executor.secs": 3000}, {"COOLDOWN": 2, "NOTHING_TO_GAIN": 4}),
        (span(60, [1], lambda tick: [(0, 1, 1.0)], cpu_cores=1.9), {}, {"NO_LOW_WORKER": 6}),
        (strong_and_fickle(20), {}, {"max.moves.per.cycle": 1, "NOTHING_TO_GAIN": 1}),
    ],
    ids=["link", "threshold", "rest", "CPU", "moves"],
)
def test_what_bound_a_set_is_counted_of_each_tenth_decision(
    tmp_path: Path, load: Span, keys: dict[str, object], bound: dict[str, int]
) -> None:
    _, (today, *_) = swept([load], tmp_path, Space({"load.high": (0.8,)}), {**RESTLESS, **keys})
    assert dict((today.chosen_by + today.held_back).bound) == bound
    every = through(Rerun(build({**RESTLESS, **keys}), search=None), [load])
    assert sum(every.bound.values()) == len(load.time_s)
    assert set(bound) <= set(every.bound)


@pytest.mark.parametrize("policy", ["gather", "otd"])
@pytest.mark.parametrize("explain", [True, False])
def test_a_topology_without_executors_moves_none_placed(policy: str, explain: bool) -> None:
    some = span(5, [1], lambda tick: [(0, HUBS, 5.0)])
    none_placed, no_core = np.zeros(0, dtype=np.int64), np.zeros((5, 0), dtype=np.float32)
    first = replace(
        some.first,
        executors=(),
        component_of=(),
        place=none_placed,
        cpu_cores=np.zeros(0),
        queue=np.zeros(0),
        pinned=(),
        traffic=Traffic(none_placed, none_placed, np.zeros(0)),
    )
    none: dict[str, Any] = {"place": none_placed, "cpu_cores": no_core, "traffic_tps": no_core}
    none["size_bytes"] = np.zeros(0)
    going = run.Rerun(build({"policy": policy}), explain=explain)
    going.take(replace(some, first=first, source=none_placed, target=none_placed, **none))
    assert going.series().moves == ()
    assert set(going.series().outcome) == {run.OUTCOMES.index(Outcome.NOTHING_TO_GAIN)}


def test_figures_add_up() -> None:
    one = Figures(1, 2, 5.0, 100.0, 20.0, 30.0, 5.0)
    assert one + one == Figures(2, 4, 10.0, 200.0, 40.0, 60.0, 10.0)
    assert (one.inter_node_frac, Figures().inter_node_frac) == (0.2, 0.0)
    both = Figures(bound=(("COOLDOWN", 2), ("MOVED", 1))) + Figures(bound=(("MOVED", 3),))
    assert both.bound == (("COOLDOWN", 2), ("MOVED", 4))
