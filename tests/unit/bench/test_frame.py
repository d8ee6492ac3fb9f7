"""The frame of the benches: turns, tables, and the file of finished rounds."""

from pathlib import Path

import pytest

from controller.errors import CommandError
from tests.bench.frame import Kept, in_turn, ratio_text, read, table

SETUP = {"seconds": (8, 6), "link": None}


def test_sides_come_there_and_back() -> None:
    rounds = [in_turn("ab", number) for number in range(1, 5)]
    assert "".join(side for one in rounds for side in one) == "abbaabba"


def test_a_row_is_a_row_of_the_table_and_a_key_a_column() -> None:
    made = table("some", [{"a": 1, "b": None}, {"a": {"p50": 2, "p99": 3}, "b": True}])
    cells = [list(column.cells) for column in made.columns]
    assert [column.header for column in made.columns] == ["a", "b"]
    assert cells == [["1", "p50 2\np99 3"], ["-", "yes"]]
    assert table("none", []).row_count == 0


def test_a_ratio_is_shown_with_the_interval_that_is_known() -> None:
    assert ratio_text({"ratio": 0.98, "low": 0.9, "high": 1.0666}) == "0.980 [0.900, 1.067]"
    assert ratio_text({"ratio": 1.5, "low": 0.0, "high": None}) == "1.500"
    assert ratio_text({"ratio": 1.5}) == "1.500"
    assert ratio_text({"ratio": None, "low": None, "high": None}) == ratio_text(None) == "-"


def test_no_file_is_made_before_something_is_finished(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "some.jsonl"
    kept = Kept(file, SETUP, resume=False)
    assert not file.exists()
    kept.append({"a": 1})
    kept.append({"a": 2})
    assert read(file)[1:] == kept.rows == [{"a": 1}, {"a": 2}]
    again = Kept(file, SETUP, resume=True)
    again.refuse_another_set_up()
    assert again.rows == kept.rows


def test_a_set_up_that_differs_is_named(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    Kept(file, SETUP, resume=False).append({"a": 1})
    other = Kept(file, {**SETUP, "link": "5mbit"}, resume=True)
    with pytest.raises(CommandError, match=r"another set-up, {'link': None}"):
        other.refuse_another_set_up()
