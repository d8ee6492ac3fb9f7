"""The page of the faults is what the results say, and says what was not run."""

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
    told = page(
        {"target-killed@STOP": Result("target-killed@STOP", "2026-01-02", SEEN, [])}, 7, "m"
    )
    outcome, downtime = row(told, "| target killed |")
    assert outcome == ["target killed", *["not run"] * 4, "MOVED, 14 s, 511", *["not run"] * 2]
    assert downtime[5] == "3.21 / 4"
    assert "Seed 7; 2026-01-02; m; load average 2.5 to 2.5" in told
    assert f"1 of {len(CELLS) + len(EXTRAS) + 1} tries were made, and 0 of them" in told
    assert told.endswith("Nothing.\n")


def test_what_is_wrong_is_told_and_marked() -> None:
    never = Seen(outcome="UNDONE", flaw="under way")
    told = page({"soak": Result("soak", "2026-01-02", never, ["not whole", "1 lost"])}, 1, "m")
    assert row(told, "| soak |") == [["soak", "**UNDONE, never whole, 0**", "-"]]
    assert told.endswith("- `soak`: not whole; 1 lost\n")


def test_a_result_of_no_try_is_left_out() -> None:
    told = page({"gone@STOP": Result("gone@STOP", "2026-01-02", SEEN, ["x"])}, 1, "m")
    assert "0 of" in told and "gone" not in told
