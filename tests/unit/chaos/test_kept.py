"""A run that was broken off goes on with what it has kept."""

from pathlib import Path

from tests.chaos.judge import Seen, Window
from tests.chaos.kept import Kept
from tests.chaos.run import Result

WELL = Result("a@STOP", "2026-01-02", Seen(recovered_s=1.5, window=Window(1, 1, 0, 5, 5)), [])
WRONG = Result("b@STOP", "2026-01-02", Seen(flaw="under way"), ["outcome -, not MOVED"])


def test_nothing_is_kept_at_first(tmp_path: Path) -> None:
    assert Kept(tmp_path / "none" / "seed-1.jsonl").results() == {}


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    file = tmp_path / "chaos" / "seed-1.jsonl"
    for result in (WELL, WRONG):
        Kept(file).keep(result)
    assert Kept(file).results() == {"a@STOP": WELL, "b@STOP": WRONG}
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_the_newest_try_of_a_name_counts_and_those_before_it_stay(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "seed-1.jsonl")
    first, second = (Result("a@STOP", "2026-01-02", Seen(), wrong) for wrong in (["broke off"], []))
    for result in (first, WRONG, second):
        kept.keep(result)
    assert kept.tries() == [first, WRONG, second]
    assert kept.results() == {"a@STOP": second, "b@STOP": WRONG}


def test_a_last_line_that_was_cut_off_is_no_try(tmp_path: Path) -> None:
    file = tmp_path / "seed-1.jsonl"
    kept = Kept(file)
    for result in (WELL, WRONG):
        kept.keep(result)
    file.write_bytes(file.read_bytes()[:-9])
    assert kept.tries() == [WELL]
    kept.keep(WRONG)
    assert kept.tries() == [WELL, WRONG]
