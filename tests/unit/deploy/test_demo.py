"""The pure parts of the demo: when to stop, which seconds count, what the report has."""

import json
import os
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

import agent.config
from controller.config import from_storm_yaml
from controller.core.decision import Outcome
from controller.storm.move_record import MoveRecord
from deploy.demo.calm import QUIET_CYCLES, Calm
from deploy.demo.gauges import Look, WorkerLook
from deploy.demo.picture import draw
from deploy.demo.play import (
    COOLDOWN_S,
    CYCLE_S,
    LAB_CONF,
    LINK,
    MOVES_AT_ONCE,
    SHARED_CORES_CONF,
    write,
)
from deploy.demo.report import Recording, assemble, is_lossless, lines
from deploy.demo.screen import Screen
from deploy.demo.windows import DemoSpan, felt_span, is_warm, like, pauses_ms
from deploy.lab.ledger import LedgerWindow, Totals
from deploy.lab.network import parse_rate
from deploy.lab.pairing import Pair
from migration import storm_yaml
from tests.lab_figures import side
from tests.messages import replace


def window(t_s: int, acked: int, max_ms: float = 10.0) -> LedgerWindow:
    return LedgerWindow(
        t_s, emitted=acked, acked=acked, max_ms=max_ms, latency=Counter({100: acked})
    )


def move(ended_s: float, outcome: str = "MOVED", stopped_after_s: float | None = 1.5) -> MoveRecord:
    phase_s = {"PREPARE": 0.5, "SWITCH": 0.5, "DRAIN": 0.25, "STOP": 0.25, "SETTLE": 8.5}
    ends = ("7-7", "s1:1", "s2:2")
    return MoveRecord(
        "wc-1", "m1", *ends, outcome, "because", phase_s, stopped_after_s, ended_s=ended_s
    )


def calm_after(*outcomes: Outcome, resting: bool = False) -> Calm:
    calm = Calm()
    for tick, outcome in enumerate(outcomes):
        calm = calm.after(tick, outcome, resting=resting)
    return calm


