"""A journal that cannot be written never stops the loop, and the operator sees it."""

from pathlib import Path

import pytest

from controller.cli.status_document import as_document
from controller.cli.status_view import as_tables
from controller.config import Config
from controller.core.controls import Controls
from controller.core.decision import Outcome
from controller.journal import recorder
from controller.storm.status import status_of
from tests.recorded_world import Recorded, record


def test_a_disk_that_refuses_is_told_by_status(tmp_path: Path) -> None:
    problems: list[str | None] = []

    def each(tick: int, run: Recorded) -> None:
        problems.append(run.recorder.problem)

    (tmp_path / "file").write_text("")
    reports = record(tmp_path / "file" / "journal", ticks=range(4), each=each)
    assert problems == [None, *["Not a directory"] * 3]
    assert Outcome.MOVED in [report.outcome for report in reports]
    told = status_of(
        reports,
        (),
        Config(),
        name="c",
        epoch=1,
        journal_problem=problems[-1],
    )
    shown = list(as_tables(as_document((), (), told, Controls(), left_out={})))
    assert "journal not written: Not a directory" in shown
    whole = status_of(reports, (), Config(), name="c", epoch=1, journal_problem=problems[0])
    shown = list(as_tables(as_document((), (), whole, Controls(), left_out={})))
    assert not any("journal" in str(line) for line in shown)


def test_a_fault_of_its_own_is_told_until_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str | None] = []

    def each(tick: int, run: Recorded) -> None:
        problems.append(run.recorder.problem)
        if tick == 1:
            monkeypatch.setattr(recorder, "cycle_record", lambda report: 1 / 0)
        if tick == 3:
            monkeypatch.undo()

    reports = record(tmp_path, ticks=range(6), each=each)
    fault = repr(ZeroDivisionError("division by zero"))
    assert problems == [None, None, fault, fault, None, None]
    assert len(reports) == 6
