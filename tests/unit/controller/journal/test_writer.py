"""Segments: rotated, compressed, bounded, and never in the way of the loop."""

import fcntl
import gzip
import os
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller.config import JournalBounds
from controller.journal.lines import MOVES, OLDER_MOVES, compact, move_lines, to_line
from controller.journal.writer import Bounds, Writer, pack
from tests.recorded_world import plain

HEAD, TICK = compact({"kind": "head"}), compact({"kind": "tick", "fill": "x" * 100})


def write(writer: Writer, ticks: int) -> None:
    for _ in range(ticks):
        begins = writer.wants_segment
        writer.append([HEAD, TICK] if begins else [TICK], begins=begins)
        writer.wait()


def test_a_full_segment_is_followed_by_the_next_and_compressed(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "w", Bounds(segment_bytes=1000))
    write(writer, 20)
    writer.close()
    names = sorted(path.name.split("-", 1)[1] for path in tmp_path.iterdir())
    assert names == ["w-000000.jsonl.gz", "w-000001.jsonl.gz", "w-000002.jsonl"]
    records = []
    for path in sorted(tmp_path.iterdir()):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            lines = [plain(line) for line in file]
        assert lines[0] == {"kind": "head"}
        records += lines[1:]
    assert [record["kind"] for record in records] == ["tick"] * 20


def test_an_old_segment_is_left(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "w", Bounds(segment_s=0.0))
    write(writer, 3)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 3


def test_the_oldest_segments_go_when_there_is_too_much(tmp_path: Path) -> None:
    bounds = Bounds(size_bytes=1500, segment_bytes=300)
    writer = Writer(tmp_path, "w", bounds)
    for _ in range(60):
        write(writer, 1)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= bounds.size_bytes
    writer.close()
    numbers = sorted(int(path.name.split("-")[2][:6]) for path in tmp_path.iterdir())
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] > 0


def test_names_of_a_clock_that_was_ahead_do_not_outlive_later_segments(tmp_path: Path) -> None:
    ahead = tmp_path / "20990101T000000-x-000000.jsonl.gz"
    ahead.write_bytes(b"x" * 800)
    os.utime(ahead, (time.time() - 60,) * 2)
    writer = Writer(tmp_path, "w", Bounds(size_bytes=1500, segment_bytes=300))
    write(writer, 60)
    writer.close()
    assert not ahead.exists()
    assert len(list(tmp_path.iterdir())) > 2


def test_segments_go_when_they_are_too_old(tmp_path: Path) -> None:
    old = tmp_path / "20200101T000000-x-000000.jsonl.gz"
    old.write_bytes(b"")
    os.utime(old, (time.time() - 3 * 86400,) * 2)
    writer = Writer(tmp_path, "w", Bounds(days=2))
    write(writer, 1)
    writer.close()
    assert not old.exists()


@pytest.mark.parametrize("kind", ["folder", "link that leads nowhere"])
def test_a_file_that_cannot_be_packed_keeps_no_other_one(tmp_path: Path, kind: str) -> None:
    fault = tmp_path / "20200101T000000-x-000000.jsonl"
    if kind == "folder":
        fault.mkdir()
        os.utime(fault, (0, 0))
    else:
        fault.symlink_to(tmp_path / "none")
    plain_one = tmp_path / "20200102T000000-x-000000.jsonl"
    plain_one.write_bytes(b"not too old")
    old = tmp_path / "20200101T000000-y-000000.jsonl.gz"
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    writer = Writer(tmp_path, "w", Bounds(days=2))
    with capture_logs() as logs:
        write(writer, 1)
        writer.close()
    assert not old.exists()
    assert not plain_one.exists()
    assert plain_one.with_name(plain_one.name + ".gz").exists()
    said = [entry["reason"] for entry in logs if entry["event"] == "journal_not_tidied"]
    assert said and all(fault.name in reason for reason in said)


def test_what_a_killed_writer_left_is_compressed(tmp_path: Path) -> None:
    left = tmp_path / "20200101T000000-x-000000.jsonl"
    left.write_bytes(b"half a li")
    half = left.with_name(left.name + ".part")
    half.write_bytes(b"killed in compressing")
    writer = Writer(tmp_path, "w", Bounds(days=1e6))
    write(writer, 1)
    writer.close()
    assert not left.exists()
    assert not half.exists()
    assert gzip.decompress(left.with_name(left.name + ".gz").read_bytes()) == b"half a li"


def test_a_segment_in_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "20200101T000000-x-000000.jsonl"
    path.write_bytes(b"")
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pack(path)
        assert path.exists()
    pack(path)
    assert not path.exists()


