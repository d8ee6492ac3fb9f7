"""Finished rounds are kept, and mean the same in another lab; a policy's placement is reachable."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.core.cluster import Cluster
from controller.errors import CommandError
from deploy.lab.network import parse_rate
from deploy.lab.pairing import Pair
from deploy.lab.workloads import configure
from migration.model import Component, ExecutorId, Slot
from tests.bench.command import app
from tests.bench.gain.cases import CASES
from tests.bench.gain.report import as_tables, report
from tests.bench.gain.rounds import Rounds, Target, named, names_of, unnamed
from tests.bench.gain.run import POLICIES, AskedGain, decided, set_up
from tests.lab_figures import side
from tests.snapshots import snapshot

STORM, NEW = {"1-1": "n1:1", "2-2": "n2:1"}, {"1-1": "n1:1", "2-2": "n1:1"}
TARGET = Target(STORM, NEW, (("2-2", "n1:1"),), "NOTHING_TO_GAIN: all is together")
PAIR = Pair(side(1000), side(1100))


SETUP = {"trimmed": True, "seconds": (8, 6)}


def finished(file: Path) -> Rounds:
    rounds = Rounds(file, SETUP, resume=False)
    rounds.add("cpu", "gather", target=asdict(TARGET))
    rounds.add_pair("cpu", "gather", PAIR, 2.0)
    rounds.add_pair("cpu", "gather", PAIR, 3.0)
    rounds.add("cpu", "otd", target=asdict(Target(STORM, STORM, (), "BELOW_THRESHOLD: little")))
    rounds.add("cpu", "gather", cycles=[{"move": "", **asdict(side(1000))}])
    rounds.add("cpu", "", tuples={"emitted": 10, "failed": 0})
    return rounds


def test_finished_rounds_come_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "bench" / "gain.jsonl"
    finished(file)
    again = Rounds(file, SETUP, resume=True)
    assert again.target("cpu", "gather") == TARGET
    assert again.pairs("cpu", "gather") == [PAIR, PAIR]
    assert again.load_averages("cpu", "gather") == [2.0, 3.0]
    assert (again.pairs("cpu", "otd"), again.pairs("network", "gather")) == ([], [])
    assert again.target("cpu", "lf") is None


def test_a_round_that_was_cut_off_is_taken_again(tmp_path: Path) -> None:
    file = tmp_path / "gain.jsonl"
    finished(file)
    file.write_text(file.read_text() + '{"case": "cpu", "policy": "sa')
    again = Rounds(file, SETUP, resume=True)
    assert len(again.pairs("cpu", "gather")) == 2
    again.add_pair("cpu", "gather", PAIR, 4.0)
    assert len(Rounds(file, SETUP, resume=True).pairs("cpu", "gather")) == 3


def test_what_is_finished_is_not_taken_again(tmp_path: Path) -> None:
    rounds = finished(tmp_path / "gain.jsonl")
    assert rounds.lack_pairs("cpu", "gather", 8)
    assert not rounds.lack_pairs("cpu", "gather", 2)
    assert not rounds.lack_pairs("cpu", "otd", 8)
    assert rounds.lack_pairs("network", "gather", 8)
    assert not rounds.lack_cycles("cpu", "gather")
    assert not rounds.lack_cycles("cpu", "otd")
    assert rounds.lack_cycles("cpu", "lf")
    for _ in range(2):
        rounds.add_pair("cpu", "gather", PAIR, 2.0)
    assert not rounds.lack_pairs("cpu", "gather", 8)  # four alike: known


def test_finished_rounds_are_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "gain.jsonl"
    finished(file)
    with pytest.raises(CommandError, match="--resume"):
        Rounds(file, SETUP, resume=False)


def test_rounds_of_another_set_up_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "gain.jsonl"
    finished(file)
    with pytest.raises(CommandError, match="another set-up"):
        Rounds(file, {**SETUP, "trimmed": False}, resume=True).refuse_another_set_up()
    Rounds(file, SETUP, resume=True).refuse_another_set_up()


@pytest.mark.parametrize("trim", [[], ["--trim"]])
def test_a_finished_file_gives_its_report_whatever_its_set_up(
    tmp_path: Path, trim: list[str]
) -> None:
    file = tmp_path / "gain.jsonl"
    rounds = Rounds(file, set_up(CASES, AskedGain((), 2, cycles=False, trimmed=True)), resume=False)
    rounds.add("cpu", "gather", target=asdict(TARGET))
    for load in (2.0, 3.0):
        rounds.add_pair("cpu", "gather", PAIR, load)
    command = ["gain", "--case", "cpu", "--policy", "gather", "--rounds", "2", "--resume"]
    said = CliRunner().invoke(app, [*command, *trim, "--file", str(file), "-o", "json"])
    assert f"{file} is finished" in said.stderr
    assert json.loads(said.stdout)["cpu"]["policies"]["gather"]["pairs"] == 2


def test_names_are_the_same_whatever_ids_supervisors_have() -> None:
    def placement(first: str, second: str) -> dict[ExecutorId, Slot]:
        slots = [Slot(first, 9), Slot(second, 9), Slot(first, 7), Slot(second, 9)]
        return {ExecutorId(task, task): slot for task, slot in enumerate(slots, 2)}

    one, other = placement("a", "b"), placement("z", "b")
    written = named(one, names_of(one))
    assert written == {"2-2": "n1:1", "3-3": "n2:1", "4-4": "n1:2", "5-5": "n2:1"}
    assert named(other, names_of(other)) == written
    assert unnamed(written, names_of(other)) == other


def test_the_report_says_what_each_policy_gains(tmp_path: Path) -> None:
    rounds = finished(tmp_path / "gain.jsonl")
    rounds.add("cpu", "lf", target=asdict(TARGET))
    assert report(rounds).keys() == {"cpu"}
    found = report(rounds)["cpu"]
    assert found["policies"]["lf"]["verdict"] == ["no round is finished yet"]
    assert found["tuples"] == [{"emitted": 10, "failed": 0}]
    gather, otd = found["policies"]["gather"], found["policies"]["otd"]
    assert (gather["moves"], gather["pairs"]) == (1, 2)
    assert gather["compared"]["acked_tps"]["ratio"] == pytest.approx(1.1)
    assert gather["load_average"] == {"lowest": 2.0, "highest": 3.0}
    assert gather["compared"]["link_bytes_per_sentence"] is None
    assert otd["verdict"] == ["it leaves Storm's placement as it is"]
    assert otd["load_average"] is None
    tables = [*as_tables({"cpu": found})]
    assert [table.title for table in tables] == ["cpu", "cpu, gather: after each move"]
    gain = [cell for column in tables[0].columns[1:2] for cell in column.cells]
    assert "1.100 [1.100, 1.100]" in gain
    assert "not taken" in gain


def test_the_cases_can_be_had() -> None:
    for case in CASES.values():
        conf, given = configure(case.workload, case.conf), dict(case.conf)
        # What a case declares stands next to what its workload does.
        assert conf.pop("nstorm.move").items() >= given.pop("nstorm.move", {}).items()
        assert conf.items() >= given.items()
        assert parse_rate(case.link)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policys_placement_empties_no_worker_and_moves_nobody_pinned(policy: str) -> None:
    """A spout and an acker are pinned; two bolts talk with the spout of the other node."""
    slots = {Slot("a", 1): "n1:1", Slot("b", 1): "n2:1"}
    cluster = Cluster.build(["a", "b"], [(str(slot), slot.supervisor, 4.0) for slot in slots])
    kinds = {"spout": "spout", "__acker": "acker", "bolt": "bolt"}
    start = snapshot(
        ["spout", "__acker", "bolt", "bolt"],
        [0, 1, 1, 1],
        0.1,
        [(0, 2, 100.0), (0, 3, 100.0), (2, 1, 1.0), (3, 1, 1.0)],
        of=[Component(name, kind, 1) for name, kind in kinds.items()],
        pinned=("spout", "acker", None, None),
        first=1,
    )
    found = decided((cluster, start), policy, slots)
    assert found.storm == {"1-1": "n1:1", "2-2": "n2:1", "3-3": "n2:1", "4-4": "n2:1"}
    assert (found.new["1-1"], found.new["2-2"]) == ("n1:1", "n2:1")
    at = dict(found.storm)
    for executor, slot in found.steps:
        assert executor in ("3-3", "4-4")
        at[executor] = slot
    assert at == found.new
    assert found.reason
    if policy == "gather":
        assert found.new["3-3"] == found.new["4-4"] == "n1:1"
