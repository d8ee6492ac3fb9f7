"""The modes that an operator sets."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from controller.cli import modes
from controller.storm.leader_status import LeaderStatus
from tests.unit.controller.conftest import Nstorm


@pytest.mark.parametrize(
    ("words", "of_leader", "is_asked"),
    [
        ("auto", "", True),
        ("wc auto", "", False),
        ("approve", "auto", False),
        ("default", "auto", True),
        ("default", "", False),
        ("wc default", "auto", False),
    ],
)
def test_a_person_is_asked_before_all_topologies_move_alone(
    words: str,
    of_leader: str,
    *,
    is_asked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nstorm: Nstorm,
) -> None:
    asked: list[str] = []

    def known(session: Any) -> Any:
        raise SystemExit(f"asked: {len(asked)}")

    monkeypatch.setattr(modes, "connected", lambda conf: nullcontext())
    monkeypatch.setattr(modes, "confirm", asked.append)
    monkeypatch.setattr(modes, "read", lambda session: LeaderStatus(mode=of_leader))
    monkeypatch.setattr(modes, "topologies", known)
    (tmp_path / "storm.yaml").write_text("storm.zookeeper.servers: [zk1]\n")
    done = nstorm("mode", *words.split(), "--conf", str(tmp_path / "storm.yaml"))
    assert done.code == f"asked: {int(is_asked)}"
