"""The commands that ask ZooKeeper, where it does not answer."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.cli import operate
from controller.cli.main import app
from kvstore.zookeeper import Session, Waiting


def never(
    self: Session, *, on_wait: Callable[[Waiting], None], stop: threading.Event | None = None
) -> bool:
    """Wait as `Session.connect` does where nobody answers; gives up the test after 1000 waits."""
    for attempt in range(1000):
        on_wait(Waiting(self.hosts, attempt, 1.0, "no answer"))
        if stop is not None and stop.wait(0.001):
            return False
    raise AssertionError("waits without limit")


@pytest.mark.parametrize(
    "command",
    [["status"], ["pause"], ["resume"], ["plan"], ["history"], ["move", "wc", "7-7", "s1:6701"]],
)
def test_a_silent_zookeeper_is_given_up_with_what_to_check(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "connect", never)
    monkeypatch.setattr(operate, "NO_ANSWER_S", 0.05)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.zookeeper.servers: [zk1, zk2]\nstorm.zookeeper.port: 2182\n")
    result = CliRunner().invoke(app, [*command, "--conf", str(conf)])
    said = str(result.exception)
    assert "at zk1:2182, zk2:2182: check that it runs" in said
    assert f"storm.zookeeper.servers and storm.zookeeper.port in {conf}" in said
