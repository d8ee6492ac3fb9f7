"""The initial placements by name: as a command, and with their keys of storm.yaml."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.config import build, keys_of
from controller.core.decision import Outcome
from controller.core.distance import inter_node_tps
from controller.core.limits import Limits
from controller.errors import PolicyError
from controller.policies.options import Aniello, Options
from controller.policies.profiles import Performance, Profile, Profiles
from controller.policies.registry import policy
from controller.snapshot import parse
from deploy.sim.remembering import Remembering
from migration import ConfigError
from tests.snapshots import cluster
from tests.unit.controller.policies.placement_worlds import topology

HAND_GRAPH = Path(__file__).parents[3] / "golden" / "decide" / "hand_graph.json"


@pytest.mark.parametrize(
    ("name", "ends_with_tps"),
    [("even", 14.0), ("lf", 14.0), ("aniello-offline", 14.0), ("aniello-online", 6.0)],
)
def test_one_step_has_all_moves_and_a_second_none(name: str, ends_with_tps: float) -> None:
    cluster, snapshot = parse(HAND_GRAPH.read_text())
    decide = Remembering(policy(name, Options()))
    decision = decide(cluster, snapshot, Limits())
    assert decision.outcome is Outcome.WOULD_MOVE
    for move in decision.moves:
        e, target = snapshot.executors.index(move.executor), cluster.workers.index(move.target)
        snapshot = snapshot.moved(e, target)
    assert inter_node_tps(cluster, snapshot) == ends_with_tps
    assert decide(cluster, snapshot, Limits()).outcome is Outcome.NOTHING_TO_GAIN


@pytest.mark.parametrize("name", ["aniello-offline", "rsm", "sam", "heterogeneity"])
def test_a_reason_says_which_edges_of_a_cycle_were_left_out(name: str) -> None:
    places = cluster([2, 2])
    snapshot = topology({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c"), ("c", "b"), ("c", "c")])
    one_thread = Profile(performance=(Performance(1, 10.0, 0.1, 0.1),))
    options = Options(profiles=Profiles(dict.fromkeys("abc", one_thread)))
    reason = Remembering(policy(name, options))(places, snapshot, Limits()).reason
    assert " (left out, found depth first: c -> b, c -> c)" in reason
    straight = replace(snapshot, edges=snapshot.edges[:2])
    assert "left out" not in Remembering(policy(name, options))(places, straight, Limits()).reason


def test_the_command_knows_names_and_keys() -> None:
    nstorm = Path(sys.executable).with_name("nstorm")
    arguments = ["--policy", "aniello-online", "--set", "aniello.alpha=0.5", "-o", "json"]
    done = subprocess.run(
        [nstorm, "decide", HAND_GRAPH, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (step,) = json.loads(done.stdout)["steps"]
    assert "alpha 0.5" in step["reason"]
    assert step["inter_node_traffic"] == 6.0


@pytest.mark.parametrize("name", ["even", "rsm", "heterogeneity"])
def test_without_its_extra_a_scheduler_of_a_paper_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in [one for one in sys.modules if one.startswith("controller.policies.")]:
        if module not in ("controller.policies.registry", "controller.policies.profiles"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(PolicyError, match=rf"{name} needs networkx.*'\.\[papers\]'"):
        policy(name, Options())
    assert policy("otd", Options())


def test_the_command_reads_profiles_from_the_file(tmp_path: Path) -> None:
    document = json.loads(HAND_GRAPH.read_text())
    for component in document["components"]:
        table = [{"threads": 1, "rate": 100, "cpu": 0.3, "memory": 0.1}]
        component["profile"] = {"performance": table}
    snapshot = tmp_path / "profiled.json"
    snapshot.write_text(json.dumps(document))
    said = CliRunner().invoke(app, ["decide", str(snapshot), "--policy", "sam", "-o", "json"])
    assert said.exit_code == 0, said.output
    assert "slot-aware mapping (001)" in json.loads(said.stdout)["steps"][0]["reason"]


def test_keys_of_002() -> None:
    assert build({}).options.aniello == Aniello(alpha=0.0, beta=0.5)
    given = ["aniello.alpha=1", "nstorm.aniello.beta=0.25", "aniello.gamma=1.5"]
    config = build(keys_of(given))
    assert config.options.aniello == Aniello(alpha=1, beta=0.25, gamma=1.5)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("alpha", 1.5, "aniello.alpha: must be a number of at least 0 and at most 1"),
        ("beta", "half", "aniello.beta: must be a number"),
        ("gamma", 0.5, "aniello.gamma: must be a number of at least 1"),
        ("beta", 2, "aniello.beta: must be a number of at least 0 and at most 1"),
        ("epsilon", 1, "aniello.epsilon: unknown key"),
    ],
)
def test_values_that_cannot_be_are_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build({f"aniello.{key}": value})
