"""A recorded run, decided again: the same, byte for byte, from any segment on."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controller.core.decide import Outcome
from controller.journal.reader import Log
from controller.journal.record import JournalError, compact, from_line, to_line
from controller.journal.recorder import RecordedController
from controller.journal.writer import Bounds
from controller.ports import TopologyView
from controller.replay.playback import replay
from migration.model import ExecutorId, Plan
from tests.recorded_world import LedWorld, record

SMALL = Bounds(segment_bytes=10_000)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


def same(*paths: Path) -> list[bool]:
    log = Log.open(paths)
    return [one.identical for writer in range(len(log.writers)) for one in replay(log, writer)]


def test_a_replay_gives_the_live_decisions(tmp_path: Path) -> None:
    reports = record(tmp_path)
    assert {report.outcome for report in reports} >= {Outcome.MOVED, Outcome.STALE_METRICS}
    log = Log.open([tmp_path])
    replayed = [report for one in replay(log, 0) for report in one.reports]
    assert [(r.tick, r.time_s, r.outcome, r.reason, r.moves, r.plan) for r in replayed] == [
        (r.tick, r.time_s, r.outcome, r.reason, r.moves, r.plan) for r in reports
    ]
    assert same(tmp_path) == [True] * 12
    assert log.said() == []


def test_another_decision_shows(tmp_path: Path) -> None:
    record(tmp_path)
    (path,) = tmp_path.iterdir()
    lines = [from_line(line) for line in path.read_bytes().splitlines(keepends=True)]
    assert lines[0] is not None
    lines[0]["config"]["asc.threshold"] = 1.0
    path.write_bytes(b"".join(to_line(compact(line)) for line in lines))
    assert not all(same(tmp_path))


def test_every_segment_stands_alone(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), bounds=SMALL)
    segments = sorted(tmp_path.iterdir())
    assert len(segments) > 3
    for path in segments:
        assert all(same(path)), path
    assert same(tmp_path) == [True] * 30


def test_a_missing_segment_is_counted_and_the_rest_is_the_same(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), bounds=SMALL)
    sorted(tmp_path.iterdir())[1].unlink()
    log = Log.open([tmp_path])
    kept = [one.identical for one in replay(log, 0)]
    assert all(kept)
    assert len(kept) < 30
    assert log.said() == ["1 segments missing", f"{log.skipped['ticks missing']} ticks missing"]
    assert len(kept) + log.skipped["ticks missing"] == 30


def test_moves_that_others_asked_for_rest_in_a_replay_too(tmp_path: Path) -> None:
    def each(tick: int, controller: RecordedController, world: LedWorld) -> None:
        if tick == 1:
            for task in range(2, 9):
                controller.note_move("wc-1", ExecutorId(task, task))
            controller.note_end({"id": "m7", "outcome": "MOVED"})
            controller.note_command({"path": "/c", "state": "MOVED"})

    reports = record(tmp_path, each=each)
    assert reports[1].outcome is Outcome.COOLDOWN
    assert same(tmp_path) == [True] * 12
    (second,) = [t.record for t in Log.open([tmp_path]).ticks(0) if t.record["seq"] == 2]
    assert second["ended"] == [{"id": "m7", "outcome": "MOVED"}]
    assert second["commands"] == [{"path": "/c", "state": "MOVED"}]


def test_ports_that_fail_fail_again(tmp_path: Path) -> None:
    def fail() -> Sequence[TopologyView]:
        raise OSError("no connection")

    def refuse(plan: Plan, entry: object) -> Plan | None:
        return None

    def each(tick: int, controller: RecordedController, world: LedWorld) -> None:
        world.__dict__.pop("topologies", None)
        world.__dict__.pop("begin", None)
        if tick in (0, 4):
            world.topologies = fail  # type: ignore[method-assign]
        if tick == 5:
            world.begin = refuse  # type: ignore[method-assign]
        if tick == 6:
            world.begin = lambda plan, entry: 1 / 0  # type: ignore[method-assign,assignment,return-value]

    reports = record(tmp_path, each=each)
    assert "no connection" in reports[0].reason
    assert "somebody else" in reports[5].reason
    assert "division" in reports[6].reason
    assert same(tmp_path) == [True] * 12


def test_a_controller_that_does_not_lead_is_recorded_too(tmp_path: Path) -> None:
    def each(tick: int, controller: RecordedController, world: LedWorld) -> None:
        world.leads = None if tick < 4 else 3

    reports = record(tmp_path, each=each)
    assert reports[0].outcome is Outcome.NOT_LEADER
    assert reports[-1].outcome is not Outcome.NOT_LEADER
    assert same(tmp_path) == [True] * 12


def test_a_deposed_leader_counts_until_the_next_epoch_began(tmp_path: Path) -> None:
    record(tmp_path / "a", name="a", epoch=5)
    record(tmp_path / "b", name="b", epoch=6, ticks=range(8, 20))
    log = Log.open([tmp_path])
    ticks = [[t.superseded for t in log.ticks(writer)] for writer in range(2)]
    assert sorted(ticks) == sorted([[False] * 8 + [True] * 4, [False] * 12])
    assert log.said() == ["4 ticks of a leader that had lost its lead"]


def test_a_clock_that_goes_back_is_counted_and_nothing_is_lost(tmp_path: Path) -> None:
    def each(tick: int, controller: RecordedController, world: LedWorld) -> None:
        shift_s = 3600 if tick >= 6 else 0
        world.time_s = lambda: world.now_s() - shift_s  # type: ignore[method-assign]

    record(tmp_path, each=each)
    log = Log.open([tmp_path])
    assert [one.identical for one in replay(log, 0)] == [True] * 12
    assert log.said() == ["1 times at which the clock went back"]


def test_a_segment_of_another_format_is_skipped(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), bounds=SMALL)
    path = sorted(tmp_path.iterdir())[-1]
    lines = path.read_bytes().splitlines(keepends=True)
    head = from_line(lines[0])
    assert head is not None
    path.write_bytes(to_line(compact({**head, "format": 99})) + b"".join(lines[1:]))
    log = Log.open([tmp_path])
    assert all(one.identical for one in replay(log, 0))
    assert log.said() == ["1 segments of another format"]


@pytest.mark.parametrize("field", ["config", "memory"])
def test_what_another_version_wrote_is_one_clear_message(tmp_path: Path, field: str) -> None:
    record(tmp_path)
    (path,) = tmp_path.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    head = from_line(lines[0])
    assert head is not None
    head[field] = {"unheard": 1}
    path.write_bytes(to_line(compact(head)) + b"".join(lines[1:]))
    with pytest.raises(JournalError, match="of another version"):
        list(replay(Log.open([tmp_path]), 0))


def test_where_there_is_no_journal_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no journal segment"):
        Log.open([tmp_path])
    with pytest.raises(JournalError, match="no such file"):
        Log.open([tmp_path / "x"])
    other = tmp_path / "other.jsonl"
    other.write_text("{}")
    with pytest.raises(JournalError, match="not named like a segment"):
        Log.open([other])
    empty = tmp_path / "20200101T000000-x-000000.jsonl"
    empty.write_text("")
    log = Log.open([empty])
    assert list(log.ticks(0)) == []
    with pytest.raises(JournalError, match="no segment begins with a whole head"):
        log.newest_head()
