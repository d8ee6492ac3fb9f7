"""``nstorm pipeline``: each stage alone, and together what `tune` answers with."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import dataset, parquet
from typer.testing import CliRunner

from controller.cli.main import app
from controller.pipeline.figures import Figures
from controller.pipeline.schemas import ANSWERS, EPISODES
from controller.tune.choice import Objective
from tests.recorded_world import record


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text("policy: [otd, lf]\n")
    record(tmp_path / "journal", ticks=range(30), mode="advise")


def made(stage: str, *more: str) -> list[dict[str, Any]]:
    given = ["pipeline", stage, "journal", "--tables", "tables", *more, "-o", "json"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["stage"], document["left_out"]) == (stage, [])
    rows: list[dict[str, Any]] = document["rows"]
    return rows


def test_each_stage_is_readable_alone() -> None:
    (segment,) = made("raw")
    assert Path(segment["uri"]).stat().st_size == segment["size_bytes"]
    assert not Path("tables").exists()
    (part,) = made("ticks")
    assert (part["topology"], part["ticks"]) == ("wc-1", 29)
    table = dataset.dataset(Path("tables") / part["folder"], partitioning="hive").to_table()
    assert table["kind"].to_pylist().count("tick") == 29
    (episode,) = made("episodes")
    assert episode["folders"] == [part["folder"]]
    assert not Path("tables/trials").exists()
    trials = made("trials", "--space", "space.yaml")
    answers = made("answers", "--space", "space.yaml")
    assert {(row["topology"], row["day"]) for row in answers} == {("wc-1", episode["day"])}
    (left,) = Path("tables/answers").iterdir()
    assert parquet.read_table(left).select(ANSWERS.names).schema == ANSWERS
    assert sorted(episode) == sorted(EPISODES.names)
    names = [row["settings"] for row in answers[::2]]
    assert len(names) == 3
    assert names[0].startswith("as today")
    # Of one episode the sum is the trial.
    for answer in answers:
        (trial,) = [
            row
            for row in trials
            if (row["settings"], row["held_back"]) == (answer["settings"], answer["held_back"])
        ]
        assert trial == {name: answer[name] for name in trial}
        assert answer["cost"] == Objective().cost(Figures.of_row(trial)) > 0
        # Of the decisions, one of ten.
        assert 1 <= sum(one["decisions"] for one in answer["bound"]) <= 2
    assert sum(row["ticks"] for row in answers[:2]) == 29


def test_an_episode_of_which_nothing_is_held_back_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is of two days: sets are chosen by all of the first one."""
    monkeypatch.setattr("tests.recorded_world.TICK_S", 300.0)
    record(Path("days"), ticks=range(40), mode="advise", keys={"cycle.secs": 300.0})
    given = ["pipeline", "episodes", "days", "--tables", "tables", "-o", "json"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    rows = msgspec.json.decode(result.stdout)["rows"]
    assert [row["chosen_s"] is None for row in rows] == [True, False]


def test_people_read_a_line_for_each_row() -> None:
    result = CliRunner().invoke(app, ["pipeline", "episodes", "journal"])
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    assert "topology=wc-1" in line
    assert "ticks=29" in line
    result = CliRunner().invoke(app, ["pipeline", "episodes", "journal", "--topology", "x"])
    assert "the log has no topology x, it has wc-1" in str(result.exception)
