"""`nstorm mode`, `pause`, `freeze` and `resume`: what they set, and what they print."""

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from controller.cli import control, modes
from controller.cli.main import app
from controller.config import build
from controller.core.controls import Controls
from controller.core.topology import TopologyView
from controller.storm.controls import CONTROLS, pause, read
from controller.storm.status import publish, status_of
from kvstore.zookeeper import Session
from migration.model import Node, Plan, Slot
from tests.messages import publication
from tests.unit.controller.storm.test_apply import Store

Run: TypeAlias = Callable[..., Result]
PUBLISHED = publication({1: Slot("a", 1)}, [Node("a", "host-a", 100.0, (1,), 1)])
SEEN = TopologyView(PUBLISHED, Plan("", 1, 0, "wc-1"), ())


@pytest.fixture
def store() -> Store:
    return Store(clock_ms=int(1000 * time.time()))


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    for module in (control, modes):
        monkeypatch.setattr(module, "connected", lambda conf: nullcontext(store))
        monkeypatch.setattr(module, "topologies", lambda session: [SEEN])
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    return lambda *words: CliRunner().invoke(app, [*words, "--conf", str(conf)])


def test_no_pause_or_freeze_shortens_one_that_holds(run: Run, store: Store) -> None:
    run("freeze", "--until", "2999-01-01", "--reason", "ZooKeeper was rebuilt")
    said = run("freeze", "--until", "2998-01-01", "--reason", "lunch").stdout
    both = "frozen: ZooKeeper was rebuilt; lunch, until 2999-01-01 00:00:00Z"
    assert said == f"{both}; nothing is moving\n"
    pause(cast(Session, cast(Any, store)), "guard lag is 250", "wc")  # as the leader does
    for _ in range(2):
        said = run("pause", "--topology", "wc", "--for", "5m", "--reason", "look").stdout
        assert said == "paused wc: guard lag is 250; look; nothing is moving\n"
    run("resume")
    said = run("pause", "--topology", "wc", "--for", "5m", "--reason", "look").stdout
    assert said.startswith("paused wc: look, until ")
    store.clock_ms += 300_000
    assert "look" not in run("pause", "--topology", "wc").stdout, "that one has ended"
    run("freeze", "--until", str(store.clock_ms // 1000 + 60))
    store.clock_ms += 61_000
    said = run("freeze", "--until", "2999-01-01", "--reason", "lunch").stdout
    assert said.startswith("frozen: lunch, until "), "that one has ended"


def test_a_resume_of_one_topology_names_the_freeze_that_holds(run: Run) -> None:
    run("freeze", "--until", "2999-01-01")
    said = run("resume", "--topology", "wc").stdout
    assert said == "resumed wc; everything is still frozen: frozen, until 2999-01-01 00:00:00Z\n"
    told = json.loads(run("resume", "--topology", "wc", "-o", "json").stdout)
    assert told["freeze"]["reason"] == "frozen"
    assert json.loads(run("resume", "-o", "json").stdout)["freeze"] is None


def test_what_is_set_for_a_topology_that_is_gone_can_be_taken_away(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("mode", "wc", "auto")
    run("pause", "--topology", "wc")
    for module in (control, modes):
        monkeypatch.setattr(module, "topologies", lambda session: [])
    assert "no topology wc" in str(run("mode", "wc", "auto").exception)
    assert run("mode", "wc", "default").stdout == "wc: default\n"
    assert run("resume", "--topology", "wc").stdout == "resumed wc\n"
    assert read(store.nodes[CONTROLS]) == Controls()
    assert "no topology wc" in str(run("resume", "--topology", "wc").exception)


@pytest.mark.parametrize("ahead_s", [-3600.0, 0.0, 2400.0])
def test_a_pause_lasts_by_the_clock_of_zookeeper_and_ends_no_other_one(
    ahead_s: float, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = store.clock_ms / 1000
    monkeypatch.setattr(time, "time", lambda: now_s + ahead_s)
    run("pause", "--for", "30m")
    run("mode", "auto")
    held = read(store.nodes[CONTROLS])
    assert [held.held("wc", at_s) is None for at_s in (now_s + 1799, now_s + 1800)] == [False, True]
    said = run("resume", "--topology", "wc").stdout
    assert said.startswith("resumed wc; everything is still paused: paused, until ")
    store.clock_ms += 1_800_000
    assert run("resume", "--topology", "wc").stdout == "resumed wc\n"


@pytest.mark.parametrize(
    ("own", "leads", "by"),
    [
        (None, {"mode": "auto"}, "auto by nstorm.mode"),
        ("auto", {"mode": "approve"}, "approve by nstorm.mode.max"),
        ("auto", {"mode.max": "auto"}, "auto by topology.nstorm.mode"),
    ],
)
def test_a_mode_is_as_the_leader_decides_not_as_this_machine_would(
    *,
    own: str | None,
    leads: dict[str, str],
    by: str,
    run: Run,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    published = replace(PUBLISHED, mode=own)
    seen = TopologyView(published, SEEN.plan, ())
    monkeypatch.setattr(modes, "topologies", lambda session: [seen])
    status = status_of((), (), build(leads), name="c", epoch=1)
    publish(cast(Session, cast(Any, store)), status)
    assert f"wc is in mode {by}\n" in run("mode", "wc", "default").stdout
