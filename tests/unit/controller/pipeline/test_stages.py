"""Segments decoded one by one are the log, whatever is cut, damaged, or of two leaders."""

import ast
import dataclasses
import errno
import gzip
import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from controller.config import build
from controller.core.spaces import COLUMNS
from controller.errors import TuneError
from controller.ingest.world import WindowWorld
from controller.journal.lines import QUARANTINE_FILE, JournalError
from controller.journal.reader import Log
from controller.journal.writer import Bounds, pack
from controller.pipeline.engine import Job, Rows
from controller.pipeline.fold import Fold
from controller.pipeline.schemas import DECODED
from controller.pipeline.stages import Ticks, episodes, raw, runs, ticks
from controller.pipeline.ticks import in_order, spans_of
from controller.replay.recording import Span, spans
from controller.tune.choice import Objective
from controller.tune.space import ParameterSet, without_moves
from migration.model import NodeLoad
from tests.messages import replace
from tests.recorded_world import Recorded, record, with_heaps, with_meters, with_spouts
from tests.tuned_world import BEGIN_S, laid_out, outcomes_of, span

SMALL = Bounds(segment_bytes=20_000)


def decoded(tables: Path, *paths: Path) -> Ticks:
    engine = Fold(tables)
    return ticks(engine, raw(engine, list(map(str, paths))), lambda share: None)


def read_back(tables: Path, *paths: Path) -> list[Span]:
    engine, found = Fold(tables), episodes(decoded(tables, *paths))
    return [span for one in found for span in spans_of(engine.ticks(one, one.folders))]


def joined(found: Sequence[Span], name: str) -> list[object]:
    return list(np.concatenate([getattr(span, name) for span in found]).tolist())


def moved(found: Sequence[Span]) -> list[tuple[object, ...]]:
    """When which executor was elsewhere than before, and whose decision that was."""
    return [
        (span.time_s[shift.row], shift.executor, shift.worker, shift.own)
        for span in found
        for shift in span.shifts
    ]


@pytest.mark.parametrize("delay_ticks", [0, 3])
def test_segments_give_what_the_whole_log_gives(tmp_path: Path, delay_ticks: int) -> None:
    record(tmp_path / "log", ticks=range(40), bounds=SMALL, delay_ticks=delay_ticks)
    assert len(list((tmp_path / "log").iterdir())) > 4
    whole = list(spans(Log.open([tmp_path / "log"])))
    back = read_back(tmp_path / "tables", tmp_path / "log")
    assert len(back) > len(whole)
    for name in ("time_s", "span_s", "cpu_cores", "traffic_tps", "held"):
        assert joined(back, name) == joined(whole, name), name
    assert len(moved(whole)) > 3
    assert moved(back) == moved(whole)


def test_segments_give_the_room_that_the_whole_log_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = WindowWorld.seen

    def full(loads: Iterable[NodeLoad]) -> tuple[NodeLoad, ...]:
        return with_heaps(with_meters(loads))

    monkeypatch.setattr(
        WindowWorld, "seen", lambda world: replace(now := seen(world), loads=full(now.loads))
    )
    shared = {"worker.cpu.capacity": None}
    record(tmp_path / "log", ticks=range(40), bounds=SMALL, keys=shared)
    assert len(list((tmp_path / "log").iterdir())) > 4
    whole = list(spans(Log.open([tmp_path / "log"])))
    back = read_back(tmp_path / "tables", tmp_path / "log")
    assert len(back) > len(whole)
    for name in COLUMNS:
        found, known = (
            np.concatenate([span.room.spaces[name] for span in of]) for of in (back, whole)
        )
        assert np.array_equal(found, known)
    assert len(np.unique(whole[0].room.spaces["heap_live_bytes"])) > 30
    for name in ("other_cores", "other_peak_cores", "peak_tps"):
        found, known = (
            np.concatenate([getattr(span.room, name) for span in of]) for of in (back, whole)
        )
        assert np.array_equal(found, known), name
    assert whole[0].room.other_cores.min() > 0
    assert len(np.unique(whole[0].room.peak_tps)) > 2


