"""The matrix of the tries of tests/chaos, and what it expects of each cell."""

import subprocess
import sys
import time
from contextlib import nullcontext
from unittest.mock import Mock, call

import pytest

from deploy.lab import LabError
from migration.model import Phase, Way
from tests.chaos import run
from tests.chaos.judge import MOVED, UNDONE, Seen
from tests.chaos.run import run_tries
from tests.chaos.stand import _clocks
from tests.chaos.tries import CELLS, EXTRAS, MOMENTS, VICTIMS, Harm, Moment, Try, cell_name

BY_NAME = {row.name: row for row in (*CELLS, *EXTRAS)}
FORWARD = (Phase.PREPARE, Phase.SWITCH, Phase.DRAIN, Phase.STOP, Phase.SETTLE)


def test_the_matrix_has_each_process_harm_and_phase_once() -> None:
    names = {cell_name(v.name, h, p) for v in VICTIMS for h in Harm for p in MOMENTS}
    assert {row.name for row in CELLS} == names
    assert len(CELLS) == len(names) == 9 * 2 * 10
    live = {Moment(phase) for phase in (None, *FORWARD, Phase.UNDO)}
    assert set(MOMENTS) - live == {
        Moment(Phase.QUIET, Way.SPOUT),
        Moment(Phase.DRAIN, Way.ACKER),
        Moment(Phase.CARRY, Way.CARRY),
    }
    assert set(MOMENTS) >= live
    for cell in CELLS:
        phase, _, of = cell.name.partition("@")[2].partition("-of-")
        assert (phase, bool(of)) == (cell.phase or "none", cell.way is Way.ACKER)
    assert len(BY_NAME) == len(CELLS) + len(EXTRAS)


@pytest.mark.parametrize("row", EXTRAS, ids=lambda row: row.name)
def test_the_name_of_another_fault_says_its_phase(row: Try) -> None:
    assert row.name.partition("@")[2] in ((row.phase,) if row.phase else ("", "none"))


def test_from_stop_on_only_forward_and_from_undo_only_back() -> None:
    for cell in CELLS:
        for phases, not_so in ((("STOP", "SETTLE"), UNDONE), (("UNDO",), MOVED)):
            assert cell.phase not in phases or not_so not in cell.expected.outcomes, cell.name


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_only_a_struck_worker_may_cost_tuples(cell: Try) -> None:
    struck, _, harm = cell.name.partition("@")[0].rpartition("-")
    worker = struck in ("source", "target", "bystander")
    # A counter in CARRY works nowhere until both ends have read of it.
    waits = cell.phase is Phase.CARRY and struck in ("source-agent", "target-agent", "zookeeper")
    assert cell.expected.tuples_fail == (worker or waits)
    assert cell.expected.spouts_end == (worker and harm == "killed")
    assert not cell.expected.storm_restarts
    assert cell.expected.within_s == 30 or harm == "killed" or struck == "zookeeper"


def test_a_cell_strikes_the_process_that_it_names_and_lifts_the_fault() -> None:
    faults, move = Mock(), Mock()
    faults.leader.return_value = "controller-2"
    killed, stopped = BY_NAME["leader-killed@STOP"], BY_NAME["leader-stopped@STOP"]
    killed.strike(faults, move)
    killed.lift(faults, move)
    stopped.strike(faults, move)
    stopped.lift(faults, move)
    assert faults.mock_calls == [
        call.leader(),
        call.kill("controller-2"),
        call.start_again(),
        call.leader(),
        call.stop("controller-2"),
        call.go_on(),
    ]


def test_the_clock_starts_before_the_fault_is_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FED_S", 0.0)
    stand, lifted_s = Mock(workers_seen=set()), list[float]()
    stand.wait_whole.side_effect = LabError
    row = Try("x", None, Mock(), lift=lambda f, m: lifted_s.append(time.monotonic()))
    with pytest.raises(LabError):
        run._try(stand, Mock(), row, Seen())
    limit_s, began_s = stand.wait_whole.call_args.args
    assert limit_s == row.expected.within_s
    assert began_s <= lifted_s[0]


def test_what_moves_hangs_on_the_seed_and_not_on_the_tries_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand = Mock()
    monkeypatch.setattr(run, "standing", lambda lab, mode, conf: nullcontext(stand))
    monkeypatch.setattr(run, "_try", lambda stand, faults, row, seen: None)
    monkeypatch.setattr(run, "Faults", lambda stand: Mock(complaints=[]))

    def chosen(names: list[str], seed: int) -> list[float]:
        rows = [BY_NAME[name] for name in names]
        return [stand.chosen.random() for _ in run_tries(rows, seed)]

    both = chosen(["target-killed@STOP", "leader-killed@STOP"], 3)
    assert chosen(["leader-killed@STOP"], 3) == both[1:]
    assert chosen(["leader-killed@STOP"], 4) != both[1:]
    assert both[0] != both[1]


def test_a_try_with_keys_of_its_own_has_a_cluster_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def standing(lab: str, mode: str, conf: dict[str, object]) -> nullcontext[Mock]:
        asked.append(conf["supervisor.worker.timeout.secs"])
        return nullcontext(Mock())

    monkeypatch.setattr(run, "standing", standing)
    monkeypatch.setattr(run, "_try", lambda stand, faults, row, seen: seen.__init__())
    monkeypatch.setattr(run, "Faults", lambda stand: Mock(complaints=[]))
    monkeypatch.setattr(run.Result, "wedged", False)
    plain, patient = BY_NAME["none@PREPARE"], BY_NAME["source-stopped-90s@SWITCH"]
    other = BY_NAME["target-stopped-90s@DRAIN"]
    conf = {"supervisor.worker.timeout.secs": 30}
    list(run_tries([plain, plain, patient, other, plain], 1, conf=conf))
    assert asked == [30, 120, 30]


def test_a_clock_that_is_set_wrong_is_that_of_the_service_and_is_set_right() -> None:
    faults, move = Mock(), Mock()
    faults.agent.return_value = "agent-h1"
    row = BY_NAME["target-agent-clock-back@SWITCH"]
    row.strike(faults, move)
    row.lift(faults, move)
    assert faults.mock_calls == [
        call.agent(move.target),
        call.set_clock("agent-h1", -3600.0),
        call.set_clock_right(),
    ]
    assert row.expected.outcomes == {MOVED}


def test_the_clock_of_a_process_is_set_while_it_runs() -> None:
    with _clocks() as folder:
        code = "import os, time; print(os.getpid(), flush=True)\nwhile input(): print(time.time())"
        command = [sys.executable, "-uc", code]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
            pid = process.stdout.readline().strip()
            for ahead_s in (0.0, 3600.0, -3600.0, 0.0):
                if ahead_s:
                    (folder / pid).write_text(str(ahead_s), "ascii")
                else:
                    (folder / pid).unlink(missing_ok=True)
                process.stdin.write("look\n")
                process.stdin.flush()
                said_s = float(process.stdout.readline())
                assert abs(said_s - time.time() - ahead_s) < 60
            process.stdin.write("\n")
    assert not folder.exists()
