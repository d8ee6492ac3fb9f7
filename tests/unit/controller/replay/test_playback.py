"""A recorded run, decided again: the same, byte for byte, from any segment on."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from controller import cycle as cycle_module
from controller.core.decision import Outcome
from controller.core.guards import GuardAnswer
from controller.core.runs import Refused
from controller.cycle import Memory
from controller.journal.lines import JournalError, compact, to_line
from controller.journal.reader import Log
from controller.journal.record import decode, encode
from controller.journal.writer import Bounds
from controller.policies.gather.policy import JUDGED_AFTER
from controller.replay.playback import SeenReader, replay
from controller.report import TopologyReport
from migration.model import ExecutorId
from tests.recorded_world import Recorded, edit, plain, record, with_meters, with_sizes

SMALL = Bounds(segment_bytes=10_000)


def same(*paths: Path) -> list[bool]:
    log = Log.open(paths)
    return [
        one.identical for writer in range(len(log.writers)) for one in replay(log.ticks(writer))
    ]


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    for path in list(folder.iterdir()):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        records = [plain(line) for line in data.splitlines(keepends=True)]
        for one in records:
            change(one)
        path.unlink()
        changed = b"".join(to_line(compact(one)) for one in records)
        path.with_name(path.name.removesuffix(".gz")).write_bytes(changed)


def record_target(folder: Path) -> list[TopologyReport]:
    """Run with more executors, so that ways are long; only a target moves any."""
    bounds, keys = Bounds(segment_bytes=20_000), {"asc.threshold": 1.0}
    return record(folder, executors=24, delay_ticks=3, ticks=range(20), bounds=bounds, keys=keys)


@pytest.mark.parametrize("of_worker", [2.0, None])
def test_a_replay_gives_the_live_decisions(tmp_path: Path, of_worker: float | None) -> None:
    reports = record(tmp_path, keys={"worker.cpu.capacity": of_worker})
    assert all(same(tmp_path))
    assert {report.outcome for report in reports} >= {Outcome.MOVED, Outcome.STALE_METRICS}
    log = Log.open([tmp_path])
    replayed = [report for one in replay(log.ticks(0)) for report in one.report.topologies]
    assert [(r.tick, r.time_s, r.outcome, r.reason, r.moves, r.plan) for r in replayed] == [
        (r.tick, r.time_s, r.outcome, r.reason, r.moves, r.plan) for r in reports
    ]
    assert same(tmp_path) == [True] * 12
    assert log.skipped_texts() == []


def test_until_when_a_search_takes_is_in_the_journal(tmp_path: Path) -> None:
    reports = record_target(tmp_path)
    assert any("it ends in 599 s at the latest" in report.reason for report in reports)
    assert all(same(tmp_path))


def test_what_meters_show_is_in_the_journal_and_seen_again(tmp_path: Path) -> None:
    def metered(tick: int, run: Recorded) -> None:
        if tick == 0:
            seen = run.world.seen
            run.world.seen = lambda: replace(seen(), loads=with_meters(seen().loads))  # type: ignore[method-assign]

    reports = record(tmp_path, bounds=SMALL, each=metered)
    log = Log.open([tmp_path])
    replayed = [report for one in replay(log.ticks(0)) for report in one.report.topologies]
    pairs = [(r.picture, now.picture) for r, now in zip(reports, replayed, strict=True)]
    shown = [(was, now) for was, now in pairs if was is not None and now is not None]
    assert len(shown) > 5
    for was, now in shown:
        for columns, again in ((was.of_workers, now.of_workers), (was.of_nodes, now.of_nodes)):
            assert len(columns) == 2
            assert columns.keys() == again.keys()
            for name, values in columns.items():
                assert not np.isnan(values).any()
                assert values.tobytes() == again[name].tobytes()
    assert same(tmp_path) == [True] * 12


def test_the_effect_of_a_run_of_moves_is_in_the_journal_and_found_again(tmp_path: Path) -> None:
    """Heads come between its blocks."""

    def ended(tick: int, run: Recorded) -> None:
        if tick == 0:
            seen = run.world.seen
            run.world.seen = lambda: replace(seen(), loads=with_sizes(seen().loads))  # type: ignore[method-assign]
        if tick == 30:
            run.rests = (("wc-1", ExecutorId(2, 2), run.world.seen().now_s),)

    reports = record(tmp_path, mode="observe", ticks=range(80), bounds=SMALL, each=ended)
    assert same(tmp_path) == [True] * 80
    log = Log.open([tmp_path])
    replayed = [report for one in replay(log.ticks(0)) for report in one.report.topologies]
    found = [report.felt.effect for report in reports]
    assert found[-1] is not None and found[-1].changes
    assert "crossing_bytes_per_input" in found[-1].changes
    assert [report.felt.effect for report in replayed] == found
    segments = sorted(tmp_path.iterdir())
    for first in range(1, len(segments), 5):  # the older ones are deleted
        ticks = Log.open(segments[first:]).ticks(0)
        assert all(one.identical for one in replay(ticks)), segments[first]


def test_another_process_gives_them_too(tmp_path: Path) -> None:
    """Sets may have another order there, and with it the last digit of a sum."""
    record(tmp_path, executors=200, ticks=range(6))
    code = (
        "import sys; from pathlib import Path; from controller.journal.reader import Log;"
        "from controller.replay.playback import replay;"
        "print([one.identical for one in replay(Log.open([Path(sys.argv[1])]).ticks(0))])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[True] * 6}\n"


def test_another_decision_shows(tmp_path: Path) -> None:
    record(tmp_path)
    (path,) = tmp_path.iterdir()
    edit(path, lambda head: head["config"].update({"asc.threshold": 1.0, "target.gain": 1.0}))
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
    kept = [one.identical for one in replay(log.ticks(0))]
    assert all(kept)
    assert len(kept) < 30
    assert log.skipped_texts() == [
        "1 segments missing",
        f"{log.skipped['ticks missing']} ticks missing",
    ]
    assert len(kept) + log.skipped["ticks missing"] == 30


def test_a_search_beside_the_cycle_ends_when_it_did(tmp_path: Path) -> None:
    reports = record_target(tmp_path)
    towards = [report.tick for report in reports if "towards a target" in report.reason]
    ticks = Log.open([tmp_path]).ticks(0)
    answered = [tick.record.seq for tick in ticks if tick.record.answers]
    asked = next(r.tick for r in reports if r.outcome is not Outcome.STALE_METRICS)
    assert answered[0] == asked + 3
    assert towards[0] == answered[0] + JUDGED_AFTER  # until then it decided without
    assert len(towards) > 3
    assert same(tmp_path) == [True] * 20
    rewrite(tmp_path, lambda one: one.get("answers", []).clear())
    assert same(tmp_path).index(False) == answered[0] - 1  # the reason names the search still


def test_a_later_segment_goes_on_to_the_target_under_way(tmp_path: Path) -> None:
    record_target(tmp_path)
    assert len(list(tmp_path.iterdir())) > 3
    for path in tmp_path.iterdir():
        assert all(same(path)), path

    def forget(one: dict[str, Any]) -> None:
        if one["kind"] == "head":
            memory = decode(Memory, one["memory"])
            one["memory"] = encode(replace(memory, of_policy={}))

    rewrite(tmp_path, forget)
    assert same(tmp_path) == [True] * 20
    assert not all(all(same(path)) for path in tmp_path.iterdir())


def test_what_only_gather_needs_is_written_for_gather_only(tmp_path: Path) -> None:
    record(tmp_path, policy="otd")
    ticks = list(Log.open([tmp_path]).ticks(0))
    assert ticks[0].head is not None
    assert decode(Memory, ticks[0].head.memory).of_policy == {}
    assert not any(tick.record.answers for tick in ticks)


def test_moves_that_others_asked_for_rest_in_a_replay_too(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        if tick == 1:
            now_s = run.world.seen().now_s
            run.rests = tuple(("wc-1", ExecutorId(task, task), now_s) for task in range(2, 9))
            run.recorder.note({"path": "/c", "state": "MOVED"})

    reports = record(tmp_path, each=each)
    assert reports[1].outcome is Outcome.COOLDOWN
    assert same(tmp_path) == [True] * 12
    (path,) = tmp_path.iterdir()
    second = plain(path.read_bytes().splitlines(keepends=True)[2])
    assert second["commands"] == [{"path": "/c", "state": "MOVED"}]


def test_what_an_earlier_leader_left_is_seen_in_a_replay_too(tmp_path: Path) -> None:
    named = range(2, 9)
    refused = (("wc-1", Refused(("2-2",), (0.0, 9.0), "it was for the worse")),)
    answers = (("wc-1", "q", GuardAnswer()),)

    def each(tick: int, run: Recorded) -> None:
        if tick == 1:
            seen, now_s = run.world.seen, run.world.seen().now_s
            earlier = tuple(("wc-1", ExecutorId(task, task), now_s - 9.0) for task in named)
            more = {"earlier": earlier, "refused": refused, "guard_answers": answers}
            run.world.seen = lambda: replace(seen(), **more)  # type: ignore[method-assign, arg-type]

    reports = record(tmp_path, each=each)
    assert reports[1].outcome is Outcome.COOLDOWN
    assert same(tmp_path) == [True] * 12
    reader = SeenReader()
    seen = [reader.seen(tick.record) for tick in Log.open([tmp_path]).ticks(0)]
    assert [len(one.earlier) for one in seen] == [0, *[len(named)] * 11]
    assert (seen[1].refused, seen[1].guard_answers) == (refused, answers)


def test_a_look_that_failed_fails_again(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        run.error = OSError("no connection") if tick in (0, 4) else None

    reports = record(tmp_path, each=each)
    assert "no connection" in reports[0].reason
    assert Outcome.MOVED in {report.outcome for report in reports[5:]}
    assert same(tmp_path) == [True] * 12


def test_a_surprise_within_a_cycle_is_a_surprise_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*of: object, **named: object) -> None:
        raise ArithmeticError("a bug")

    with monkeypatch.context() as broken:
        broken.setattr(cycle_module, "veto_each", surprise)
        reports = record(tmp_path)
        assert [r.tick for r in reports if "a bug" in r.reason] == list(range(1, 13))
        assert same(tmp_path) == [True] * 12
    assert not all(same(tmp_path))


def test_a_plan_that_was_not_written_is_named(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        run.unwritten = tick == 1

    reports = record(tmp_path, each=each)
    assert reports[1].outcome is Outcome.MOVED
    ticks = [tick.record for tick in Log.open([tmp_path]).ticks(0)]
    assert [tick.unwritten for tick in ticks[:3]] == [(), ("wc-1",), ()]
    assert same(tmp_path) == [True] * 12


def test_a_controller_that_does_not_lead_is_recorded_too(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        run.epoch = None if tick < 4 else 3

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
    assert log.skipped_texts() == ["4 ticks of a leader that had lost its lead"]


def test_a_clock_that_goes_back_is_counted_and_nothing_is_lost(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        run.shift_s = 3600 if tick >= 6 else 0

    record(tmp_path, each=each)
    log = Log.open([tmp_path])
    assert [one.identical for one in replay(log.ticks(0))] == [True] * 12
    assert log.skipped_texts() == ["1 times at which the clock went back"]


def test_a_segment_of_another_format_is_skipped(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(30), bounds=SMALL)
    edit(sorted(tmp_path.iterdir())[-1], lambda head: head.update(format=99))
    log = Log.open([tmp_path])
    assert all(one.identical for one in replay(log.ticks(0)))
    assert log.skipped_texts() == ["1 segments of format 99, which a newer nstorm reads"]


def test_a_journal_of_the_old_format_is_refused_and_its_reader_named(tmp_path: Path) -> None:
    record(tmp_path)
    (path,) = tmp_path.iterdir()
    # Those of format 2 had their memory as JSON.
    edit(path, lambda head: head.update(format=2, memory={"tick": 7}))
    log = Log.open([tmp_path])
    with pytest.raises(JournalError, match="format 2, which an older nstorm reads"):
        log.newest_head()
    assert list(replay(log.ticks(0))) == []
    assert log.skipped_texts() == ["1 segments of format 2, which an older nstorm reads"]


def test_keys_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    record(tmp_path)
    rewrite(tmp_path, lambda one: one.update(later=[1]))
    rewrite(tmp_path, lambda one: [view.update(later={}) for view in one.get("views", ())])
    assert same(tmp_path) == [True] * 12


@pytest.mark.parametrize("field", ["config", "memory"])
def test_what_another_version_wrote_is_one_clear_message(tmp_path: Path, field: str) -> None:
    record(tmp_path)
    (path,) = tmp_path.iterdir()
    edit(path, lambda head: head.update({field: {"unheard": 1}}))
    with pytest.raises(JournalError, match="of another version"):
        list(replay(Log.open([tmp_path]).ticks(0)))


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
