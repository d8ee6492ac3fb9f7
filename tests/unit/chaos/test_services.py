"""The service manager starts what has ended, unless that is kept down."""

import time
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from tests.chaos import services as module
from tests.chaos.services import Services

NODE = Mock(host="h")


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """A cluster of one node, in which a process runs once it was started."""
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(module, "RESTART_AFTER_S", 0.0)
    lab = Mock(nodes=[NODE], running={"zookeeper", "nimbus", "h"})
    lab.daemon.side_effect = lambda name: Mock() if name in lab.running else None
    lab.start_agent.side_effect = lambda node: lab.running.add(f"agent-{node.host}")
    lab.start_controller.side_effect = lambda mode, name: lab.running.add(name)
    lab.start_daemon.side_effect = lab.running.add
    return lab


def wait(done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_ours_are_started_and_the_daemons_run_already(lab: Mock) -> None:
    with Services(lab, "observe") as services:
        assert services.missing() == []
    lab.start_daemon.assert_not_called()
    assert lab.start_controller.call_count == 2
    assert services.restarts.total() == 0


@pytest.mark.parametrize("name", ["agent-h", "controller-2", "nimbus", "h", "zookeeper"])
def test_what_ends_is_started_again_once_it_may(lab: Mock, name: str) -> None:
    with Services(lab, "observe") as services:
        services.keep_down(name)
        lab.running.discard(name)
        time.sleep(0.02)
        assert services.missing() == [name]
        services.let_up(name)
        wait(lambda: services.missing() == [])
    assert services.restarts == {name: 1}
