"""The memory of controller and agent stays what it is once all that is remembered has been seen."""

from pathlib import Path

from tests.simulated_day import agent_day, controller_day


def test_the_controller_keeps_no_more_after_more_cycles(tmp_path: Path) -> None:
    counts = [row["objects"] for row in controller_day(tmp_path, 1200.0, 300.0)]
    assert len(counts) == 4
    assert counts[-1] - counts[1] < 0.02 * counts[1]


def test_the_agent_keeps_no_more_after_more_turns(tmp_path: Path) -> None:
    rows = list(agent_day(tmp_path, 400.0, 100.0))
    counts = [row["objects"] for row in rows]
    assert counts[-1] - counts[1] < 0.01 * counts[1]
    assert rows[-1]["load_bytes"] > 300  # what the worker reports is published
