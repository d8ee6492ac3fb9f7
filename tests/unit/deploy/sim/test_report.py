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
