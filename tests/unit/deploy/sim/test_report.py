"""What is measured and printed, and the command that does it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.command import app
from deploy.sim import ScenarioError
from deploy.sim.report import simulate_all, text
from deploy.sim.scenario import MARKER, parse, split

HEAD = """title: Small
seconds: 20
step_s: 0.5
warm_s: 2
window_s: 5
baseline: still
workload: {name: wordcount, splits: 2, counts: 4}
cluster: {workers: 1}
feed: {rate_tps: 100}
runs:
  still: {system: none}
  storm: {system: storm, redeploy: {first_s: 8}, delays: {rebalance_s: 6}}
"""
EXPECT = """expect:
  - storm.down_100_s > still.down_100_s
  - storm.moves <= 1
figures:
  - storm.down_100_s is 7 in a book
"""


def test_measures_expectations_figures_and_plots() -> None:
    report = simulate_all(parse(HEAD + EXPECT))
    assert report.holds
    assert report.measures["storm.down_100_s"] == 6
    assert report.measures["still.tps_end"] == pytest.approx(100)
    # Nothing waits at this rate, and yet a sentence takes its time.
    assert 0 < report.measures["still.latency_ms_end"] < 1
    printed = text(report)
    assert "holds  storm.down_100_s > still.down_100_s  (6, 0)" in printed
    assert "storm.down_100_s  7       6     -14%   a book" in printed
    (bars,) = [line for line in printed.splitlines() if line.startswith("storm  ")][:1]
    assert "·" in bars
    assert all(line == line.rstrip() for line in printed.splitlines())


def test_an_expectation_that_does_not_hold_is_said() -> None:
    report = simulate_all(parse(HEAD + "expect: ['still.tps_end > 101']"))
    assert not report.holds
    assert "FAILS  still.tps_end > 101" in text(report)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("expect: ['still.speed > 1']", "still.speed: no such measure, there are still.tps,"),
        ("expect: ['heron.tps > 1']", "heron.tps: no such measure, there are still, storm"),
        ("figures: ['still.x is 1 in y']", "still.x: no such measure"),
    ],
)
def test_an_unknown_measure_is_refused(more: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        simulate_all(parse(HEAD + more))


def test_the_command_prints_rewrites_and_tells_by_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "small.txt"
    file.write_text(HEAD + EXPECT)
    printed = CliRunner().invoke(app, ["simulate", str(file), "--rewrite"])
    assert printed.exit_code == 0
    head, results = split(file.read_text())
    assert head == HEAD + EXPECT
    assert results.strip() == printed.stdout.strip()
    again = CliRunner().invoke(app, ["simulate", str(file), "--rewrite", "-o", "json"])
    assert file.read_text() == f"{head}{MARKER}{results}"
    answer = json.loads(again.stdout)
    assert answer["measures"]["storm.moves"] == 1
    assert len(answer["series"]["storm"]["throughput_tps"]) == 20
    assert answer["figures"][0]["theirs"] == 7
    file.write_text(HEAD + "expect: ['still.tps_end > 101']")
    assert CliRunner().invoke(app, ["simulate", str(file)]).exit_code == 1


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["simulate", str(tmp_path / "none.txt")])
    assert isinstance(result.exception, ScenarioError)
    assert "none.txt: No such file" in str(result.exception)


TWO_RUNS = """
seconds: 130
step_s: 0.5
warm_s: 10
window_s: 20
left_alone: still
workload: {name: wordcount, splits: 2, counts: 4, sentence_bytes: 100, word_bytes: 20}
cluster: {workers: 1, cores: 1, shared_by: node, heap_mb: 640, link_bytes_s: 1.0e+7}
feed: {rate_tps: 5000}
runs:
  still: {system: none}
  slower: {system: none, events: ["at 70: slow n0 0.2"]}
"""


def test_a_run_is_compared_with_the_one_that_is_left_alone() -> None:
    report = simulate_all(parse(TWO_RUNS))
    found = report.measures
    assert found["still.offered_tps"] == pytest.approx(5000)
    assert found["still.share"] == found["still.carried_x"] == found["still.room_x"] == 1
    # Half of the run with a fifth of a node, which then is too little.
    assert found["slower.share_min"] < 0.9
    assert found["slower.share"] == pytest.approx((1 + found["slower.share_min"]) / 2, abs=0.01)
    assert found["slower.carried_x"] == pytest.approx(found["slower.share"], abs=0.001)
    assert found["slower.pending_end"] > 100 * found["still.pending_end"]
    assert found["slower.room_cpu"] == pytest.approx(found["still.room_cpu"] / 5)
    assert found["slower.room_cpu_x"] == pytest.approx(1 / 5)
    assert found["still.room_heap"] == 10
    assert found["slower.room_heap_x"] == found["slower.room_link_x"] == 1
    assert found["still.bytes_end"] == pytest.approx(0.5, abs=0.1)
    assert found["still.cpu_us"] == pytest.approx(found["slower.cpu_us"], rel=0.01)
    assert "room_link" in text(report)


def test_what_is_not_known_is_left_out() -> None:
    report = simulate_all(parse(TWO_RUNS.replace("rate_tps: 5000", "pending: 20000")))
    assert "still.share" not in report.measures
    assert report.measures["slower.carried_x"] < 1
    line = next(one for one in text(report).splitlines() if one.startswith("carried_x "))
    assert "-" not in line


def test_the_run_that_is_left_alone_must_be_there() -> None:
    with pytest.raises(ScenarioError, match="left_alone: must be one of still, slower, is 'no'"):
        parse(TWO_RUNS.replace("left_alone: still", "left_alone: 'no'"))
