"""A recorded run, decided again: the same, byte for byte, from any segment on."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller import loop
from controller.core.decide import Outcome
from controller.journal.reader import Log
from controller.journal.record import JournalError, compact, from_line, to_line
from controller.journal.recorder import RecordedController
from controller.journal.writer import Bounds
from controller.loop import CycleReport
from controller.ports import TopologyView
from controller.replay.playback import replay
from controller.targeting.policy import JUDGED_AFTER
from controller.targeting.search import Answer, Question, at_once
from migration.model import ExecutorId, Plan
from migration.moves import Refusal, RefusalCode, validate_move
from tests.recorded_world import LedWorld, record

SMALL = Bounds(segment_bytes=10_000)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


def same(*paths: Path) -> list[bool]:
    log = Log.open(paths)
    return [one.identical for writer in range(len(log.writers)) for one in replay(log, writer)]


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    for path in list(folder.iterdir()):
        data = path.read_bytes()
        plain = gzip.decompress(data) if path.suffix == ".gz" else data
        records = [from_line(line) for line in plain.splitlines(keepends=True)]
        for one in records:
            assert one is not None
            change(one)
        path.unlink()
        changed = b"".join(to_line(compact(one)) for one in records)
        path.with_name(path.name.removesuffix(".gz")).write_bytes(changed)


class Late:
    """A search that is asked some times before its answer is there, as one beside the cycle is."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._asked: list[Question] = []

    def __call__(self, question: Question) -> Answer | None:
        self._asked.append(question)
        if len(self._asked) <= self._times:
            return None
        answer = at_once(self._asked[0])
        self._asked = []
        return answer


def record_target(folder: Path) -> list[CycleReport]:
    """Run `target` with more executors, so that its ways are long, and some ticks a segment."""
    bounds = Bounds(segment_bytes=20_000)
    return record(
        folder, executors=24, policy="target", search=Late(3), ticks=range(20), bounds=bounds
    )


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


def test_a_search_beside_the_cycle_ends_when_it_did(tmp_path: Path) -> None:
    reports = record_target(tmp_path)
    towards = [report.tick for report in reports if "towards a target" in report.reason]
    ticks = Log.open([tmp_path]).ticks(0)
    asked = [tick.record["seq"] for tick in ticks if "answers" in tick.record]
    assert towards[0] == asked[0] + 3 + JUDGED_AFTER  # meanwhile it decided as `safe`
    assert len(towards) > 3
    assert same(tmp_path) == [True] * 20
    rewrite(tmp_path, lambda one: one.pop("answers", None))
    assert same(tmp_path).index(False) == towards[0] - 1


def test_a_later_segment_goes_on_to_the_target_under_way(tmp_path: Path) -> None:
    record_target(tmp_path)
    assert len(list(tmp_path.iterdir())) > 3
    for path in tmp_path.iterdir():
        assert all(same(path)), path
    rewrite(tmp_path, lambda one: one.get("memory", {}).pop("targeting", None))
    assert same(tmp_path) == [True] * 20
    assert not all(all(same(path)) for path in tmp_path.iterdir())


def test_an_answer_that_comes_within_a_tick_is_given_to_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused is decided again, and the search may have ended in between.

    Of 24 executors, `safe` and the target begin with different ones, so it shows who was refused.
    """
    refused = 0

    def refuse(*of: Any, **options: Any) -> Any:
        nonlocal refused
        refused += 1
        found = validate_move(*of, **options)
        return Refusal(RefusalCode.PINNED, "not now") if refused == 1 else found

    monkeypatch.setattr(loop, "validate_move", refuse)
    reports = record(tmp_path, executors=24, policy="target", search=Late(1))
    first = next(report for report in reports if report.moves)
    assert "towards a target" in first.reason
    refused = 0
    assert same(tmp_path) == [True] * 12


def test_what_only_target_needs_is_written_for_target_only(tmp_path: Path) -> None:
    record(tmp_path)
    ticks = list(Log.open([tmp_path]).ticks(0))
    assert ticks[0].head is not None
    assert "targeting" not in ticks[0].head["memory"]
    assert not any("answers" in tick.record for tick in ticks)


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


def test_a_search_that_fails_fails_again(tmp_path: Path) -> None:
    asked = 0

    def search(question: Question) -> Answer | None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise OSError("no process")
        return None

    reports = record(tmp_path, policy="target", search=search)
    assert [r.outcome for r in reports if "no process" in r.reason] == [Outcome.STAND_BACK]
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
