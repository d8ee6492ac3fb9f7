"""The benchmark of replays measures what it claims, at sizes that take no time."""

import json
import subprocess
from pathlib import Path

import pytest

from controller.config import build
from controller.journal.reader import Log
from controller.pipeline.fold import Fold
from controller.replay.recording import spans
from controller.tune.space import Space, parameter_sets
from tests.bench.replay import report
from tests.bench.replay.cases import TICK_S, record
from tests.bench.replay.cost import cost
from tests.bench.replay.pipeline import _run, _spread
from tests.bench.replay.reading import reading
from tests.bench.replay.spark import _timed, prepared

SADDLE = Path(__file__).parents[2] / "golden" / "decide" / "saddle.json"


def test_costs_are_of_the_run(tmp_path: Path) -> None:
    found = cost(40, 5, tmp_path)
    assert (found["executors"], found["ticks"]) == (40, 5)
    assert found["record_bytes"] > 40 * 50
    timed = ("cycle_ms", "journal_ms", "replay_ms", "read_ms", "rerun_ms")
    assert min(found[key] for key in timed) > 0
    assert found["journal_frac"] == pytest.approx(found["journal_ms"] / found["cycle_ms"], rel=0.05)


def test_a_long_log_goes_on_where_the_short_one_ends(tmp_path: Path) -> None:
    found = reading(40, 6, 15, tmp_path)
    # The first tick of each turn could not be measured when it was recorded.
    assert (found["ticks"], found["measured_ticks"]) == (15, 12)
    (span,) = spans(Log.open([tmp_path / "15-of-40"]))
    (short,) = spans(Log.open([tmp_path / "recorded"]))
    assert span.traffic_tps[5:10] == pytest.approx(short.traffic_tps, rel=1e-5)
    assert span.time_s[-1] - span.time_s[0] == 13 * TICK_S
    (tmp_path / "recorded").rename(tmp_path / "away")
    assert reading(40, 6, 15, tmp_path)["measured_ticks"] == 12  # the log that is there


def test_a_sweep_is_timed_as_if_it_were_the_first(tmp_path: Path) -> None:
    of = prepared(record(20, 12, tmp_path / "log"), tmp_path)
    sets = parameter_sets(Space({"load.high": (0.8, 0.9)}), build({}).keys)
    for _ in range(2):
        took_s, figures = _timed(of, sets, tmp_path, Fold(tmp_path))
        assert took_s > 0
        assert [one.chosen_by.ticks + one.held_back.ticks for one in figures] == [11] * 3


def test_a_stage_is_timed_with_the_memory_of_its_driver() -> None:
    # It takes longer than from one look to the next.
    found = _run(["decide", str(SADDLE)])
    assert found["s"] > 0
    assert found["driver_python_mb"] > 10
    assert found["driver_jvm_mb"] == 0
    with pytest.raises(subprocess.CalledProcessError):
        _run(["pipeline", "ticks", "nowhere"])
    assert _spread([3.0, 1.0, 2.0]) == {"least": 1.0, "median": 2.0, "most": 3.0}


def test_all_of_it_makes_tables_and_json() -> None:
    told: list[str] = []
    found = report.bench(report.Sizes(cost=(40,), ticks=5, rounds=0), told.append)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [table.row_count for table in report.as_tables(found)] == [1]
    assert told == ["a cycle and its journal at 40 executors"]
