"""The page of the faults has what the results have, and names what was not run."""

import pytest

from tests.chaos.judge import Seen
from tests.chaos.page import page
from tests.chaos.run import Result
from tests.chaos.tries import CELLS, EXTRAS

SEEN = Seen(
    outcome="MOVED", recovered_s=13.6, failed=500, lost=11, gap_s=3.214, degraded_s=4, load=2.5
)


def row(text: str, begins: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith(begins)
    ]


def test_a_cell_is_told_with_its_outcome_and_its_downtime() -> None:
    told = page([Result("target-killed@STOP", "2026-01-02", SEEN, [], "0a1b2c3")], 7, "m")
    outcome, downtime = row(told, "| target killed |")
    assert outcome == ["target killed", *["not run"] * 4, "MOVED, 14 s, 511", *["not run"] * 5]
    assert downtime[5] == "3.21 / 4"
    assert "Seed 7; 2026-01-02; m. Load average 2.5 to 2.5. Commits 0a1b2c3." in told
    assert (
        f"1 of {len(CELLS) + len(EXTRAS) + 1} faults were tried. 1 tries were made, 0 not" in told
    )
    assert told.endswith("Nothing.\n")


def test_what_is_wrong_is_told_and_marked() -> None:
    never = Seen(outcome="UNDONE", flaw="under way")
    told = page([Result("soak", "2026-01-02", never, ["not whole", "1 lost"])], 1, "m")
    assert row(told, "| soak |") == [["soak", "90 s", "**UNDONE, never whole, 0**", "-"]]
    assert told.endswith("- `soak`: not whole; 1 lost\n")


def test_a_result_of_no_try_is_left_out() -> None:
    told = page([Result("gone@STOP", "2026-01-02", SEEN, ["x"])], 1, "m")
    assert "0 tries were made, 0 not as expected" in told and "gone" not in told


def test_a_wrong_try_stays_on_the_page_when_a_later_one_is_well() -> None:
    tries = [Result("leader-killed@STOP", "2026-01-02", SEEN, wrong) for wrong in (["x"], [], [])]
    told = page(tries, 1, "m")
    outcome, _ = row(told, "| leader killed |")
    assert outcome[5] == "**MOVED, 14 s, 511 (1 of 3 tries not as expected)**"
    assert "1 of 221 faults were tried. 3 tries were made, 1 not as expected." in told
    assert told.endswith("- `leader-killed@STOP`: x\n")


@pytest.mark.parametrize("name", ["topology-killed@DRAIN", "zookeeper-rebuilt"])
def test_what_the_fault_itself_builds_anew_has_no_seconds(name: str) -> None:
    told = page([Result(name, "2026-01-02", SEEN, [])], 1, "m")
    assert row(told, f"| {name} |") == [[name, "180 s", "MOVED, -, 511", "3.21 / 4"]]
