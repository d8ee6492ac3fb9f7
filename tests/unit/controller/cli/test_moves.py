"""`nstorm undo` of several moves."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from controller.cli import moves
from controller.cli.asking import operator
from controller.cli.main import app
from controller.errors import CommandError
from controller.storm.command_record import REFUSED, Command
from controller.storm.move_record import MoveRecord
from kvstore.errors import NotConnectedError

MADE = [
    MoveRecord("wc-1-1", f"m{i}", f"{i}-{i}", "a:6700", "b:6700", outcome="MOVED")
    for i in range(1, 4)
]


def undo(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    count: int,
    ends: Mapping[str, Command | Exception],
    *more: str,
) -> tuple[Result, list[str]]:
    """Undo moves of which some end otherwise than moved; give what was asked for too."""
    asked: list[str] = []

    def ask(_: Any, wish: Command, *others: Any) -> Command:
        assert wish.by == f"{operator()}, undo of {wish.what} of wc-1-1"
        asked.append(f"{wish.what}: {wish.moves[0]}")
        found = ends.get(wish.what, Command("wc", state="MOVED"))
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(moves, "ask", ask)
    monkeypatch.setattr(moves, "confirm", lambda question: None)
    monkeypatch.setattr(moves, "connected", lambda conf: nullcontext(None))
    monkeypatch.setattr(moves, "_moves", lambda *of: MADE)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    return CliRunner().invoke(app, ["undo", str(count), "--conf", str(conf), *more]), asked


def test_each_move_goes_back_the_newest_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result, asked = undo(monkeypatch, tmp_path, 3, {})
    assert result.exit_code == 0, result.output
    assert asked == [f"m{i}: ('{i}-{i}', 'b:6700', 'a:6700')" for i in (3, 2, 1)]


def test_a_move_that_cannot_go_back_keeps_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = Command("wc", state=REFUSED, reason="b:6700 would get too full")
    ends = {"m3": full, "m2": Command("wc", state="UNDONE")}
    result, asked = undo(monkeypatch, tmp_path, 3, ends)
    assert len(asked) == 3
    assert "undo of m3 refused: b:6700 would get too full" in result.output
    assert (result.exit_code, str(result.exception)) == (1, "1"), "m1 is undone: no refusal"
    assert result.stderr.endswith("2 of 3 moves are not undone: m3, m2\n")


@pytest.mark.parametrize("count", [1, 2])
def test_programs_get_one_list_of_the_ends(
    count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends = {"m3": Command("wc", state=REFUSED, reason="full")}
    result, _ = undo(monkeypatch, tmp_path, count, ends, "-o", "json")
    states = [one["state"] for one in json.loads(result.stdout)]
    assert states == [REFUSED, "MOVED"][:count]


@pytest.mark.parametrize("error", [CommandError("no controller leads"), NotConnectedError("away")])
def test_moves_that_are_not_asked_for_any_more_are_named(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result, asked = undo(monkeypatch, tmp_path, 3, {"m2": error})
    assert (result.exit_code, len(asked)) == (1, 2)
    assert result.stderr == f"{error}\n2 of 3 moves are not undone: m2, m1\n"
    result, asked = undo(monkeypatch, tmp_path, 3, {"m3": error})
    assert (result.exception, len(asked)) == (error, 1), "nothing was changed"


@pytest.mark.parametrize("topology", ["wc-1-1", "my wc (new)-1-1"])
@pytest.mark.parametrize(
    "by",
    [
        "unproved: undo of {}",  # of an earlier version
        "unproved: operator ann at host, undo of {}",
        "storm (unproved: operator ann at host, undo of {})",
    ],
)
def test_what_was_undone_is_not_undone_again(topology: str, by: str) -> None:
    made = [replace(one, topology=topology) for one in MADE]
    back = replace(made[0], id="m4", asked_by=by.format(f"m3 of {topology}"))
    assert [move.id for move in moves.last_moves([*made, back], 1)] == ["m2"]


@pytest.mark.parametrize(
    ("end", "code", "why"),
    [
        (Command("wc", state=REFUSED, reason="full"), 1, "undo of m3 refused: full"),
        (Command("wc", state="UNDONE"), 1, "1"),
    ],
)
def test_one_move_that_cannot_go_back_is_an_error(
    end: Command, code: int, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result, _ = undo(monkeypatch, tmp_path, 1, {"m3": end})
    assert (result.exit_code, str(result.exception)) == (code, why)


@pytest.mark.parametrize("time_s", [1e300, -1e300, 1e12, float("inf")])
@pytest.mark.parametrize("words", [["history"], ["undo", "--dry-run"], ["show", "m1"]])
def test_a_time_that_no_calendar_has_is_shown_as_its_number(
    time_s: float, words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    odd = replace(MADE[0], begun_s=time_s, ended_s=time_s)
    monkeypatch.setattr(moves, "connected", lambda conf: nullcontext(None))
    monkeypatch.setattr(moves, "hosts_of", lambda session: {})
    monkeypatch.setattr(moves, "_moves", lambda *of: [odd])
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    result = CliRunner().invoke(app, [*words, "--conf", str(conf)])
    assert result.exit_code == 0, result.output
    assert f"{time_s:g}" in result.output


def test_history_has_the_cpu_that_was_predicted_and_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    effect = "better, kept: CPU for each input tuple −25.0 % ± 5.0 %; predicted was CPU −10.0 %"
    left = "1.02 times the input, then cpu of a; after the moves 1.1 times, then cpu of b"
    judged = replace(MADE[0], effect=effect, predicted_cpu=0.9, measured_cpu=0.75, headroom=left)
    monkeypatch.setattr(moves, "connected", lambda conf: nullcontext(None))
    monkeypatch.setattr(moves, "hosts_of", lambda session: {})
    monkeypatch.setattr(moves, "_moves", lambda *of: [judged, MADE[1]])
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    lines = CliRunner().invoke(app, ["history", "--conf", str(conf)]).stdout.splitlines()
    heads, first, second = (line.split("\t") for line in lines[1:])
    assert heads[-3:] == ["effect", "predicted CPU", "measured CPU"]
    assert first[-3:] == ["better, kept", "−10.0 %", "−25.0 %"]
    assert second[-3:] == ["", "", ""]
    shown = CliRunner().invoke(app, ["show", "m1", "--conf", str(conf)]).stdout
    assert shown.count("predicted") == 1
    assert "head-room: 1.02 times the input, then cpu of a; after the moves 1.1" in shown
