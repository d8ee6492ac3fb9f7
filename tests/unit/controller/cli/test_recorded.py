"""A cycle of the journal is explained as the leader would have done then, and found by its name."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from controller.cli import recorded
from controller.cli.main import app
from controller.cli.recorded import in_journal
from controller.cli.why import cycle_named
from controller.config import build
from controller.core.decision import Outcome
from controller.errors import CommandError
from controller.journal.lines import JournalError
from controller.journal.recorder import HEAD_TICKS
from controller.journal.writer import Bounds
from controller.replay.playback import replay
from controller.report import TopologyReport, not_written
from controller.storm.answers import explained
from controller.storm.command_record import Command, encode
from tests.messages import replace
from tests.recorded_world import BEGIN_S, TICK_S, Recorded, edit, plain, record

CONFIG = build(
    {"mode": "auto", "policy": "gather", "cooldown.executor.secs": 12, "worker.cpu.capacity": 2}
)
DARK = "explain refused: no executor, worker or host 7-7 in that cycle; wc-1 STALE_METRICS: "
SMALL = Bounds(segment_bytes=10_000)


def at(tick: int) -> datetime:
    return datetime.fromtimestamp(BEGIN_S + TICK_S * tick, UTC)


def dated(folder: Path) -> None:
    """Name segments by the time of what is in them, as a live writer does."""
    for path in sorted(folder.iterdir()):
        _, _, rest = path.name.partition("-")
        with path.open("rb") as file:
            begun_s = json.loads(file.readline())["time_s"]
        begun = datetime.fromtimestamp(begun_s, UTC).strftime("%Y%m%dT%H%M%S")
        path.rename(path.with_name(f"{begun}-{rest}"))


def recorded_in(folder: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> list[TopologyReport]:
    """Record in small segments that stay plain."""
    monkeypatch.setattr("controller.journal.writer.pack", lambda path: None)
    reports = record(folder, bounds=SMALL, **how)
    dated(folder)
    return reports


def said(reports: list[TopologyReport], what: str = "") -> bytes:
    return encode(explained(reports, Command("", verb="explain", what=what), CONFIG))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give a list in which each cycle that is decided again leaves its number."""
    decided: list[int] = []

    def counting(*where: Any) -> Any:
        for one in replay(*where):
            decided.append(one.tick.record.seq)
            yield one

    monkeypatch.setattr(recorded, "replay", counting)
    return decided


@pytest.mark.parametrize("what", ["", "2-2", "a:1", "host-b"])
def test_every_cycle_is_explained_as_it_would_have_been_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    reports = recorded_in(tmp_path, monkeypatch)
    assert len({*tmp_path.iterdir()}) > 3
    assert {report.outcome for report in reports} >= {Outcome.MOVED, Outcome.STALE_METRICS}
    for tick, report in enumerate(reports):
        assert report.tick == tick + 1
        for named in (report.tick, at(tick), at(tick).replace(microsecond=0)):
            found, config = in_journal([tmp_path], named)
            assert said(found, what) == said([report], what)
            assert config == CONFIG


def test_no_segment_before_the_cycles_own_is_decided_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_in(tmp_path, monkeypatch)
    decided = counted(monkeypatch)
    for named in (12, at(11)):
        decided.clear()
        in_journal([tmp_path], named)
        assert decided[-1] == 12
        assert decided[0] > 6


def test_a_time_means_the_last_cycle_by_then_in_which_a_controller_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leads_from_tick_4(tick: int, run: Recorded) -> None:
        run.epoch = None if tick < 4 else 0

    recorded_in(tmp_path, monkeypatch, each=leads_from_tick_4)
    second = timedelta(seconds=1)
    for named, tick in ((at(4), 4), (at(4) - second / 2, 4), (at(5) - second, 4), (at(6), 6)):
        ((one,), _) = in_journal([tmp_path], named)
        assert one.time_s == at(tick).timestamp()
    for none in (3, at(4) - second):
        with pytest.raises(CommandError, match=f"has no cycle {re.escape(str(none))} in which"):
            in_journal([tmp_path], none)


def test_no_more_is_decided_again_than_what_follows_the_nearest_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = range(2 * HEAD_TICKS + 3)
    reports = record(tmp_path, ticks=ticks)
    (path,) = tmp_path.iterdir()
    kinds = [plain(line)["kind"] for line in path.read_bytes().splitlines(keepends=True)]
    heads = [row for row, kind in enumerate(kinds) if kind == "head"]
    assert heads == [0, HEAD_TICKS + 1, 2 * (HEAD_TICKS + 1)]
    decided = counted(monkeypatch)
    for named, first in ((HEAD_TICKS, 1), (HEAD_TICKS + 1, HEAD_TICKS + 1), (len(ticks), 49)):
        decided.clear()
        found, _ = in_journal([tmp_path], named)
        assert decided == list(range(first, named + 1))
        assert said(found) == said([reports[named - 1]])


def test_a_head_whose_tick_is_damaged_is_not_begun_with(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(2 * HEAD_TICKS))
    (path,) = tmp_path.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[HEAD_TICKS + 2]
    path.write_bytes(b"".join(lines))
    assert in_journal([tmp_path], HEAD_TICKS)
    with pytest.raises(CommandError, match="cycle 30 cannot be decided again as it was"):
        in_journal([tmp_path], 30)


