"""``nstorm tune`` on the command line, without Spark: what it prints, and what cannot be."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.errors import PolicyError, TuneError
from controller.journal.lines import JournalError
from controller.journal.reader import Log
from controller.journal.writer import Bounds
from controller.pipeline import opened
from controller.pipeline.spark import spark
from controller.replay.recording import spans
from controller.tune import searches
from controller.tune.searches import Searches, TopologyCost
from migration import ConfigError
from tests.recorded_world import edit, record
from tests.unit.controller.conftest import Nstorm

NO_TARGET = "nstorm.target.gain: 1.0\n"  # more than any target gains
SPACE = "asc.threshold: [0, 0.002, 0.1]\ncooldown.executor.secs: [10, 105]\n"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    record(tmp_path / "journal", ticks=range(40), mode="advise")
    return tmp_path / "journal"


def run(*arguments: str | Path) -> Any:
    given = ["tune", *map(str, arguments), "--space", "space.yaml"]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "150"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def as_json(*arguments: str | Path) -> Any:
    return json.loads(run(*arguments, "-o", "json").stdout)


def test_it_ranks_draws_and_suggests(journal: Path) -> None:
    result = run("journal", "--out", "found")
    assert "wc-1: 39 ticks, 195 s on 1 day, the last 58 s held back; 7 parameter sets" in " ".join(
        result.stderr.split()
    )
    assert "The best of 7 parameter sets" in result.stdout
    assert "as today" in result.stdout
    assert "no moves" in result.stdout
    assert "written: found/front.png, found/report.html" in result.stdout
    assert (Path("found") / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert as_json("journal") == as_json("journal")


def test_no_change_is_written_where_it_is_not_known_to_help(journal: Path) -> None:
    conf = Path("storm.yaml")
    conf.write_text("ui.port: 1\nnstorm.asc.threshold: 1.0\nnstorm.load.high: 1.0\n" + NO_TARGET)
    change = Path("build/tune/storm.yaml.diff")
    change.parent.mkdir(parents=True)
    change.write_text("of an earlier run\n")
    document = as_json(journal, "--conf", conf)
    assert document["today"]["chosen_by"]["moves"] == 0
    found = document["suggestion"]
    assert found["gain"] > 0.01 < found["gain_held_back"]
    # All of it is of one day.
    assert (found["helps"], found["changes"], found["gain_interval"]) == (False, {}, None)
    assert found["reason"].startswith("Keep what you have: ")
    assert document["diff"] == ""
    assert not change.exists()


def test_what_there_is_without_nstorm_is_measured_by_the_same_replay(
    tmp_path: Path, journal: Path
) -> None:
    conf = Path("storm.yaml")
    conf.write_text("nstorm.asc.threshold: 1.0\nnstorm.load.high: 1.0\n" + NO_TARGET)
    document = as_json(journal, "--conf", conf)
    for part in ("chosen_by", "held_back"):
        assert document["today"][part]["moves"] == 0
        assert document["no_moves"][part] == document["today"][part]
    assert document["no_moves"] not in document["ranking"]
    # Moves that nstorm made while it was recorded are also left out.
    record(tmp_path / "moved", ticks=range(40), mode="auto")
    assert any(shift.own for span in spans(Log.open([tmp_path / "moved"])) for shift in span.shifts)
    moved = as_json(tmp_path / "moved", "--conf", conf)["no_moves"]["chosen_by"]
    assert (moved["moves"], moved["local"]) == (0, document["no_moves"]["chosen_by"]["local"])


def test_what_is_not_searched_for_is_named(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = as_json(journal)
    assert not any("also searches" in line for line in whole["left_out"])
    monkeypatch.setattr(searches, "MOST_S", 1e-6)
    without = as_json(journal)
    assert without["left_out"][0].startswith(
        "In 1 topology with 8 executors it also searches for placements. All sets together would "
    )
    assert without["left_out"][1:] == whole["left_out"]
    assert without["today"] != whole["today"]
    assert "it also searches" in " ".join(run(journal).stdout.split())


def test_the_best_sets_are_ranked_with_searches_where_not_all_can_be(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {row["settings"]: row for row in as_json(journal)["ranking"]}
    cost = TopologyCost("wc-1", 8, 0.0, 7 * 600.0)  # a third of the seven sets
    found = Searches([cost], sets=7, searching=7, cores=3)
    monkeypatch.setattr(searches, "rehearse", lambda *given: found)
    monkeypatch.setattr(searches, "FOLD_S", found.spent_s)  # else Spark would have to start
    document = as_json(journal)
    assert "only the 3 parameter sets that are best without searches" in document["left_out"][0]
    assert len(document["ranking"]) == 3
    assert document["today"] in document["ranking"]
    # What they find with searches is what they find where all sets search.
    assert all(row == whole[row["settings"]] for row in document["ranking"])


def test_without_java_one_core_searches(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise TuneError("Spark needs Java")

    whole = as_json(journal)
    monkeypatch.setattr(searches, "FOLD_S", -1.0)
    monkeypatch.setattr(searches, "started", refuse)
    assert as_json(journal)["ranking"] == whole["ranking"]


def test_only_one_topology(journal: Path) -> None:
    assert as_json(journal, "--topology", "wc-1")["today"]["chosen_by"]["ticks"] == 27
    with pytest.raises(TuneError, match="the log has no topology x, it has wc-1"):
        run(journal, "--topology", "x")


def test_damage_is_counted_and_changes_no_ranking(journal: Path, tmp_path: Path) -> None:
    whole = as_json(journal)
    (path,) = journal.iterdir()
    path.write_bytes(path.read_bytes() + b'{"crc":"0')
    cut = as_json(journal)
    assert cut["skipped"] == ["1 records cut off at the end"]
    assert cut["ranking"] == whole["ranking"]


def test_a_policy_that_cannot_work_ends_it_before_spark_starts(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "spark", None)
    Path("space.yaml").write_text("policy: [gather, sam]\n")
    with pytest.raises(PolicyError, match=r"policy sam: component bolt: profile\.performance"):
        run(journal)


def test_a_sample_is_said_to_be_one(journal: Path) -> None:
    Path("space.yaml").write_text("load.ewma: [0.1, 0.2, 0.3]\nload.high: [0.7, 0.8]\nsets: 4\n")
    assert "5 parameter sets, a sample of 6" in " ".join(run(journal).stderr.split())


def test_a_segment_that_is_there_twice_counts_once(journal: Path) -> None:
    once = as_json(journal)
    (path,) = journal.iterdir()
    path.with_name(path.name.replace("000000", "000001")).write_bytes(path.read_bytes())
    twice = as_json(journal)
    # The next segment's first tick comes with the one before it.
    assert twice["skipped"] == ["1 segments that are there twice", "1 ticks that are there twice"]
    assert twice["ranking"] == once["ranking"]


def test_a_missing_segment_is_counted(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(40), mode="advise", bounds=Bounds(segment_bytes=20_000))
    segments = sorted((tmp_path / "log").iterdir())
    assert len(segments) > 3
    segments[1].unlink()
    document = as_json(tmp_path / "log")
    assert "1 segments missing" in document["skipped"]
    today = document["today"]
    assert 20 < today["chosen_by"]["ticks"] + today["held_back"]["ticks"] < 39


def test_of_two_leaders_the_later_epoch_counts(journal: Path, tmp_path: Path) -> None:
    record(tmp_path / "other", ticks=range(20, 40), name="two", epoch=1, mode="advise")
    document = as_json(journal, tmp_path / "other")
    assert "20 ticks of a leader that had lost its lead" in document["skipped"]
    today = document["today"]
    # Of the first leader 19 after its first, of the second 19 after its first.
    assert today["chosen_by"]["ticks"] + today["held_back"]["ticks"] == 38


def test_what_cannot_be_is_one_message(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(JournalError, match="no journal segment"):
        run(tmp_path / "empty")
    with pytest.raises(JournalError, match="no such file or folder"):
        run(tmp_path / "none")
    with pytest.raises(TuneError, match="--objective speed: must be balanced"):
        run(journal, "--objective", "speed")
    (tmp_path / "file").write_text("")
    for tables in ([], ["--tables", "here"]):
        with pytest.raises(TuneError, match="--master yarn: its workers see no folder of this"):
            run(journal, "--master", "yarn", *tables)
    for folder in ("hdfs://host/out", "s3a://bucket/out"):
        with pytest.raises(TuneError, match=r"--out .* must be a folder of this machine"):
            run(journal, "--out", folder)
    assert not Path("hdfs:").exists()
    with pytest.raises(TuneError, match="--out file: File exists"):
        run(journal, "--out", "file")
    (tmp_path / "space.yaml").write_text("load.high: [2]\n")
    with pytest.raises(ConfigError, match=r"space.yaml: nstorm\.load\.high: must be a number of"):
        run(journal)


def test_out_of_range_is_one_line_and_code_2(journal: Path, nstorm: Nstorm) -> None:
    Path("space.yaml").write_text("load.high: [2]\n")
    done = nstorm("tune", "journal", "--space", "space.yaml")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith("nstorm: space.yaml: nstorm.load.high: must be a number of at least")


def test_a_log_of_another_version_or_of_nothing(journal: Path) -> None:
    (path,) = journal.iterdir()
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(TuneError, match="no tick in which a topology was measured"):
        run(journal)
    edit(path, lambda head: head.update(format=99))
    with pytest.raises(JournalError, match="no segment begins with a whole head of format"):
        run(journal)


@pytest.mark.parametrize("command", ["tune", "report"])
def test_what_cannot_be_written_is_one_line_after_the_answer(
    journal: Path, nstorm: Nstorm, command: str
) -> None:
    Path("out/report.html").mkdir(parents=True)
    given = ["--space", "space.yaml"] if command == "tune" else []
    done = nstorm(command, str(journal), *given, "--out", "out")
    assert done.code == 2
    assert done.err.splitlines()[-1] == "nstorm: --out out/report.html: Is a directory"
    assert ("The best of" if command == "tune" else "Next month") in done.out
    assert "written" not in done.out


@pytest.mark.parametrize("command", ["tune", "report"])
def test_a_page_is_utf_8_in_any_locale(journal: Path, command: str) -> None:
    given = ["--space", "space.yaml"] if command == "tune" else []
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = "from controller.cli.main import main; main()"
    line = [sys.executable, "-c", code, command, str(journal), *given, "--out", "out"]
    done = subprocess.run(
        line, env={**os.environ, **ascii_only}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text = Path("out/report.html").read_bytes().decode()
    assert not text.isascii()


@pytest.mark.parametrize("command", ["tune", "report", "pipeline trials"])
def test_settings_of_another_version_are_those_of_the_journal(
    journal: Path, nstorm: Nstorm, command: str
) -> None:
    (path,) = journal.iterdir()
    edit(path, lambda head: head["config"].update({"some.new.key": 1}))
    done = nstorm(*command.split(), str(journal))
    assert done.code == 2
    assert "nstorm: the journal's configuration is of another version: " in done.err


def test_a_missing_extra_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with (
        pytest.raises(TuneError, match="pyspark is missing; type in nstorm's folder: pip"),
        spark("local[1]", tmp_path / "spark.log", "tables"),
    ):
        pytest.fail("there is no pyspark")


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("tune", "controller.tune.run"),
        ("report", "controller.weeks.run"),
        ("pipeline ticks", "controller.tune.stage"),
    ],
)
def test_a_library_that_is_missing_is_named_before_a_folder_is_made(
    journal: Path, nstorm: Nstorm, command: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = nstorm(*command.split(), str(journal))
    assert (done.code, done.out) == (2, "")
    assert "is missing; type in nstorm's folder: pip" in done.err
    assert not Path("build").exists()


def test_without_pyspark_no_folder_is_made(
    journal: Path, nstorm: Nstorm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    done = nstorm("tune", str(journal), "--master", "local[1]", "--out", "new")
    assert done.code == 2
    assert "pyspark is missing; type in nstorm's folder: pip" in done.err
    assert not Path("new").exists()


@pytest.mark.parametrize("command", ["tune", "report"])
def test_the_help_says_that_each_day_begins_again(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
    assert "begins again from the recorded placement" in " ".join(result.output.split())
