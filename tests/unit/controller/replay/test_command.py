"""``nstorm replay`` on the command line."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.errors import CommandError
from controller.ingest.tables import ingest
from controller.journal.lines import JournalError
from controller.replay import rerun
from migration import ConfigError
from migration.settings import DEFAULT, TUNABLE
from tests.messages import replace
from tests.recorded_world import BEGIN_S, Recorded, edit, record


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["replay", *map(str, arguments)], catch_exceptions=True)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def as_json(*arguments: str | Path, code: int = 0) -> Any:
    return json.loads(run(*arguments, "-o", "json", code=code))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    record(tmp_path / "journal", ticks=range(12), delay_ticks=1)
    return tmp_path / "journal"


def test_all_ticks_are_identical(journal: Path) -> None:
    assert "12 of 12 ticks identical" in run(journal)
    document = as_json(journal)
    assert (document["ticks"], document["identical"], document["skipped"]) == (12, 12, [])
    assert [cycle["outcome"] for cycle in document["cycles"]][:2] == ["STALE_METRICS", "MOVED"]


def test_only_ticks_with_something_new_are_printed_unless_all_are_wanted(journal: Path) -> None:
    cycles = as_json(journal)["cycles"]
    alike = sum(
        not cycle["moves"] and cycle["outcome"] == before["outcome"]
        for before, cycle in pairwise(cycles)
    )
    assert 0 < alike < 11
    short, whole = run(journal), run(journal, "--all")
    said = f"{alike} decisions with the outcome of the one before left out; --all prints them"
    assert said in short and "left out" not in whole
    assert (short.count(" wc-1 "), whole.count(" wc-1 ")) == (12 - alike, 12)
    assert as_json(journal, "--all")["cycles"] == cycles


def test_a_part_of_the_time(journal: Path) -> None:
    document = as_json(journal, "--from", str(BEGIN_S + 10), "--to", "2023-11-14T22:13:40Z")
    assert [cycle["time_s"] - BEGIN_S for cycle in document["cycles"]] == [10, 15, 20]
    with pytest.raises(JournalError, match="no tick of that time"):
        run(journal, "--from", "2030-01-01")
    with pytest.raises(CommandError, match="--to: 'soon' is no time such as"):
        run(journal, "--to", "soon")


def test_the_share_of_a_worker_without_cpu_is_none(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        one, two = run.world.publication.nodes
        nodes = one, replace(two, cpu_capacity=0.0)
        run.world.publication = replace(run.world.publication, nodes=nodes)

    given = {"worker.cpu.capacity": None}
    record(tmp_path, ticks=range(12), mode="advise", keys=given, each=each)
    (one,) = as_json(tmp_path, "--set", "load.high=0.7")["topologies"]
    assert one["as_it_was"]["max_load_frac"] is None
    assert " – " in run(tmp_path, "--set", "load.high=0.7")


def test_a_difference_ends_with_code_1(journal: Path) -> None:
    (path,) = journal.iterdir()
    edit(path, lambda tick: tick["cycles"][0].update(reason="another"), row=-1)
    document = as_json(journal, code=1)
    assert document["identical"] == 11
    assert [c["recorded"]["reason"] for c in document["cycles"] if not c["identical"]] == [
        "another"
    ]
    assert "another" in run(journal, code=1)


def test_a_key_without_effect_is_said_and_a_lower_limit_follows(journal: Path) -> None:
    changes = "load.high=0.5", "journal.days=4", "min.age.secs=0", "link.capacity.mbit=5"
    given = [f"--set={change}" for change in changes]
    without = ["journal.days", "min.age.secs", "link.capacity.mbit"]
    assert as_json(journal, *given)["without_effect"] == without
    assert "journal.days has no effect on a replay" in run(journal, *given)


def test_each_key_that_a_sweep_varies_has_an_effect() -> None:
    assert rerun.KEYS.issubset(DEFAULT)
    assert rerun.KEYS.issuperset(TUNABLE)


def test_another_configuration_is_compared(journal: Path) -> None:
    nothing = {"asc.threshold": 1, "target.gain": 1, "load.high": 1}
    document = as_json(journal, *(f"--set={key}={value}" for key, value in nothing.items()))
    (one,) = document["topologies"]
    assert document["changes"] == nothing
    assert one["moves"] == []
    assert one["changed"]["moves"] == 0
    # Two more begin in the last tick, and no later one shows them.
    assert one["recorded"]["moves"] == one["as_it_was"]["moves"] + 2 == 8
    assert one["recorded"]["inter_node_frac"] < one["changed"]["inter_node_frac"]
    assert one["changed"]["outcomes"] == {"BELOW_THRESHOLD": 11}
    assert document["without_effect"] == []
    text = run(journal, "--policy", "otd")
    assert "policy=otd: " in text and "MOVED" in text
    assert "replayed unchanged" in text


def test_what_cannot_be_is_one_message(journal: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"load\.high: must be a number of at least 0.01 and at"):
        run(journal, "--set", "load.high=7")
    with pytest.raises(ConfigError, match="unknown key"):
        run(journal, "--set", "lod.high=0.7")
    with pytest.raises(ConfigError, match="policy: must be one of"):
        run(journal, "--policy", "best")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(JournalError, match="no journal segment"):
        run(empty)


def test_a_log_of_another_version_says_so(journal: Path) -> None:
    (path,) = journal.iterdir()
    whole = path.read_bytes()
    edit(path, lambda head: head.update(format=99))
    with pytest.raises(JournalError, match=r"no segment .* has format 99, which a newer .* reads"):
        run(journal)
    path.write_bytes(whole)
    edit(path, lambda head: head.update(config={"x": 1}))
    for more in ((), ("--set", "load.high=0.7")):
        with pytest.raises(JournalError, match=r"another version: nstorm\.x: unknown key"):
            run(journal, *more)


def test_ingest_then_replay(tmp_path: Path) -> None:
    table = tmp_path / "edges.csv"
    table.write_text("time_s,source,target,tuples\n10,1,2,50\n20,1,2,60\n30,1,2,70\n")
    assert "3 windows of 2 executors" in ingest([table], tmp_path / "out", "t")[-1]
    assert "3 of 3 ticks identical" in run(tmp_path / "out")
