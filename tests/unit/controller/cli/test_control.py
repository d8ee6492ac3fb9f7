"""`nstorm mode`, `pause`, `freeze` and `resume`: what they set, and what they print."""

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
from controller.core.topology import TopologyView
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
    return Store()


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    for module in (control, modes):
        monkeypatch.setattr(module, "connected", lambda conf: nullcontext(store))
        monkeypatch.setattr(module, "topologies", lambda session: [SEEN])
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    return lambda *words: CliRunner().invoke(app, [*words, "--conf", str(conf)])


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