def test_enough_quiet_cycles_in_a_row_are_rest() -> None:
    quiet = (Outcome.NOTHING_TO_GAIN, Outcome.BELOW_THRESHOLD) * (QUIET_CYCLES // 2)
    assert not calm_after(*quiet[1:]).reached
    assert calm_after(*quiet).reached
    assert calm_after(Outcome.MOVED, *quiet, resting=True).reached


@pytest.mark.parametrize(
    "other", [Outcome.MOVED, Outcome.COOLDOWN, Outcome.MOVE_IN_FLIGHT, Outcome.STALE_METRICS]
)
def test_anything_else_begins_the_count_anew(other: Outcome) -> None:
    quiet = Outcome.NOTHING_TO_GAIN
    assert calm_after(quiet, quiet, other, quiet, quiet).quiet_cycles == 2


def test_a_cycle_counts_once_and_a_missed_one_breaks_the_row() -> None:
    quiet = Outcome.BELOW_THRESHOLD
    calm = calm_after(quiet, quiet)
    assert calm.after(1, quiet, resting=False) == calm
    assert calm.after(2, quiet, resting=False, searching=True) == Calm(2)
    assert calm.after(3, quiet, resting=False) == Calm(3, 1)


def test_a_forbidden_move_is_rest_only_once_nobody_cools_down() -> None:
    barred = (Outcome.LAST_IN_WORKER,) * QUIET_CYCLES
    assert calm_after(*barred).reached
    assert not calm_after(*barred, resting=True).reached


def test_warm_is_when_throughput_no_longer_grows() -> None:
    assert not is_warm([window(t, 100) for t in range(19)])
    assert is_warm([window(t, 100) for t in range(20)])
    assert not is_warm([window(t, 100 + 10 * t) for t in range(20)])
    assert not is_warm([window(t, 0) for t in range(20)])


def test_a_span_has_whole_seconds_inside_and_touches_more() -> None:
    windows = [window(t, 1) for t in range(6)]
    span = DemoSpan(1.5, 4.2)
    assert [w.t_s for w in span.seconds_of(windows)] == [2, 3]
    assert [w.t_s for w in span.seconds_touched(windows)] == [1, 2, 3, 4]


def test_a_move_is_felt_until_its_source_has_stopped() -> None:
    assert felt_span(move(ended_s=110.0)) == DemoSpan(100.0, 101.5)
    assert felt_span(move(110.0, "UNDONE", stopped_after_s=None)) is None


def test_the_pause_is_the_longest_latency_around_the_move() -> None:
    windows = [window(99, 1, 900.0), window(100, 1, 20.0), window(101, 1, 70.0), window(102, 1)]
    assert pauses_ms(windows, [DemoSpan(100.2, 101.7)]) == [70.0]
    assert pauses_ms(windows, [DemoSpan(500.0, 501.0)]) == []


def test_control_spans_are_as_long_as_moves() -> None:
    spans = like([DemoSpan(0, 1), DemoSpan(0, 2), DemoSpan(0, 9)], DemoSpan(100, 106))
    assert spans == [DemoSpan(100 + i, 102 + i) for i in range(4)]
    assert like([], DemoSpan(100, 106)) == []


LOOK = Look(
    workers=(WorkerLook("127.0.0.2", "6700", 0.5, "2 split"),),
    inter_node_frac=0.25,
    tick=3,
    outcome="COOLDOWN",
    reason="rests",
    entries=0,
    ended=(move(60.0),),
)


def recording() -> Recording:
    windows = [window(t, 400) for t in range(120)]
    windows[60] = window(60, 0, 0.0)
    windows[61] = window(61, 400, 300.0)
    return Recording(
        storm_version="2.8.3",
        windows=tuple(windows),
        inter_node=((30.0, 0.5), (70.0, 0.3)),
        rate_tps=400.0,
        quiet=DemoSpan(30, 50),
        came_to_rest=True,
        cooldown_s=20.0,
        moves=(move(70.0), move(70.5, "UNDONE", None)),
        pairs=(Pair(side(1000), side(1190)), Pair(side(1010), side(1222.1))),
        broken_off="",
        taken=(("b", DemoSpan(80, 90)), ("a", DemoSpan(92, 102))),
        load_averages=(2.04, 3.0),
        link_bps=None,
        own_cores=None,
        totals=Totals(100, 100, 0, 0, 500, 500, 0),
        restarted_pids=0,
        meters_risen={"a": 0, "b": 0},
        took_s=250.0,
    )


def test_a_comparison_that_was_broken_off_keeps_its_pairs_and_says_why() -> None:
    broken = replace(recording(), broken_off="1-1: REFUSED no free slot")
    report = assemble(broken)
    assert len(report["pairs"]) == 2
    assert "broken off, so pairs are missing: 1-1: REFUSED no free slot" in lines(report)
    assert any("times the throughput" in line for line in lines(report))
    none = assemble(replace(broken, pairs=()))
    assert none["verdict"] == ["the two placements could not be compared"]
    assert not [line for line in lines(assemble(recording())) if "broken off" in line]


def test_the_demo_fails_only_if_something_was_lost() -> None:
    one = recording()
    assert is_lossless(assemble(replace(one, broken_off="a switch")))
    assert not is_lossless(assemble(replace(one, totals=replace(one.totals, failed=1))))
    assert not is_lossless(assemble(replace(one, totals=replace(one.totals, words_counted=499))))


def test_the_report_says_whose_the_cores_are() -> None:
    shared = next(line for line in lines(assemble(recording())) if line.startswith("cores: "))
    assert "a placement that empties a node loses no CPU" in shared
    own = assemble(replace(recording(), own_cores=0.9))
    assert "cores: 0.9 of its own for each node; decided at saturation, as measured" in lines(own)


def test_the_report_says_what_was_recorded() -> None:
    report = json.loads(json.dumps(assemble(recording()), allow_nan=False))
    assert report["moves"] == 1
    assert report["moves_not_made"] == ["7-7 UNDONE: because"]
    assert report["worker_restarts"] == {"by_pid": 0, "by_storm_meters": 0}
    gain = report["compared"]["acked_tps"]
    assert (gain["storm"], gain["new"]) == (1005, pytest.approx(1206.05))
    assert gain["ratio"] == pytest.approx(1.2, abs=1e-3)
    assert gain["low"] < 1.19
    assert gain["high"] > 1.21
    assert report["compared"]["link_bytes_per_sentence"] is None
    assert report["pairs"][1]["b"]["acked_tps"] == 1222.1
    assert report["move_pause_ms"]["max"] == 300
    assert report["control_pause_ms"]["max"] == 10
    zero = {"moves": 1, "moves_seconds": 2, "control": 0, "control_seconds": 20}
    assert report["zero_throughput_windows"] == zero
    said = "\n".join(lines(report))
    assert "sentences/s: 1005 and 1206: 1.200 (1.0" in said
    assert "bytes on the links per sentence: not taken" in said
    assert "the new placement pays" in said
    assert "load average 2.0 to 3.0" in said


def test_a_restart_a_loss_and_a_worse_placement_are_not_hidden() -> None:
    worse = replace(
        recording(),
        pairs=(Pair(side(1000), side(800)), Pair(side(1000), side(799))),
        restarted_pids=1,
        meters_risen={"killed": 2},
        totals=Totals(100, 97, 3),
        moves=(),
    )
    report = assemble(worse)
    assert report["worker_restarts"] == {"by_pid": 1, "by_storm_meters": 2}
    assert (report["emitted"], report["acked"], report["failed_tuples"]) == (100, 97, 3)
    assert report["move_pause_ms"] == {"p50": None, "p99": None, "max": None}
    said = "\n".join(lines(report))
    assert "the new placement does NOT pay: 0.799" in said
    assert "the machine's CPU, which is full, a sentence takes 1.000" in said
    assert "unknown" in said


def test_one_pair_has_no_interval_and_none_no_figure() -> None:
    one = assemble(replace(recording(), pairs=recording().pairs[:1]))
    assert json.dumps(one, allow_nan=False)
    assert "one pair alone has no interval" in "\n".join(lines(one))
    nothing = assemble(replace(recording(), pairs=(), taken=(), load_averages=()))
    assert set(nothing["compared"].values()) == {None}
    assert "left Storm's placement as it was" in "\n".join(lines(nothing))


def shown(*, is_terminal: bool) -> str:
    written = StringIO()
    with Screen(Console(file=written, force_terminal=is_terminal, width=100)) as screen:
        screen.next_step()
        screen.show(LOOK, 400)
    return written.getvalue()


def test_a_terminal_shows_placement_load_and_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb one shows nothing that changes
    live = shown(is_terminal=True)
    for text in ("127.0.0.2", "6700", "50%", "2 split", "400 sentences", "0.250", "COOLDOWN: re"):
        assert text in live


def test_without_a_terminal_there_are_plain_lines() -> None:
    assert shown(is_terminal=False) == "  0% start the cluster\n"


def test_the_settings_are_ones_that_controller_and_agent_know(tmp_path: Path) -> None:
    config, _ = from_storm_yaml(LAB_CONF | SHARED_CORES_CONF)
    assert (config.cycle_s, config.cooldown_s) == (CYCLE_S, COOLDOWN_S)
    from_storm_yaml({**LAB_CONF, "nstorm.max.moves.per.cycle": MOVES_AT_ONCE})
    assert parse_rate(LINK)
    assert config.capacity.fixed_cores == len(os.sched_getaffinity(0)) / 2
    conf = tmp_path / "storm.yaml"
    conf.write_text(yaml.safe_dump({"storm.local.dir": str(tmp_path), **LAB_CONF}))
    assert agent.config.from_storm_yaml(storm_yaml.read(conf))


def test_both_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "demo", assemble(recording()), recording())
    assert {file.name for file in (tmp_path / "demo").iterdir()} == {"report.json", "report.png"}


def test_the_picture_is_a_png() -> None:
    assert draw(recording()).startswith(b"\x89PNG")
