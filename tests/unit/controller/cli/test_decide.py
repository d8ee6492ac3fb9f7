"""``nstorm decide``: reviewable answers, JSON alone on standard output, refusals in one line."""

import json
import sys
from pathlib import Path

import pytest

from tests.unit.controller.conftest import Nstorm

GOLDEN = Path(__file__).parents[3] / "golden" / "decide"

# A file changes by running the command and reviewing the difference.
WALKS = {
    "hand_graph.otd": "--policy otd --steps 9 --set load.high=0.9 --set load.low=0.85",
    "hand_graph.gather": "--steps 9",
    "saddle.otd": "--policy otd --steps 9",
    "saddle.gather": "--steps 9",
    "ping_pong.otd": "--policy otd --steps 4 --set load.low=0.7",
    "ping_pong.gather": "--steps 9",
}


@pytest.mark.parametrize("name", WALKS)
def test_the_answer_is_as_reviewed(nstorm: Nstorm, name: str) -> None:
    snapshot = GOLDEN / f"{name.partition('.')[0]}.json"
    done = nstorm("decide", str(snapshot), *WALKS[name].split(), "-o", "json")
    assert (done.code, done.err) == (0, "")
    assert done.out == (GOLDEN / f"{name}.out.json").read_text()


def test_output_has_the_documented_keys() -> None:
    answer = json.loads((GOLDEN / "hand_graph.gather.out.json").read_text())
    assert {"policy", "steps", "placement"} == set(answer)
    assert {
        "outcome",
        "reason",
        "moves",
        "inter_node_traffic",
        "total_traffic",
        "max_worker_cpu",
    } <= set(answer["steps"][0])
    assert set(answer["steps"][0]["moves"][0]) == {"executor", "from", "to", "asc"}


def test_table_names_outcome_reason_and_placement(nstorm: Nstorm) -> None:
    done = nstorm("decide", str(GOLDEN / "hand_graph.json"), "--steps", "3")
    assert done.code == 0
    assert "WOULD_MOVE" in done.out
    assert "between nodes 34.4%" in done.out
    assert "n1:6701" in done.out
    assert done.out.count("; head-room 1.67 (cpu of n0:6700)") == 3


def test_large_numbers_have_no_power_of_ten(nstorm: Nstorm) -> None:
    found = json.loads((GOLDEN / "hand_graph.json").read_text())
    found["traffic"] = [(*pair, 1000 * tps) for *pair, tps in found["traffic"]]
    for policy, gain in (("gather", "gains 24,400 weighted t/s more"), ("otd", "of 13,000 t/s")):
        done = nstorm("decide", "-", "--policy", policy, text=json.dumps(found))
        assert gain in done.out
        assert "of 32,000 t/s" in done.out.splitlines()[0]
        assert "e+0" not in done.out


def test_standard_input_and_vetoes(nstorm: Nstorm) -> None:
    text = (GOLDEN / "ping_pong.json").read_text()
    args = ("decide", "-", "--set", "vetoes=on", "-o", "json", "--policy")
    (step,) = json.loads(nstorm(*args, "otd", text=text).out)["steps"]
    assert step["outcome"] == "NO_WORKER_IN_SLOT"
    assert "n1:6700" in step["reason"]
    (step,) = json.loads(nstorm(*args, "gather", text=text).out)["steps"]
    assert [move["to"] for move in step["moves"]] == ["n1:6700"]
    assert "no worker has room, so a slot is opened: n0:6700" in step["reason"]


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("excluded.topologies=[saddle]", "topology saddle is excluded"),
        ("excluded.components=[bolt0, bolt1, bolt2, bolt3]", "is excluded"),
        ("excluded.hosts=[n0]", "node n0 is excluded"),
    ],
)
def test_what_is_excluded_stays_without_vetoes_too(
    nstorm: Nstorm, setting: str, reason: str
) -> None:
    done = nstorm("decide", str(GOLDEN / "saddle.json"), "--set", setting, "-o", "json")
    (step,) = json.loads(done.out)["steps"]
    assert (step["outcome"], step["moves"]) == ("EXCLUDED", [])
    assert reason in step["reason"]


def test_a_topology_is_excluded_by_the_name_in_its_id(nstorm: Nstorm) -> None:
    text = (GOLDEN / "saddle.json").read_text().replace('"saddle"', '"wc-1-3-1700000000"')
    done = nstorm("decide", "-", "--set", "excluded.topologies=[wc-1]", text=text)
    assert "EXCLUDED, between nodes 50.0%: topology wc-1 is excluded" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.json"], "nowhere.json: No such file or directory"),
        (["-"], "nstorm: standard input: not JSON"),
        ([sys.executable], "not JSON: not even text in UTF-8"),
        ([str(GOLDEN / "saddle.json"), "--set", "load.hihg=1"], "did you mean nstorm.load.high?"),
        ([str(GOLDEN / "saddle.json"), "--set", "load.high"], "must be key=value"),
        ([str(GOLDEN / "saddle.json"), "--set", "load.high=much"], "load.high: must be a number"),
    ],
)
def test_bad_input_ends_in_one_line_and_code_2(
    nstorm: Nstorm, arguments: list[str], message: str
) -> None:
    done = nstorm("decide", *arguments, text="{")
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert message in done.err