def test_a_place_that_cannot_be_written_is_said_once_and_tried_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    writer = Writer(blocked / "journal", "w", Bounds())
    with capture_logs() as logs:
        write(writer, 1)
        assert writer.resting
        assert writer.failed == "Not a directory"
        monkeypatch.setattr("controller.journal.writer.time.monotonic", lambda: 1e9)
        assert not writer.resting
        assert writer.wants_segment
        write(writer, 1)
        blocked.unlink()
        write(writer, 2)
        writer.close()
    said = [entry["event"] for entry in logs]
    assert said.count("journal_not_written") == 1
    assert said[-1] == "journal_works_again"
    (path,) = (blocked / "journal").iterdir()
    assert len(path.read_bytes().splitlines()) == 3


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, "w", Bounds())
    write(writer, 1)
    whole = os.write
    monkeypatch.setattr(
        "controller.journal.writer.os.write", lambda file, data: whole(file, data[:10])
    )
    write(writer, 1)
    monkeypatch.undo()
    assert writer.resting
    # Without a head, nothing more goes into the broken segment.
    writer.append([TICK], begins=False)
    writer.close()
    (path,) = tmp_path.iterdir()
    assert len(path.read_bytes().splitlines()) == 2
    assert path.read_bytes().endswith(b"}\n")


def test_a_disk_that_hangs_does_not_hold_the_loop_up(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "w", Bounds())
    read_end, write_end = os.pipe()
    slow = Writer._take

    def hang(self: Writer, *what: Any) -> None:
        os.read(read_end, 1)
        slow(self, *what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "_take", hang)
        with capture_logs() as logs:
            writer.append([HEAD, TICK], begins=True)
            for _ in range(20):
                writer.append([TICK], begins=False)
        assert [entry["reason"] for entry in logs] == ["the disk is too slow"]
        assert writer.resting
        os.write(write_end, b"x" * 30)
        writer.close()
    os.close(read_end)
    os.close(write_end)


def test_no_journal_where_none_is_wanted(tmp_path: Path) -> None:
    assert Writer.of(JournalBounds()) is None
    one, two = Writer.of(JournalBounds(tmp_path)), Writer.of(JournalBounds(tmp_path))
    assert one is not None
    assert two is not None
    assert one.name != two.name


def test_a_move_is_written_once_and_outlives_the_segments(tmp_path: Path) -> None:
    one, two = compact({"id": "m1"}), compact({"id": "m2"})
    writer = Writer(tmp_path, "w", Bounds(size_bytes=1500, segment_bytes=300))
    for moves in ([one], [one, two], []):
        writer.append([HEAD, TICK], begins=True, moves=moves)
    write(writer, 60)
    writer.close()
    another = Writer(tmp_path, "x", Bounds())
    another.append([HEAD, TICK], begins=True, moves=[two, compact({"id": "m3"})])
    another.close()
    lines = [line for line in move_lines(tmp_path) if line != b"\n"]
    assert [plain(line)["id"] for line in lines] == ["m1", "m2", "m3"]


def test_moves_have_two_files_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.journal.writer.MOVES_BYTES", 100)
    writer = Writer(tmp_path, "w", Bounds())
    for number in range(9):
        move = compact({"id": f"m{number}", "fill": "x" * 30})
        writer.append([HEAD, TICK], begins=True, moves=[move])
    writer.close()
    assert {path.name for path in tmp_path.glob("moves*")} <= {OLDER_MOVES, MOVES}
    kept = [plain(line)["id"] for line in move_lines(tmp_path) if line != b"\n"]
    assert kept == [f"m{number}" for number in range(9 - len(kept), 9)]
    assert 2 <= len(kept) <= 4


def test_what_a_full_disk_cut_off_is_written_anew(tmp_path: Path) -> None:
    one, two = compact({"id": "m1"}), compact({"id": "m2"})
    (tmp_path / MOVES).write_bytes(to_line(one)[:20])
    writer = Writer(tmp_path, "w", Bounds())
    writer.append([HEAD, TICK], begins=True, moves=[one, two])
    writer.close()
    written = [*move_lines(tmp_path)][-2:]
    assert [plain(line)["id"] for line in written] == ["m1", "m2"]


def test_a_move_that_could_not_be_written_is_tried_with_the_next(tmp_path: Path) -> None:
    one, two = compact({"id": "m1"}), compact({"id": "m2"})
    (tmp_path / MOVES).mkdir()
    writer = Writer(tmp_path, "w", Bounds())
    writer.append([HEAD, TICK], begins=True, moves=[one])
    writer.wait()
    assert not writer.failed  # the ticks go on
    (tmp_path / MOVES).rmdir()
    writer.append([HEAD, TICK], begins=True, moves=[one, two])
    writer.close()
    written = [plain(line)["id"] for line in move_lines(tmp_path) if line != b"\n"]
    assert written == ["m1", "m2"]
