"""The storm.yaml diff, the page and the picture."""

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from controller.config import build
from controller.console import Console
from controller.pipeline.figures import FeltDay, Figures
from controller.tune.choice import Objective, SetOutcome, Suggestion, suggest
from controller.tune.report import (
    as_document,
    draw,
    page,
    print_found,
    proposed_diff,
    proposed_keys,
)
from controller.tune.space import ParameterSet, without_moves
from migration.model import LATENCY_BUCKETS

LEFT_OUT: dict[str, list[str]] = {"left_out": [], "skipped": ["3 ticks missing"]}
TODAY: dict[str, Any] = dict(build({}).keys)
CHANGES = {"load.high": 0.9, "asc.threshold": 0.01}


@pytest.fixture
def outcomes() -> list[SetOutcome]:
    def figures(crossing: float, moves: int) -> Figures:
        return Figures(100, moves, 500.0, 1000.0, 1000.0 * crossing, 1000.0 * crossing, 5.0)

    sets = ParameterSet((), build({})), ParameterSet(tuple(CHANGES.items()), build(CHANGES))
    return [
        SetOutcome(sets[0], figures(0.4, 2), figures(0.4, 2), (figures(0.4, 2),) * 5),
        SetOutcome(sets[1], figures(0.2, 9), figures(0.3, 1), (figures(0.3, 1),) * 5),
    ]


@pytest.fixture
def suggestion(outcomes: list[SetOutcome]) -> Suggestion:
    return suggest(outcomes, Objective())


@pytest.fixture
def no_moves() -> SetOutcome:
    timed = tuple(100 * (bucket == 22) for bucket in range(LATENCY_BUCKETS))
    idle = Figures(
        100,
        0,
        500.0,
        1000.0,
        700.0,
        700.0,
        5.0,
        fullest_bytes=6.25e8,
        sized_s=500.0,
        recorded_s=250.0,
        acked=995.0,
        failed=5.0,
        timed=timed,
    )
    return SetOutcome(without_moves(TODAY, ["wc-1-7"]), idle, idle)


def patched(before: str, diff: str) -> str:
    """Apply a unified diff of one hunk as `patch` would."""
    lines = before.splitlines(True)
    begin, hunk = re.split(r"^@@ -(\d+).*@@\n", diff, flags=re.MULTILINE)[1:]
    at = max(int(begin) - 1, 0)
    old = [line[1:] for line in hunk.splitlines(True) if line[0] in " -"]
    new = [line[1:] for line in hunk.splitlines(True) if line[0] in " +"]
    assert lines[at : at + len(old)] == old
    return "".join([*lines[:at], *new, *lines[at + len(old) :]])


def test_the_diff_changes_the_lines_of_the_file_and_adds_those_it_lacks(
    suggestion: Suggestion,
) -> None:
    before = "storm.local.dir: /var\n# ours\nnstorm.load.high: 0.8  # not too much\nui.port: 1\n"
    after = patched(before, proposed_diff(before, suggestion, TODAY) or "")
    assert yaml.safe_load(after) == {
        "storm.local.dir": "/var",
        "nstorm.load.high": 0.9,
        "ui.port": 1,
        "nstorm.asc.threshold": 0.01,
    }
    assert "# ours" in after


def test_the_ends_of_lines_stay(suggestion: Suggestion) -> None:
    before = "nstorm.load.high: 0.8\r\nui.port: 1\r\n"
    diff = proposed_diff(before, suggestion, TODAY) or ""
    lines = diff.splitlines(True)[3:]
    assert len(lines) == 4 and all(line.endswith("\r\n") for line in lines)
    assert patched(before, diff).splitlines(True)[0] == "nstorm.load.high: 0.9\r\n"
    assert proposed_diff("a: 1\r\nb: 1\n", suggestion, TODAY) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nstorm.load.high: 0.8 # why\na: 1\n", "nstorm.load.high: 0.9 # why\na: 1\n+"),
        ('"nstorm.load.high": 0.8\na: 1\n', '"nstorm.load.high": 0.9\na: 1\n+'),
        ("nstorm.load.high:\n  0.8\na: 1\n", "nstorm.load.high:\n  0.9\na: 1\n+"),
        ("nstorm.load.high: # none\na: 1\n", "nstorm.load.high: 0.9 # none\na: 1\n+"),
        ("a: 1\n# end\n...\n", "a: 1\n# end\nnstorm.load.high: 0.9\n+...\n"),
        ("--- # begin\n  a: 1\n", "--- # begin\n  a: 1\n  nstorm.load.high: 0.9\n  +"),
        ("{nstorm.load.high: 0.8, a: 1}\n", "{nstorm.load.high: 0.9, a: 1, +}\n"),
        ("{}\n", "{nstorm.load.high: 0.9, +}\n"),
        ("# none\n", "# none\nnstorm.load.high: 0.9\n+"),
    ],
)
def test_the_diff_changes_the_value_alone_however_it_is_written(
    suggestion: Suggestion, before: str, after: str
) -> None:
    other = "nstorm.asc.threshold: 0.01"
    wanted = after.replace("+", other if before[0] == "{" else other + "\n")
    assert patched(before, proposed_diff(before, suggestion, TODAY) or "") == wanted