def test_the_driver_reads_only_what_it_uses_of_a_segment(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(40), bounds=SMALL)
    asked: list[set[str]] = []

    class Noting(Fold):
        def rows(
            self,
            folders: Sequence[str],
            schema: pa.Schema,
            columns: Sequence[str] = (),
            **where: Any,
        ) -> pa.Table:
            found = super().rows(folders, schema, columns, **where)
            asked.append(set(found.column_names))
            return found

    engine = Noting(tmp_path / "tables")
    made = ticks(engine, raw(engine, [str(tmp_path / "log")]), lambda share: None)
    runs(engine, made)
    assert len(asked) == 3
    assert max(map(len, asked)) < len(DECODED.names) / 2
    assert not set.union(*asked) & {"cpu_cores", "traffic_tps", "layout", "moved"}
    # A name for each topology, not one for each of its segments.
    assert len({id(part.topology) for part in made.parts}) == 1 < len(made.parts)


def test_what_a_killed_process_was_making_goes_after_a_day(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(20), mode="advise")
    old, young = (
        tmp_path / "tables" / "ticks" / f"_{n}-segment=x" for n in ("0a1b2c3d", "1a1b2c3d")
    )
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_text("")
    os.utime(old, (0, 0))
    decoded(tmp_path / "tables", tmp_path / "log")
    assert (old.exists(), young.exists()) == (False, True)


def test_a_full_disk_is_one_sentence_and_what_is_whole_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "log", ticks=range(40), mode="advise", bounds=SMALL)
    write, tables = dataset.write_dataset, tmp_path / "tables"
    made: list[Path] = []

    def full(table: Any, folder: Path, **options: Any) -> None:
        if len(made) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(table, folder, **options)
        made.append(folder)

    with (
        monkeypatch.context() as patch,
        pytest.raises(TuneError, match="No space left on device"),
    ):
        patch.setattr(dataset, "write_dataset", full)
        decoded(tables, tmp_path / "log")
    whole = {path: path.stat().st_mtime_ns for path in tables.rglob("_SUCCESS")}
    assert len(whole) == 2
    assert not list(tables.rglob("_*-*"))
    decoded(tables, tmp_path / "log")
    assert all(path.stat().st_mtime_ns == at for path, at in whole.items())


def test_a_segment_may_be_packed_while_the_log_is_read(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(40), mode="advise", bounds=SMALL)
    engine = Fold(tmp_path / "tables")
    whole = sum(part.ticks for part in decoded(tmp_path / "whole", tmp_path / "log").parts)
    found, log = raw(engine, [str(tmp_path / "log")]), Log.open([tmp_path / "log"])
    *_, last = sorted((tmp_path / "log").glob("*.jsonl"))
    pack(last)
    assert not last.exists()
    assert sum(part.ticks for part in ticks(engine, found, lambda share: None).parts) == whole
    assert found.log.newest_head().format
    assert sum(len(span.time_s) for span in spans(log)) == whole


def test_a_name_may_be_none_for_a_folder(tmp_path: Path) -> None:
    """Arrow and Spark write letters beyond ASCII in different ways: no folder may have them."""
    one = span(20, [1], lambda tick: [(0, 1, 10.0)])
    long = dataclasses.replace(one.first, topology=f"{'拓' * 27}-1-1700000000")
    other = dataclasses.replace(one, first=dataclasses.replace(long, topology="拓-1-7"))
    engine, found = laid_out([dataclasses.replace(one, first=long), other], tmp_path)
    of = episodes(found)
    assert [(one.topology, one.ticks) for one in of] == [("拓-1-7", 20), (long.topology, 20)]
    for episode in of:
        (back,) = spans_of(engine.ticks(episode, episode.folders))
        assert (back.topology, len(back.time_s)) == (episode.topology, 20)
    (alone,) = episodes(found, "拓" * 27)
    assert alone.topology == long.topology
    folders = [path.name for path in tmp_path.glob("ticks/*/kind=tick/*")]
    assert len(folders) == 2
    assert all(re.fullmatch("folder=[0-9a-f]{64}", name) for name in folders)


