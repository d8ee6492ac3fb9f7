"""A configuration over recorded load: the same moves as live, and honest feedback with others."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from controller.config import build
from controller.core.decision import Decision, Outcome
from controller.core.peaks import Hour, Peaks
from controller.core.policy import Case, Decided, Policy
from controller.core.times import HOUR_S
from controller.cycle import CycleInput
from controller.ingest.world import WindowWorld
from controller.journal.reader import Log
from controller.policies.options import NAMES
from controller.replay import rerun
from controller.replay.recording import Span, spans
from controller.replay.rerun import NO_CYCLE, OUTCOMES, Rerun
from controller.report import TopologyReport
from migration.model import ExecutorId, topology_name
from tests.bench.replay.score import through
from tests.messages import replace
from tests.recorded_world import (
    BEGIN_S,
    SLOTS,
    TICK_S,
    Recorded,
    record,
    with_heaps,
    with_meters,
    with_sizes,
)

KEYS = {"cooldown.executor.secs": 12}


def moves(reports: list[TopologyReport]) -> list[tuple[str, str, str]]:
    return [(m.executor, m.source, m.target) for report in reports for m in report.moves]


def measured(folder: Path) -> list[Span]:
    return list(spans(Log.open([folder])))


def test_the_recorded_configuration_makes_the_live_moves(tmp_path: Path) -> None:
    """Its answers came within the cycle that asked: targets began a cycle before those of live."""
    reports = record(tmp_path, ticks=range(30), delay_ticks=1)
    (span,) = measured(tmp_path)
    series = through(Rerun(build(KEYS)), [span])
    assert [(m.executor, m.source, m.target) for m in series.moves] == moves(reports)
    assert len(series.moves) > 2
    at_once = through(Rerun(build(KEYS), search=None), [span])
    assert at_once.moves != series.moves
    live = through(Rerun(None), [span])
    assert series.inter_node_tps.tolist() == live.inter_node_tps.tolist()
    assert len(live.moves) == len(series.moves)
    measured_frac = [r.inter_node_frac for r in reports if r.inter_node_frac is not None]
    # The controller sees smoothed rates, the score counts what was sent.
    share = live.inter_node_tps / live.total_tps
    assert share == pytest.approx(measured_frac, abs=0.05)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Decide nothing, and list what there was to decide."""
    cases: list[Case] = []

    def note(policy: Policy[Any], case: Case, *others: Any) -> Decided[Any]:
        cases.append(case)
        return Decided(Decision(Outcome.NOTHING_TO_GAIN, ""), None)

    monkeypatch.setattr(rerun, "decide_in_file", note)
    return cases


