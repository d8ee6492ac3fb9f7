"""The loop comes to rest on load that only jitters."""

from pathlib import Path

from tests.recorded_world import record


def test_two_that_are_alone_in_a_worker_do_not_go_out_and_back_for_ever(tmp_path: Path) -> None:
    """The second may not leave, so the first would return to it as soon as it has rested."""
    reports = record(tmp_path, ticks=range(45))
    moved = [report.tick for report in reports if report.moves]
    assert 5 <= len(moved) <= 12
    assert max(moved) < 20