def test_ticks_of_a_wrong_clock_are_left_out(tmp_path: Path) -> None:
    year_s = 366 * 86_400.0
    times_s = (3000.0, BEGIN_S - year_s, BEGIN_S, BEGIN_S + 86_400.0, BEGIN_S + 2 * year_s)
    load = [span(20, [1], lambda tick: [(0, 1, 10.0)], begin_s=time_s) for time_s in times_s]
    _, found = laid_out(load, tmp_path)
    day = int(BEGIN_S // 86_400)
    assert [(one.day, one.ticks) for one in episodes(found)] == [(day, 20), (day + 1, 20)]
    assert found.left_out == ("60 ticks of a clock that was wrong by a year or more",)


def test_ticks_of_a_segment_are_put_in_order_and_segments_stay() -> None:
    names = ["order_s", "writer", "number", "row"]
    rows = [
        (5.0, "b", 1, 2),
        (5.0, "b", 1, 0),
        (5.0, "b", 1, 1),
        (9.0, "a", 0, 1),
        (9.0, "a", 0, 0),
    ]
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    batches = table.to_batches(max_chunksize=2)
    found = [tuple(row.values()) for batch in in_order(batches) for row in batch.to_pylist()]
    assert found == [*sorted(rows[:3]), *sorted(rows[3:])]


def test_loads_of_ticks_are_read_by_numpy_alone(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(6))
    (span,) = read_back(tmp_path / "tables", tmp_path / "log")
    (file,) = (tmp_path / "tables").glob("ticks/*/kind=tick/*/*/*.parquet")
    table = parquet.ParquetFile(file).read()
    for name in ("cpu_cores", "traffic_tps"):
        values = [np.frombuffer(row, "<f4") for row in table[name].to_pylist()]
        assert np.array_equal(values, getattr(span, name))
        assert len(values[0])


def spouts_count(tick: int, run: Recorded) -> None:
    if tick == 0:
        seen = run.world.seen
        run.world.seen = lambda: replace(seen(), loads=with_spouts(seen().loads))  # type: ignore[method-assign]


def test_what_users_felt_is_that_of_the_ticks_in_which_executors_stood_so(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(30), mode="advise", bounds=SMALL, each=spouts_count)
    engine = Fold(tmp_path / "tables")
    of = episodes(decoded(tmp_path / "tables", tmp_path / "log"))
    (felt,) = [[span.ended for span in spans_of(engine.ticks(one, one.folders))] for one in of]
    # 500 tuples/s are acked, of which a twentieth is timed, and 2 tuples/s fail.
    assert np.concatenate([one.acked for one in felt]).tolist() == [2500.0] * 29
    assert np.concatenate([one.failed for one in felt]).tolist() == [10.0] * 29
    assert all(one.timed.sum() == 125 * len(one.timed) == one.timed[:, 22].sum() for one in felt)
    keys = build({}).keys
    sets = [ParameterSet((), build(keys)), without_moves(keys, ["wc-1"])]
    moving, idle = (one.chosen_by + one.held_back for one in outcomes_of(engine, of, sets))
    assert (idle.recorded_frac, idle.acked, idle.failed) == (1.0, 29 * 2500.0, 290.0)
    assert 40 < (idle.latency_p99_ms or 0.0) <= 48
    assert idle.failed_frac == pytest.approx(10 / 2510)
    # The first move of a replay ends what can be known of it.
    assert moving.moves > 0
    assert 0 < moving.recorded_frac < 1
    assert moving.acked == pytest.approx(moving.recorded_frac * idle.acked)
    assert sum(moving.timed) == pytest.approx(moving.recorded_frac * sum(idle.timed))


def test_of_two_leaders_the_later_epoch_counts(tmp_path: Path) -> None:
    record(tmp_path / "one", ticks=range(30), mode="advise", bounds=SMALL)
    record(tmp_path / "two", ticks=range(20, 40), name="two", epoch=1, mode="advise", bounds=SMALL)
    found = decoded(tmp_path / "tables", tmp_path / "one", tmp_path / "two")
    assert found.left_out == ("10 ticks of a leader that had lost its lead",)
    assert sum(part.ticks for part in found.parts) == 19 + 19


def test_a_controller_that_starts_later_changes_no_part_of_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    record(log / "a", ticks=range(20), mode="advise", bounds=SMALL)
    record(log / "b", ticks=range(14, 30), name="two", epoch=1, mode="advise", bounds=SMALL)
    before = decoded(tmp_path / "tables", log)
    assert before.left_out == ("6 ticks of a leader that had lost its lead",)
    record(log / "c", ticks=range(30, 40), name="three", epoch=2, mode="advise", bounds=SMALL)
    after = decoded(tmp_path / "tables", log)
    assert after.left_out == before.left_out
    assert set(before.folders) < set(after.folders)


def test_what_is_damaged_is_counted_once_and_the_rest_is_read(tmp_path: Path) -> None:
    record(tmp_path / "log", ticks=range(40), mode="advise", bounds=SMALL)
    whole = sum(part.ticks for part in decoded(tmp_path / "whole", tmp_path / "log").parts)
    segments = sorted((tmp_path / "log").iterdir())
    shutil.move(segments[2], tmp_path)
    lines = gzip.decompress(segments[4].read_bytes()).splitlines(keepends=True)
    lines[3] = lines[3].replace(b"wc-1", b"wc-2", 1)
    segments[4].write_bytes(gzip.compress(b"".join(lines)))
    segments[6].write_bytes(segments[6].read_bytes()[:-40])
    found = decoded(tmp_path / "tables", tmp_path / "log")
    said = {rule: count for count, rule in (line.split(" ", 1) for line in found.left_out)}
    assert said["segments missing"] == "1"
    assert said["damaged records"] == "1"
    assert said["records cut off at the end"] == "1"
    left = sum(part.ticks for part in found.parts)
    assert 20 < left < whole
    assert len(read_back(tmp_path / "tables", tmp_path / "log")) > 3


@pytest.mark.parametrize("order", ["monday tuesday", "tuesday monday", "."])
def test_of_two_copies_of_a_segment_the_whole_one_counts(tmp_path: Path, order: str) -> None:
    record(tmp_path / "tuesday", ticks=range(40), mode="advise")
    (whole,) = (tmp_path / "tuesday").iterdir()
    (tmp_path / "monday").mkdir()
    lines = whole.read_bytes().splitlines(keepends=True)
    (tmp_path / "monday" / whole.name).write_bytes(b"".join(lines[:6]))
    folders = [tmp_path / name for name in order.split()]
    assert [part.ticks for part in decoded(tmp_path / "tables", *folders).parts] == [39]
    assert sum(len(span.time_s) for span in spans(Log.open(folders))) == 39
    packed = tmp_path / "monday" / whole.name
    packed.write_bytes(whole.read_bytes())
    pack(packed)
    whole.write_bytes(whole.read_bytes()[:-10] + b"\n")
    assert [part.ticks for part in decoded(tmp_path / "packed", *folders).parts] == [39]


def test_a_packed_file_of_zeros_is_a_damaged_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "log", ticks=range(12), mode="advise")
    monkeypatch.setattr("controller.journal.reader.MOST_LINE_BYTES", 2**16)
    zeros = tmp_path / "log" / "20260101T000000-zeros-000000.jsonl.gz"
    zeros.write_bytes(gzip.compress(bytes(2**20)))
    found = decoded(tmp_path / "tables", tmp_path / "log")
    assert sum(part.ticks for part in found.parts) == 11
    # One of these lines is the end, which has no line end either.
    assert found.left_out == ("16 records cut off at the end",)