def test_it_decides_by_loads_as_sure_as_those_of_a_live_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their noise was left out: a replay moved for gains that a live run left."""
    reports = record(tmp_path, ticks=range(30), mode="observe", policy="otd")
    cases = noted(monkeypatch)
    through(Rerun(build(KEYS | {"policy": "otd"})), measured(tmp_path))
    live = reports[-1].picture
    assert live is not None
    assert live.snapshot.traffic.var is not None and live.snapshot.traffic.var.min() > 0
    assert cases[-1].snapshot.traffic.var == pytest.approx(live.snapshot.traffic.var, rel=1e-4)
    assert cases[-1].snapshot.cpu_var == pytest.approx(live.snapshot.cpu_var, rel=1e-4)


def test_it_decides_by_the_sizes_that_a_live_run_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = WindowWorld.seen
    monkeypatch.setattr(
        WindowWorld, "seen", lambda world: replace(now := seen(world), loads=with_sizes(now.loads))
    )
    reports = record(tmp_path, mode="observe", policy="otd")
    cases = noted(monkeypatch)
    through(Rerun(build(KEYS | {"policy": "otd"})), measured(tmp_path))
    live = reports[-1].picture
    assert live is not None
    sizes, found = live.snapshot.traffic.size_bytes, cases[-1].snapshot.traffic.size_bytes
    assert sizes is not None and found is not None
    assert set(sizes.tolist()) == {100.0, 40.0}
    assert found.tolist() == sizes.tolist()


def test_it_decides_by_the_room_that_a_live_run_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = WindowWorld.seen

    def metered(world: WindowWorld) -> CycleInput:
        now = seen(world)
        return replace(now, loads=with_heaps(with_meters(now.loads)))

    def yesterday(tick: int, run: Recorded) -> None:
        if tick == 0:
            peaks = Peaks(hours=(Hour(int(BEGIN_S // HOUR_S) - 9, 20_000.0),), seen_s=BEGIN_S)
            run.memory = replace(run.memory, peaks={topology_name("wc-1"): peaks})

    monkeypatch.setattr(WindowWorld, "seen", metered)
    shared = {"worker.cpu.capacity": None}
    reports = record(tmp_path, mode="observe", keys=shared, each=yesterday)
    cases = noted(monkeypatch)
    through(Rerun(build(KEYS)), measured(tmp_path))
    live, cluster = reports[-1].picture, cases[-1].cluster
    assert live is not None and live.cluster.other_cores is not None
    assert live.cluster.other_cores.min() > 0.5
    assert cluster.other_cores == pytest.approx(live.cluster.other_cores, rel=1e-4)
    assert cluster.peak_cores is not None and not cluster.peak_cores.any()
    assert live.snapshot.peak_times > 2
    assert cases[-1].snapshot.peak_times == pytest.approx(live.snapshot.peak_times, rel=1e-4)
    assert cases[-1].snapshot.state_bytes is not None
    assert cases[-1].snapshot.state_bytes.tolist() == [1e6] * 8
    found = cluster.spaces["heap"]
    assert found.held == pytest.approx(live.cluster.spaces["heap"].held, rel=1e-6)
    assert found.most.tolist() == [512e6] * 4
    assert len(set(found.held.tolist())) == 2


def test_the_guide_says_what_a_replay_leaves_out() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "tuning.md").read_text()
    for line in rerun.LEFT_OUT:
        assert f"- {line}" in guide


def test_a_log_of_advice_shows_what_auto_would_have_done(tmp_path: Path) -> None:
    record(tmp_path / "advise", ticks=range(30), mode="advise")
    reports = record(tmp_path / "auto", ticks=range(30), delay_ticks=1)
    (advised,) = measured(tmp_path / "advise")
    series = through(Rerun(build(KEYS)), [advised])
    assert [(m.executor, m.source, m.target) for m in series.moves] == moves(reports)
    assert series.inter_node_frac < through(Rerun(None), [advised]).inter_node_frac
    assert through(Rerun(None), [advised]).moves == ()


def test_what_is_excluded_stays_where_it_is(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), mode="advise")
    (span,) = measured(tmp_path)
    assert through(Rerun(build(KEYS)), [span]).moves
    for name in (span.topology, topology_name(span.topology)):
        series = through(Rerun(build({**KEYS, "excluded.topologies": [name]})), [span])
        assert not series.moves
        assert OUTCOMES.index(Outcome.EXCLUDED) in series.outcome


def test_hosts_are_excluded_by_their_name_as_in_a_live_run(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), mode="advise")
    (span,) = measured(tmp_path)
    node, host = next(iter(span.hosts.items()))
    assert node != host
    for name in (node, host):
        found = through(Rerun(build({**KEYS, "excluded.hosts": [name]})), [span]).moves
        assert not any(end.startswith(f"{node}:") for m in found for end in (m.source, m.target))
    assert any(m.source.startswith(f"{node}:") for m in through(Rerun(build(KEYS)), [span]).moves)


def test_spans_may_be_cut_anywhere(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30))
    (span,) = measured(tmp_path)
    whole = through(Rerun(build(KEYS)), [span])
    for at in (1, 7, 20):
        parts = [span.within(0, span.time_s[at - 1]), span.within(span.time_s[at], np.inf)]
        assert [len(part.time_s) for part in parts] == [at, len(span.time_s) - at]
        series = through(Rerun(build(KEYS)), parts)
        assert series.moves == whole.moves
        assert series.inter_node_tps.tolist() == whole.inter_node_tps.tolist()
    assert len(span.within(0, 1).time_s) == 0


def test_a_higher_threshold_moves_less_and_leaves_more_between_nodes(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(20), mode="advise")
    found = measured(tmp_path)
    keys = {**KEYS, "target.gain": 1.0}
    runs = [through(Rerun(build({**keys, "asc.threshold": t})), found) for t in (0.002, 0.1, 1.0)]
    assert len(runs[0].moves) > len(runs[1].moves) > len(runs[2].moves) == 0
    assert runs[0].inter_node_frac < runs[2].inter_node_frac


def test_a_longer_cycle_decides_less_often(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(20), mode="advise")
    found = measured(tmp_path)
    series = through(Rerun(build({**KEYS, "cycle.secs": 4 * TICK_S})), found)
    assert np.flatnonzero(series.outcome != NO_CYCLE).tolist() == [0, 4, 8, 12, 16]


def test_demand_beyond_the_cpu_is_counted_in_core_seconds(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(6), mode="advise")
    (span,) = measured(tmp_path)
    cores = np.where(span.place == 0, 9.0, 0.0).astype(np.float32)
    hot = replace(span, cpu_cores=np.tile(cores, (5, 1)))
    keys = {**KEYS, "asc.threshold": 1.0, "target.gain": 1.0, "load.high": 1.0}
    series = through(Rerun(build(keys)), [hot])
    # Two executors of 9 cores on a worker of 2.
    assert through(Rerun(None), [hot]).unserved_core_s.tolist() == [(2 * 9 - 2) * TICK_S] * 5
    assert series.max_load_frac[0] == pytest.approx(9.0)


def test_what_storm_places_anew_is_followed_and_the_replays_own_moves_stay(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        if tick == 10:  # an operator's rebalance
            run.world.places[ExecutorId(6, 6)] = SLOTS[0]

    record(tmp_path, ticks=range(20), mode="advise", each=each)
    (span,) = measured(tmp_path)
    (shift,) = span.shifts
    assert (shift.row, shift.executor, shift.worker, shift.own) == (9, 5, 0, False)
    nothing = through(
        Rerun(build({"asc.threshold": 1.0, "target.gain": 1.0, "load.high": 1.0})), [span]
    )
    assert nothing.moves == ()
    assert nothing.inter_node_tps.tolist() == through(Rerun(None), [span]).inter_node_tps.tolist()


def test_nothing_is_decided_while_storm_does_something_of_its_own(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(12), mode="advise")
    (span,) = measured(tmp_path)
    held = replace(span, held=np.ones_like(span.held))
    assert through(Rerun(build(KEYS)), [held]).moves == ()


def test_a_worker_that_comes_begins_a_new_span_and_replayed_places_stay(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        if tick == 10:
            run.world.places[ExecutorId(2, 2)] = SLOTS[1]

    record(tmp_path, ticks=range(20), mode="advise", executors=5, each=each)
    found = measured(tmp_path)
    assert len(found) >= 1
    assert sum(len(span.time_s) for span in found) >= 18
    series = through(
        Rerun(build({**KEYS, "asc.threshold": 1.0, "target.gain": 1.0, "load.high": 1.0})), found
    )
    assert series.inter_node_tps.tolist() == through(Rerun(None), found).inter_node_tps.tolist()


def test_a_recording_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    record(tmp_path)
    (span,) = measured(tmp_path)
    again = pickle.loads(pickle.dumps(span))
    assert through(Rerun(build(KEYS)), [again]).moves == through(Rerun(build(KEYS)), [span]).moves


def test_a_clock_that_goes_back_holds_nothing_up(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        run.shift_s = 3600 if tick >= 8 else 0

    record(tmp_path / "set", ticks=range(20), mode="advise", each=each)
    record(tmp_path / "plain", ticks=range(20), mode="advise")
    (back,), (plain,) = measured(tmp_path / "set"), measured(tmp_path / "plain")
    assert (np.diff(back.time_s) < 0).sum() == 1
    series, wanted = through(Rerun(build(KEYS)), [back]), through(Rerun(build(KEYS)), [plain])
    assert series.outcome.tolist() == wanted.outcome.tolist()
    assert [m.executor for m in series.moves] == [m.executor for m in wanted.moves]
    assert {m.time_s for m in series.moves} <= set(back.time_s.tolist())


def test_no_load_gives_an_empty_series() -> None:
    series = through(Rerun(build({})), [])
    assert (len(series.time_s), series.moves, series.inter_node_frac) == (0, (), 0.0)


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("explain", [True, False])
def test_it_may_go_on_in_another_process(policy: str, *, explain: bool) -> None:
    """Spark hands runs over between waves."""
    run = Rerun(build({"policy": policy}), explain=explain)
    assert pickle.loads(pickle.dumps(run)).series().moves == ()


def test_it_counts_other_topologies_at_their_peaks_as_a_live_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has the same workers and loads, under another name."""
    seen, other = WindowWorld.seen, "ad-1-7"

    def both(world: WindowWorld) -> CycleInput:
        now = seen(world)
        (view,) = now.topologies
        own = [
            structs.replace(acks, workers=tuple(map(renamed, acks.workers))) for acks in view.acks
        ]
        publication = structs.replace(view.publication, topology=other, name="ad")
        plan = structs.replace(view.plan, topology=other)
        twice = replace(view, publication=publication, plan=plan, acks=tuple(own))
        acks = tuple(
            structs.replace(one, workers=one.workers + more.workers)
            for one, more in zip(view.acks, own, strict=True)
        )
        loads = tuple(
            structs.replace(load, workers=load.workers + tuple(map(renamed, load.workers)))
            for load in now.loads
        )
        views = tuple(replace(one, acks=acks) for one in (view, twice))
        return replace(now, topologies=views, loads=loads)

    def renamed(one: Any) -> Any:
        return structs.replace(one, topology=other)

    def yesterday(tick: int, run: Recorded) -> None:
        if tick == 0:
            peaks = Peaks(hours=(Hour(int(BEGIN_S // HOUR_S) - 9, 20_000.0),), seen_s=BEGIN_S)
            run.memory = replace(run.memory, peaks={topology_name(other): peaks})

    monkeypatch.setattr(WindowWorld, "seen", both)
    shared = {"worker.cpu.capacity": None}
    reports = record(tmp_path, mode="observe", keys=shared, each=yesterday)
    cases = noted(monkeypatch)
    (span,) = [one for one in measured(tmp_path) if one.topology != other]
    through(Rerun(build(KEYS)), [span])
    live, found = reports[-2].picture, cases[-1].cluster
    assert live is not None and live.view.id == span.topology
    for name in ("other_cores", "peak_cores"):
        assert getattr(live.cluster, name).min() > 0.5
        assert getattr(found, name) == pytest.approx(getattr(live.cluster, name), rel=1e-2), name
