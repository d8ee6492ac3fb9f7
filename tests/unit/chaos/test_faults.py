"""How a move is caught in a phase, and what a fault does to which process."""

import os
import signal
from unittest.mock import Mock, call

import pytest

from migration.model import Base, Entry, Phase, Plan, Slot, Way
from tests.chaos import faults as module
from tests.chaos.faults import Faults
from tests.chaos.stand import Move
from tests.messages import executor

SOURCE, TARGET, OTHER = Slot("x", 1), Slot("y", 1), Slot("y", 2)
MOVE = Move(executor(7), SOURCE, TARGET, OTHER, "/wish", 1.0)


def entry(phase: Phase) -> Entry:
    return Entry(
        id="m1",
        executor=MOVE.executor,
        source=SOURCE,
        target=TARGET,
        phase=phase,
        base=Base(SOURCE, 1),
    )


@pytest.fixture
def stand() -> Mock:
    """A cluster whose leader is controller-1, with one worker's process id known."""
    stand = Mock(pids={str(SOURCE): 4711})
    stand.ask.return_value = MOVE
    stand.told.return_value = Mock(ended=True)
    return stand


@pytest.fixture
def faults(stand: Mock, monkeypatch: pytest.MonkeyPatch) -> Faults:
    monkeypatch.setattr(Faults, "leader", lambda self: "controller-1")
    monkeypatch.setattr(module, "POLL_S", 0.0)
    return Faults(stand)


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Mock:
    double = Mock()
    monkeypatch.setattr(os, "kill", double)
    return double


def test_the_leader_stands_still_where_a_move_is_caught(stand: Mock, faults: Faults) -> None:
    stand.entry.side_effect = [entry(Phase.SWITCH), entry(Phase.DRAIN), entry(Phase.DRAIN)]
    assert faults.when(Phase.DRAIN) == MOVE
    signals = [call("controller-1", signal.SIGSTOP)]
    assert stand.lab.kill_daemon.mock_calls == signals
    faults.let_on()
    assert stand.lab.kill_daemon.mock_calls == [*signals, call("controller-1", signal.SIGCONT)]


def test_a_phase_that_has_passed_meanwhile_is_not_struck(stand: Mock, faults: Faults) -> None:
    stopped, gone_on = call("controller-1", signal.SIGSTOP), call("controller-1", signal.SIGCONT)
    passed = [entry(Phase.DRAIN), entry(Phase.STOP)]
    never_seen = [entry(Phase.PREPARE), None]
    stand.entry.side_effect = [*passed, *never_seen, entry(Phase.DRAIN), entry(Phase.DRAIN)]
    faults.when(Phase.DRAIN)
    assert stand.ask.call_count == 3
    assert stand.lab.kill_daemon.mock_calls == [stopped, gone_on, stopped]


def test_what_moves_by_a_way_is_caught_in_the_phase_of_it(stand: Mock, faults: Faults) -> None:
    stand.entry.side_effect = [entry(Phase.DRAIN), entry(Phase.CARRY), entry(Phase.CARRY)]
    assert faults.when(Phase.CARRY, Way.CARRY) == MOVE
    stand.ask.assert_called_once_with(Way.CARRY, opens=False)


def test_undo_is_written_in_place_of_prepare(stand: Mock, faults: Faults) -> None:
    stand.plan_of.return_value = Plan("c", 3, 17, "t", (entry(Phase.PREPARE),))
    stand.entry.side_effect = [entry(Phase.PREPARE), entry(Phase.UNDO)]
    assert faults.when(Phase.UNDO) == MOVE
    ((path, written, version, fence),) = [c.args for c in stand.session.put_checked.mock_calls]
    assert (path, version, fence) == ("/nstorm/plans/t", 17, ("/nstorm/epoch", 3))
    assert b'"version":18' in written and b'"phase":"UNDO"' in written


def test_a_leader_that_was_struck_does_not_go_on(stand: Mock, faults: Faults) -> None:
    stand.entry.return_value = entry(Phase.STOP)
    faults.when(Phase.STOP)
    faults.stop("controller-1")
    faults.let_on()
    assert call("controller-1", signal.SIGCONT) not in stand.lab.kill_daemon.mock_calls
    faults.go_on()
    assert stand.lab.kill_daemon.mock_calls[-1] == call("controller-1", signal.SIGCONT)


def test_a_killed_worker_is_left_to_storm(stand: Mock, faults: Faults, killed: Mock) -> None:
    faults.kill(str(SOURCE))
    faults.start_again()
    assert killed.mock_calls == [call(4711, signal.SIGKILL)]
    assert stand.lab.mock_calls == [call.topology_id("chaos")]
    assert (faults.workers_killed, faults.services_killed) == (1, 0)


@pytest.mark.parametrize("name", ["agent-h", "nimbus"])
def test_a_killed_service_stays_down_until_it_may_start(
    stand: Mock, faults: Faults, name: str
) -> None:
    faults.kill(name)
    assert stand.services.mock_calls == [call.keep_down(name)]
    assert stand.lab.kill_daemon.mock_calls == [call(name)]
    faults.start_again()
    assert stand.services.mock_calls == [call.keep_down(name), call.let_up(name)]
    assert (faults.workers_killed, faults.services_killed) == (0, 1)


def test_a_stopped_worker_that_storm_has_ended_is_no_error(faults: Faults, killed: Mock) -> None:
    faults.stop(str(SOURCE))
    killed.side_effect = ProcessLookupError
    faults.go_on()
    assert [c.args for c in killed.mock_calls] == [(4711, signal.SIGSTOP), (4711, signal.SIGCONT)]