def test_what_is_whole_stays_and_the_rest_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "log", ticks=range(40), mode="advise", bounds=SMALL)
    tables, read = tmp_path / "tables", []
    first = decoded(tables, tmp_path / "log")
    (tables / first.folders[2] / "_SUCCESS").unlink()
    made = Fold._do

    def noted(engine: Fold, job: object, folder: Path) -> None:
        read.append(folder)
        made(engine, job, folder)  # type: ignore[arg-type]

    monkeypatch.setattr(Fold, "_do", noted)
    assert decoded(tables, tmp_path / "log") == first
    assert read == [tables / first.folders[2]]


def test_a_signal_ends_what_is_under_way(tmp_path: Path) -> None:
    """Ctrl-C was heard only once all sets had been tried."""
    schema, ended = pa.schema([("one", pa.int64())]), list[bool]()

    def work(before: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from before
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(100):
            time.sleep(0.01)
        ended.append(True)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            Fold(tmp_path).do([Job("folder", Rows((), schema), work, schema)], lambda job: None)
    finally:
        signal.signal(signal.SIGUSR1, usual)
    assert ended == []


def test_two_commands_may_make_the_same_part_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("one", pa.int64())])
    row = pa.RecordBatch.from_pylist([{"one": 1}], schema)

    def work(before: Iterable[pa.RecordBatch], others: int) -> Iterator[pa.RecordBatch]:
        yield row
        for _ in range(others):
            made(0)

    def made(others: int) -> None:
        job = Job("folder/part", Rows((), schema), partial(work, others=others), schema)
        monkeypatch.setattr(os, "getpid", lambda: others)
        Fold(tmp_path).do([job], lambda job: None)

    made(1)
    assert Fold(tmp_path).rows(["folder/part"], schema)["one"].to_pylist() == [1]
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["part"]


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    engine = Fold(tmp_path / "tables")
    with pytest.raises(JournalError, match="none: no such file or folder"):
        raw(engine, [str(tmp_path / "none")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(JournalError, match="empty: no journal segment"):
        raw(engine, [str(tmp_path / "empty")])
    record(tmp_path / "log", ticks=range(4))
    log = raw(engine, [str(tmp_path / "log")])
    damaged = tmp_path / "log" / QUARANTINE_FILE
    for content in (b"no list\n1\n", b"file,row,rule\n\xff\n"):
        damaged.write_bytes(content)
        with pytest.raises(JournalError, match=r"log/quarantine\.csv: no list of rows that were"):
            raw(engine, [str(tmp_path / "log")])
    damaged.unlink()
    link = tmp_path / "log" / "20260101T000000-x-000000.jsonl"
    link.symlink_to(tmp_path / "none")
    with pytest.raises(JournalError, match=f"{link.name}: No such file or directory"):
        raw(engine, [str(tmp_path / "log")])
    (tmp_path / "tables").write_text("a file")
    with pytest.raises(TuneError, match=r"tables/ticks/segment=.*: Not a directory"):
        ticks(engine, log, lambda share: None)


def test_the_example_of_a_notebook_runs_and_is_what_tune_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[4] / "docs" / "tuning.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    record(tmp_path / "journal", ticks=range(30), mode="advise")
    # What tables lacked, of which a journal was made.
    listed = "file,row,rule,value\nt.csv,7,row twice,5\n"
    (tmp_path / "journal" / QUARANTINE_FILE).write_text(listed)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    first, *printed, table = capsys.readouterr().out.splitlines()
    assert first == "left out: ('1 in quarantine.csv: row twice',)"
    sets = [ParameterSet((), build({"policy": policy})) for policy in ("gather", "otd")]
    engine = Fold(tmp_path / "again")
    of = episodes(decoded(tmp_path / "again", tmp_path / "journal"))
    outcomes = outcomes_of(engine, of, sets, {one.topology for one in of})
    assert printed == [
        f"{one.parameters.config.policy} {one.chosen_by.moves} {one.held_back.inter_node_frac}"
        for one in outcomes
    ]
    assert len(set(printed)) == 2
    assert all(one.chosen_by.moves > 0 for one in outcomes)
    rows = ast.literal_eval(table)
    assert [(row["settings"], row["held_back"]) for row in rows] == [
        (policy, late) for policy in ("gather", "otd") for late in (False, True)
    ]
    for one, row in zip(outcomes, rows[::2], strict=True):
        assert (row["moves"], row["cost"]) == (
            one.chosen_by.moves,
            Objective().cost(one.chosen_by),
        )
        assert tuple((each["what"], each["decisions"]) for each in row["bound"]) == (
            one.chosen_by.bound
        )