def test_a_lead_that_was_lost_at_the_end_of_a_segment_is_looked_for_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leads_until_tick_5(tick: int, run: Recorded) -> None:
        run.epoch = 0 if tick < 5 else None
        if tick >= 5:  # each segment that follows has no tick in which it led
            run.recorder._begins_again = True

    reports = recorded_in(tmp_path, monkeypatch, each=leads_until_tick_5)
    for tick in (4, 5, 8, 11):
        ((one,), _) = in_journal([tmp_path], at(tick))
        assert one.time_s == reports[4].time_s


def test_a_segment_that_was_named_after_its_first_tick_has_it_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_in(tmp_path, monkeypatch)
    for path in tmp_path.iterdir():
        begun, _, rest = path.name.partition("-")
        later = datetime.strptime(begun, "%Y%m%dT%H%M%S") + timedelta(seconds=2)
        path.rename(path.with_name(f"{later:%Y%m%dT%H%M%S}-{rest}"))
    for tick in range(12):
        ((one,), _) = in_journal([tmp_path], at(tick))
        assert one.time_s == at(tick).timestamp()


def test_a_journal_of_another_format_is_refused_by_the_version_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_in(tmp_path, monkeypatch)
    for path in tmp_path.iterdir():
        edit(path, lambda head: head.update(format=3))
    with pytest.raises(JournalError, match="format 3, which an older nstorm reads"):
        in_journal([tmp_path], at(4))


def test_of_two_processes_the_one_that_led_and_of_a_number_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_in(tmp_path, monkeypatch, name="one")
    recorded_in(tmp_path, monkeypatch, name="two", ticks=range(20, 26), epoch=1)
    for named, tick in ((3, 22), (9, 8), (at(5), 5), (at(15), 11), (at(22), 22), (at(30), 25)):
        ((one,), _) = in_journal([tmp_path], named)
        assert one.time_s == at(tick).timestamp()
    for none in (99, at(-1)):
        with pytest.raises(CommandError, match="has no cycle") as refused:
            in_journal([tmp_path], none)
        assert "\n" not in str(refused.value)


def test_a_plan_that_was_not_written_is_told_as_it_was_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(tick: int, run: Recorded) -> None:
        run.unwritten = tick == 3

    reports = recorded_in(tmp_path, monkeypatch, each=lost)
    assert reports[3].outcome is Outcome.MOVED
    found, _ = in_journal([tmp_path], 4)
    assert said(found) == said([not_written(reports[3])])


def test_what_cannot_be_decided_again_as_it_was_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_in(tmp_path, monkeypatch)

    def otherwise(*where: Any) -> Any:
        for one in replay(*where):
            cycle, *others = one.cycles
            yield replace(one, cycles=(replace(cycle, reason="another"), *others))

    monkeypatch.setattr(recorded, "replay", otherwise)
    with pytest.raises(CommandError, match="cycle 5 cannot be decided again as it was"):
        in_journal([tmp_path], 5)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("4711", 4711),
        ("2026-11-25T03:12", datetime(2026, 11, 25, 3, 12, tzinfo=UTC)),
        ("2026-11-25 03:12:04Z", datetime(2026, 11, 25, 3, 12, 4, tzinfo=UTC)),
        ("2026-11-25T04:12+01:00", datetime(2026, 11, 25, 3, 12, tzinfo=UTC)),
        *((other, None) for other in ("", "7-7", "a:6700", "host-7", "10.0.0.1", "03:12")),
    ],
)
def test_a_cycle_is_named_by_a_number_or_a_time(text: str, named: Any) -> None:
    assert cycle_named(text) == named


def typed(*words: str) -> Any:
    return CliRunner().invoke(app, ["explain", *words])


def test_a_cycle_is_explained_from_the_command_line_without_zookeeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, conf = tmp_path / "journal", tmp_path / "storm.yaml"
    reports = recorded_in(folder, monkeypatch)
    conf.write_text(f"nstorm.journal.dir: {folder}\n")
    where = ["--conf", str(conf)]
    found = json.loads(typed("7-7", "2023-11-14T22:13:35", *where, "-o", "json").output)
    wish = Command("", verb="explain", what="7-7")
    live = msgspec.json.encode(explained([reports[3]], wish, CONFIG).answer)
    assert found == json.loads(live)
    assert found[0]["cycle"] == 4
    assert found == json.loads(typed("7-7", "4", *where, "-o", "json").output)
    table = typed("4", *where).output
    assert "cycle: 4\ntime: 2023-11-14 22:13:35Z\n" in table
    assert "what to do: " in table
    assert "host-a:1 " in table
    assert typed("host-a:1", "4", *where).output == typed("a:1", "4", *where).output
    for words, refused in (
        (["7-7", "noon"], "'noon' is neither the number of a cycle nor a time"),
        (["9-9", "4"], "explain refused: no executor, worker or host 9-9 in that cycle"),
        (["7-7", "1"], DARK),
        (["4", "--topology", "gone"], "explain refused: no topology of gone in that cycle"),
    ):
        assert str(typed(*words, *where).exception).startswith(refused)
    conf.write_text("storm.local.dir: relative\n")
    assert str(typed("4", *where).exception).startswith("there is no journal: ")