def test_a_file_without_a_last_line_end_has_a_diff_that_says_so(suggestion: Suggestion) -> None:
    diff = proposed_diff("a: 1\nnstorm.asc.threshold: 0", suggestion, TODAY) or ""
    assert diff.splitlines()[3:] == [
        " a: 1",
        "-nstorm.asc.threshold: 0",
        "\\ No newline at end of file",
        "+nstorm.asc.threshold: 0.01",
        "+nstorm.load.high: 0.9",
    ]


@pytest.mark.parametrize(
    "before",
    [
        "nstorm.load.high: |\n  0.8\na: 1\n",
        "nstorm.load.high: &high 0.8\na: *high\n",
        "{nstorm.load.high, a: 1}\n",
    ],
)
def test_where_the_file_cannot_be_changed_so_the_keys_are_named(
    suggestion: Suggestion, before: str
) -> None:
    assert proposed_diff(before, suggestion, TODAY) is None
    assert proposed_keys(suggestion).splitlines()[1:] == [
        "nstorm.load.high: 0.9",
        "nstorm.asc.threshold: 0.01",
    ]


def test_without_a_file_the_diff_shows_what_is_in_force(suggestion: Suggestion) -> None:
    diff = proposed_diff(None, suggestion, TODAY) or ""
    assert diff.startswith("--- storm.yaml\n+++ storm.yaml\n")
    assert [line for line in diff.splitlines()[3:] if line[0] in "+-"] == [
        "-nstorm.load.high: 0.85",
        "-nstorm.asc.threshold: 0.002",
        "+nstorm.load.high: 0.9",
        "+nstorm.asc.threshold: 0.01",
    ]


def test_a_file_that_has_the_values_already_needs_no_change(suggestion: Suggestion) -> None:
    already = "nstorm.load.high: 0.9\nnstorm.asc.threshold: 0.01\n"
    assert proposed_diff(already, suggestion, TODAY) == ""


def test_no_diff_where_nothing_helps(outcomes: list[SetOutcome]) -> None:
    nothing = suggest(outcomes[:1], Objective())
    assert proposed_diff("ui.port: 1\n", nothing, TODAY) == proposed_keys(nothing) == ""


def test_the_page_needs_nothing_from_elsewhere(
    outcomes: list[SetOutcome], suggestion: Suggestion, no_moves: SetOutcome, tmp_path: Any
) -> None:
    document = as_document(outcomes, Objective(), suggestion, no_moves, **LEFT_OUT)
    draw(document, tmp_path / "front.png")
    png = (tmp_path / "front.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    text = page(document, "-a < b\n", png, "wc & co")
    assert "-a &lt; b" in text and "wc &amp; co" in text
    assert "<script" not in text
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "A live run differs from a replay" in text
    assert text.count("load.high=0.9, asc.threshold=0.01") == 2
    assert text.count("no moves") == 1
    assert text.count("skipped: 3 ticks missing") == 1


def test_sets_that_users_felt_worse_are_named(
    outcomes: list[SetOutcome], no_moves: SetOutcome
) -> None:
    """Of six days users knew the other set on three, and 5 % failed then."""
    days = [FeltDay("wc-1-7", day, False, 100.0, 0.05 * (day % 2), 20.0) for day in range(6)]
    outcomes = [
        replace(outcomes[0], felt=tuple(days)),
        replace(outcomes[1], felt=tuple(days[1::2])),
    ]
    found = suggest(outcomes, Objective())
    document = as_document(outcomes, Objective(), found, no_moves, **LEFT_OUT)
    worse = "wc: fails 0.00% → 5.00%"
    assert [row["felt_worse"] for row in document["ranking"]] == [None, worse]
    console = Console(width=160, record=True)
    print_found(console, document, "")
    text = console.export_text()
    (row,) = [line for line in text.splitlines() if "│ worse │" in line]
    assert "load.high=0.9" in row
    assert f"- load.high=0.9, asc.threshold=0.01: {worse}" in text
    assert "Keep what you have: nothing that was tried does better" in text


def test_what_is_printed(
    outcomes: list[SetOutcome], suggestion: Suggestion, no_moves: SetOutcome
) -> None:
    bound = (("COOLDOWN", 2), ("NO_LOW_WORKER", 7))
    today = replace(suggestion.today, held_back=replace(suggestion.today.held_back, bound=bound))
    suggestion = replace(suggestion, today=today)
    document = as_document(outcomes, Objective(), suggestion, no_moves, **LEFT_OUT)
    console = Console(width=160, record=True)
    print_found(console, document, "+nstorm.load.high: 0.9\n")
    text = console.export_text()
    rows = [line for line in text.splitlines() if "│" in line and "0." in line]
    assert "load.high=0.9" in rows[0] and "as today" in rows[-2]
    assert "0.3000" in rows[-1] and "no moves" in rows[-1]
    cells = [[cell.strip() for cell in row.split("│")] for row in (rows[-1], rows[0])]
    assert [row[-6:-2] for row in cells] == [["50%", "47.92", "0.500%", "–"], ["0%", "–", "–", "–"]]
    assert [row[-8] for row in cells] == ["1.25", "–"]
    assert "skipped: 3 ticks missing" in text
    assert "\nWhat bound today's settings: 7 NO_LOW_WORKER, 2 COOLDOWN\n" in text
    assert "\nWhat bound the best set: nothing\n" in text
    assert document["suggestion"]["reason"] in " ".join(text.split())
    assert text.endswith("+nstorm.load.high: 0.9\n")
    assert document["ranking"][0]["held_back"]["moves"] == 1
    assert document["suggestion"]["changes"] == CHANGES
