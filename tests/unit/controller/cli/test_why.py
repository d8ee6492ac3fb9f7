"""Which moves an undo takes back, and what is refused in one sentence."""

import json
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from controller.cli import moves
from controller.cli.asking import seconds
from controller.cli.facts import _cell, show_facts
from controller.cli.moves import _row, last_moves
from controller.cli.why import facts_of
from controller.console import Console
from controller.errors import CommandError
from controller.output import Output
from controller.storm.answer_records import ExplainAnswer, ExplainedTarget
from controller.storm.collect import LiveCluster
from controller.storm.command_record import DONE, Command
from controller.storm.move_record import MoveRecord


def move(name: str, outcome: str = "MOVED", by: str = "policy gather") -> MoveRecord:
    return MoveRecord("wc-1", name, "7-7", "a:1", "b:1", outcome, asked_by=by)


def test_the_newest_moves_that_were_made_are_undone() -> None:
    moves = [move("m1"), move("m2"), move("m3", "UNDONE"), move("m4"), move("m5", "")]
    assert [one.id for one in last_moves(moves, 2)] == ["m4", "m2"]


def test_what_was_undone_and_the_undo_itself_are_not_undone_again() -> None:
    undo = "undo of m2 of wc-1"
    for by in (undo, f"unproved: {undo}", f"sasl:alice (unproved: {undo})"):
        moves = [move("m1"), move("m2"), move("m3", by=by)]
        assert [one.id for one in last_moves(moves, 1)] == ["m1"]
    failed = [move("m1"), move("m2"), move("m3", "UNDONE", "undo of m2 of wc-1")]
    assert [one.id for one in last_moves(failed, 1)] == ["m2"]


def test_undo_past_the_beginning_changes_nothing() -> None:
    with pytest.raises(CommandError, match="of 3 moves only 1 can be undone; nothing was changed"):
        last_moves([move("m1"), move("m2", "VOID")], 3)


def test_a_time_is_a_number_and_a_unit() -> None:
    good = ("90s", "30m", "2h", "1d")
    assert [seconds("--for", text) for text in good] == [90, 1800, 7200, 86_400]
    for text in ("30", "m", "-5m", "1w", "1.5h"):
        with pytest.raises(CommandError, match=r"--for: .* is no time such as"):
            seconds("--for", text)


def test_a_row_of_the_history_has_the_verdict_on_the_run() -> None:
    made = replace(move("m1"), effect="better: CPU for each input tuple −12.0 % ± 3.0 %; no fails")
    assert (_row(made)["effect"], _row(move("m2"))["effect"]) == ("better", "")


def test_cells_are_read_by_people() -> None:
    told = {"PREPARE": 0.25123, "STOP": 1.0}
    assert _cell([told, None, "x", 7], {}, "") == "PREPARE 0.2512, STOP 1, , x, 7"
    assert _cell(12_270.4, {}, "") == "12,270"
    assert _cell({"inter_node_frac": 0.3125}, {}, "before") == "between nodes 31.2%"


def test_a_cycle_of_the_journal_is_shown_as_that_of_a_leader() -> None:
    target = ExplainedTarget("a:1", 3.0, 2.5, "it does not fit")
    last = Command("wc-1", state=DONE, verb="explain", answer=[ExplainAnswer(candidates=(target,))])
    (found,) = facts_of(last)
    assert [row["worker"] for row in found["candidates"]] == ["a:1"]
    assert type(found["candidates"]) is list, "or else it is printed as Python writes it"


def test_a_table_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"worker": f"{'a' * 60}:6700", "reason": "why " * 60, "end": "MOVED"}]
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    show_facts([{"places": rows}], Output.TABLE)
    printed = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("why") == 60
    assert printed.count("a") >= 60


def test_a_pipe_gets_a_row_a_line_with_tabs_between_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"worker": "a:1", "why_not": "long " * 90 + "\tx\ny"}, {"worker": "b:1", "why_not": ""}]
    show_facts([{"reason": "r", "places": rows}], Output.TABLE)
    assert capsys.readouterr().out.splitlines() == [
        "reason: r",
        "places:",
        "worker\twhy not",
        f"a:1\t{'long ' * 90} x y",
        "b:1\t",
    ]


def test_a_topology_that_nobody_knows_has_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    view = SimpleNamespace(topologies=list)
    monkeypatch.setattr(LiveCluster, "of_session", lambda session: view)
    monkeypatch.setattr(moves, "known_moves", lambda stored, journals: [move("m1")])
    session: Any = SimpleNamespace(read=lambda path: None)
    assert [one.id for one in moves._moves(session, "wc-1")] == ["m1"]
    with pytest.raises(CommandError, match="no topology nosuch: those known are wc-1"):
        moves._moves(session, "nosuch")


def test_people_read_hosts_and_programs_ids(capsys: pytest.CaptureFixture[str]) -> None:
    ids = {"9989472a-b859-4894-8e2a-dad5dfca7c40-127.0.0.1": "node-1"}
    (id_,) = ids
    reason = f"7-7 [count] from {id_}:6700 to {id_}:6701"
    rows = [{"worker": f"{id_}:6700", "why_not": "closed [by you]"}]
    found = [{"reason": reason, "places": rows, "hosts": ids}]
    show_facts(found, Output.TABLE)
    said = capsys.readouterr().out
    assert "reason: 7-7 [count] from node-1:6700 to node-1:6701" in said
    assert "node-1:6700\tclosed [by you]" in said
    assert "hosts" not in said
    show_facts(found, Output.JSON)
    assert json.loads(capsys.readouterr().out) == found
