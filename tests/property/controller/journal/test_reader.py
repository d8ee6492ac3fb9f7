"""Journals that were cut, mixed or damaged: nothing crashes, nothing whole is lost."""

import gzip
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.journal.lines import compact, to_line
from controller.journal.reader import Log
from controller.journal.record import FORMAT, TickRecord
from controller.journal.writer import Bounds
from controller.replay.playback import replay
from tests.recorded_world import record

TICKS = 6


@pytest.fixture(scope="module")
def recorded() -> Iterator[bytes]:
    folder = Path(tempfile.mkdtemp())
    record(folder, executors=5, ticks=range(TICKS), bounds=Bounds())
    (path,) = folder.iterdir()
    yield path.read_bytes()
    shutil.rmtree(folder)


@given(share=st.floats(0, 1), packed=st.booleans())
@settings(max_examples=40)
def test_a_log_that_ends_at_any_byte_is_replayed_up_to_there(
    recorded: bytes, share: float, packed: bool
) -> None:
    cut = int(share * len(recorded))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "20260101T000000-a-000000.jsonl"
        path.write_bytes(recorded[:cut])
        if packed:
            path = path.with_name(path.name + ".gz")
            path.write_bytes(gzip.compress(recorded[:cut]))
        log = Log.open([path])
        replayed = list(replay(log.ticks(0)))
    whole = recorded[:cut].count(b"\n")
    assert len(replayed) == max(whole - 1, 0)  # the head is a line of its own
    assert all(one.identical for one in replayed)
    # A file is there before its first line, but is packed only once it has one.
    is_cut_off = not recorded[:cut].endswith(b"\n") and (cut > 0 or packed)
    assert log.skipped["records cut off at the end"] == is_cut_off
    assert log.skipped["damaged records"] == 0


@given(share=st.floats(0, 1), bit=st.integers(0, 7), cuts=st.booleans())
@settings(max_examples=40)
def test_a_compressed_log_that_is_cut_or_damaged_gives_what_is_whole(
    recorded: bytes, share: float, bit: int, cuts: bool
) -> None:
    packed = gzip.compress(recorded, mtime=0)
    at = min(int(share * len(packed)), len(packed) - 1)
    damaged = packed[:at] + bytes([packed[at] ^ (1 << bit)]) + packed[at + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "20260101T000000-a-000000.jsonl.gz"
        path.write_bytes(packed[:at] if cuts else damaged)
        log = Log.open([path])
        ticks = [tick.record.seq for tick in log.ticks(0)]
    assert ticks == sorted(set(ticks))
    if cuts:
        assert ticks == list(range(1, len(ticks) + 1))
        assert log.skipped_texts() == ["1 records cut off at the end"]
    elif len(ticks) < TICKS:
        assert log.skipped_texts()


def test_every_byte_of_a_small_log() -> None:
    lines = [to_line(compact({"kind": "head", "format": FORMAT}))] + [
        to_line(tick(i)) for i in range(2)
    ]
    whole = b"".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "20260101T000000-a-000000.jsonl"
        for cut in range(len(whole) + 1):
            path.write_bytes(whole[:cut])
            found = [one.record.seq for one in Log.open([path]).ticks(0)]
            assert found == list(range(max(whole[:cut].count(b"\n") - 1, 0)))


@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=40)
def test_a_damaged_byte_costs_one_record(recorded: bytes, share: float, bit: int) -> None:
    at = int(share * len(recorded))
    damaged = recorded[:at] + bytes([recorded[at] ^ (1 << bit)]) + recorded[at + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "20260101T000000-a-000000.jsonl"
        path.write_bytes(damaged)
        log = Log.open([path])
        ticks = [tick.record.seq for tick in log.ticks(0)]
    in_head = at < recorded.index(b"\n") + 1
    # Where a line end is hit, two records have become one.
    assert in_head or len(ticks) in (TICKS - 1, TICKS - 2)
    assert ticks == sorted(set(ticks))
    assert log.skipped_texts()


def tick(seq: int, *, epoch: int | None = 0, time_s: float = 0.0) -> bytes:
    record = TickRecord(seq=seq, cluster="uuid", now_s=float(seq), time_s=time_s, epoch=epoch)
    return msgspec.json.encode(record)


@given(data=st.data())
@settings(max_examples=60)
def test_of_two_leaders_the_epochs_decide(data: st.DataObject) -> None:
    """However two leaders' ticks and segments interleave, none counts after the next epoch."""
    rows = data.draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20)), max_size=20))
    rows = sorted(rows, key=lambda row: row[1])
    handover = data.draw(st.integers(0, 20))
    began_s = min((at for who, at in rows if who == "b" and at >= handover), default=99)
    with tempfile.TemporaryDirectory() as folder:
        for who, epoch in (("a", 5), ("b", 6)):
            mine = [at for name, at in rows if name == who]
            cut = data.draw(st.integers(0, len(mine)))
            for number, part in enumerate((range(cut), range(cut, len(mine)))):
                lines = [to_line(compact({"kind": "head", "format": FORMAT}))]
                for seq in part:
                    # b waits without an epoch until the handover.
                    leads = epoch if who == "a" or mine[seq] >= handover else None
                    lines.append(to_line(tick(seq, epoch=leads, time_s=float(mine[seq]))))
                name = f"2026010{data.draw(st.integers(1, 9))}T000000-{who}-{number:06d}.jsonl"
                (Path(folder) / name).write_bytes(b"".join(lines))
        log = Log.open([Path(folder)])
        found = {
            log.writers[writer][0].writer: [
                (t.record.time_s, t.superseded) for t in log.ticks(writer)
            ]
            for writer in range(2)
        }
    assert found["a"] == [(float(at), at >= began_s) for who, at in rows if who == "a"]
    assert found["b"] == [(float(at), False) for who, at in rows if who == "b"]
    assert log.skipped["ticks missing"] == 0
