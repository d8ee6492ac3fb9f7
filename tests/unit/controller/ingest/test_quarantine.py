"""Dirty tables: named or in quarantine, and clean ones as they are."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.ingest.signs import IngestError
from controller.ingest.tables import Tables, gathered, ingest
from controller.pipeline.fold import Fold
from controller.pipeline.stages import raw, ticks

BEGIN_S, STEP_S = 1_700_000_000, 5
PAIRS = [(source, target) for source in (1, 2) for target in (3, 4, 5)]
Rows = list[list[float]]
Chance = np.random.Generator


def edges(chance: Chance, windows: int) -> Rows:
    return [
        [BEGIN_S + STEP_S * window, *pair, float(chance.poisson(400))]
        for window in range(windows)
        for pair in PAIRS
    ]


def level(chance: Chance, done: float) -> float:
    return 400


def rising(chance: Chance, done: float) -> float:
    return float(4000 * 30**done)


def falling(chance: Chance, done: float) -> float:
    return float(4000 * 30**-done)


LOADS: list[Callable[[Chance, float], float]] = [level, rising, falling]


def clean_edges(chance: Chance, windows: int, seed: int) -> Rows:
    """Make a load that stays, rises or falls; smooth ones as well, of streams, and as it changes.

    A part of the rows is missing where a load has so few tuples.
    """
    load = LOADS[seed % 3]
    times_s = STEP_S * np.arange(windows)
    if seed % 5 == 1:  # windows become longer
        times_s[windows // 2 :] += 12 * STEP_S * np.arange(1, windows - windows // 2 + 1)
    found: Rows = []
    for at, time_s in enumerate(times_s.tolist()):
        for pair in PAIRS:
            mean = load(chance, at / windows)
            tuples = round(mean) if seed % 2 else int(chance.poisson(mean))
            streams = 2 if seed % 7 == 1 and seed % 2 and load is level else 1
            found += [[BEGIN_S + time_s, *pair, tuples]] * streams
    return [row for row in found if chance.random() > seed % 4 / 5]


def cpu(chance: Chance, windows: int) -> Rows:
    return [
        [BEGIN_S + STEP_S * window, executor, round(float(chance.uniform(0.01, 1.05)), 4)]
        for window in range(windows)
        for executor in range(1, 6)
    ]


def written(folder: Path, edge_rows: Rows, cpu_rows: Rows) -> list[Path]:
    found = []
    tables = (
        ("edges", "time_s,source,target,tuples", edge_rows),
        ("cpu", "time_s,executor,cpu_cores", cpu_rows),
    )
    for name, head, rows in tables:
        found.append(folder / f"{name}.csv")
        lines = (",".join(f"{cell:.14g}" for cell in row) for row in rows)
        found[-1].write_text("\n".join([head, *lines, ""]))
    return found


def jitter(rows: Rows, chance: Chance) -> Rows:
    return [[row[0] + chance.uniform(-0.4, 0.4), *row[1:]] for row in rows]


def milliseconds(rows: Rows, chance: Chance) -> Rows:
    share = chance.choice([0.002, 0.3, 1.0])
    spoilt = {0, *np.flatnonzero(chance.random(len(rows)) < share).tolist()}
    return [[row[0] * (1000 if at in spoilt else 1), *row[1:]] for at, row in enumerate(rows)]


def twice(rows: Rows, chance: Chance) -> Rows:
    share = chance.choice([0.002, 0.3, 1.0])
    spoilt = {0, *np.flatnonzero(chance.random(len(rows)) < share).tolist()}
    return [row for at, one in enumerate(rows) for row in [one] * (1 + (at in spoilt))]


def totals(rows: Rows, chance: Chance) -> Rows:
    begin = float(chance.integers(0, 10**6))
    sums = dict.fromkeys(PAIRS, begin)
    made = []
    for time_s, source, target, tuples in rows:
        sums[int(source), int(target)] += tuples
        made.append([time_s, source, target, sums[int(source), int(target)]])
    return made


def hour_back(rows: Rows, chance: Chance) -> Rows:
    at = len(PAIRS) * int(chance.integers(1, len(rows) // len(PAIRS)))
    return [[row[0] - 3600 * (i >= at), *row[1:]] for i, row in enumerate(rows)]


def gap(rows: Rows, chance: Chance) -> Rows:
    at = len(PAIRS) * int(chance.integers(2, len(rows) // len(PAIRS)))
    late_s = STEP_S * int(chance.integers(11, 500))
    return [[row[0] + late_s * (i >= at), *row[1:]] for i, row in enumerate(rows)]


def per_cent(rows: Rows, chance: Chance) -> Rows:
    spoilt = chance.integers(1, 6) if chance.random() < 0.5 else 0
    return [[*row[:2], row[2] * (100 if spoilt in (0, row[1]) else 1)] for row in rows]


OF_EDGES: dict[str, tuple[Callable[[Rows, Chance], Rows], str]] = {
    "jitter": (jitter, "All rows of a window need the same time_s"),
    "milliseconds": (milliseconds, "looks like ms or less"),
    "twice": (twice, "is the same as row"),
    "totals": (totals, "not a total that goes on"),
    "hour back": (hour_back, "whose clock was set back"),
    "gap": (gap, "no traffic is known for"),
}


def read(files: list[Path]) -> tuple[str, Tables | None]:
    try:
        found = gathered(files)
    except IngestError as error:
        return str(error), None
    return "\n".join(found.said), found


@pytest.mark.parametrize("kind", [*OF_EDGES, "per cent"])
@pytest.mark.parametrize("seed", range(7))
def test_no_dirty_table_is_taken_silently(tmp_path: Path, kind: str, seed: int) -> None:
    chance = np.random.default_rng(seed)
    windows = int(chance.integers(20, 80))
    clean, used = edges(chance, windows), cpu(chance, windows)
    if kind == "per cent":
        files, sign = written(tmp_path, clean, per_cent(used, chance)), "is it in per cent?"
    else:
        spoil, sign = OF_EDGES[kind]
        files = written(tmp_path, spoil(clean, chance), used)
    said, found = read(files)
    assert sign in said
    if found is not None and kind not in ("gap", "totals"):
        # What is taken is what was there before, but for the rows that are listed.
        out = len(found.quarantine.rows)
        assert 0 < out <= 0.02 * len(clean)
        left = {(row[0], str(int(row[1])), str(int(row[2])), row[3]) for row in clean}
        assert set(found.edges) <= left
        assert len(found.edges) >= len(clean) - out


def test_nothing_is_in_quarantine_where_nothing_is_wrong(tmp_path: Path) -> None:
    for seed in range(200):
        chance = np.random.default_rng(seed)
        windows = int(chance.integers(2, 60))
        kept = clean_edges(chance, windows, seed)
        found = gathered(written(tmp_path, kept, cpu(chance, windows)))
        assert found.quarantine.rows == []
        assert len(found.edges) == len(kept)


@pytest.mark.parametrize("begin", [0, 10**6])
def test_a_total_that_may_be_a_load_is_named_and_any_other_is_refused(
    tmp_path: Path, begin: int
) -> None:
    chance = np.random.default_rng(1)

    def table(step_s: int) -> list[Path]:
        sums = begin + np.cumsum(chance.poisson(400, 50))
        rows = [[BEGIN_S + step_s * at, 1, 2, float(one)] for at, one in enumerate(sums)]
        return written(tmp_path, rows, cpu(chance, 50))

    with pytest.raises(IngestError, match="49 of 49 steps: it must be the count of each window"):
        gathered(table(1800))
    said, found = read(table(5))
    assert "not a total that goes on" in said
    assert (found is None) == (begin > 0)
    assert found is None or "in 49 of 49 steps: taken as a load that rises" in said


def test_rows_of_two_streams_are_not_the_same_row(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    rows = [[*row, stream] for row in edges(chance, 20) for stream in (1, 2)]
    lines = ["time_s,source,target,tuples,stream", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "edges.csv").write_text("\n".join([*lines, ""]))
    found = gathered([tmp_path / "edges.csv"])
    assert found.quarantine.rows == []
    assert len(found.edges) == len(rows)
    assert not any("added up" in line for line in found.said)


def test_what_is_left_out_is_a_table_and_is_counted_in_every_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(3)
    rows = [list(row) for row in edges(chance, 60)]
    rows[7][0] *= 1000
    rows[9][3] = -1.0
    rows.insert(20, rows[19])
    files = written(tmp_path, rows, cpu(chance, 60))
    # The archive of a controller has no pyarrow.
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(IngestError, match=r"leaves out 3 of 361 rows, and .* a share of 0.005"):
        ingest(files, tmp_path / "refused", "t", 0.005)
    assert not (tmp_path / "refused").exists()
    said = ingest(files, tmp_path / "out", "t")
    table = tmp_path / "out" / "quarantine.csv"
    assert f"left out: 3 rows, listed in {table}" in said
    listed = list(csv.DictReader(table.read_text().splitlines()))
    assert sorted(listed, key=lambda row: int(row["row"])) == [
        {"file": str(files[0]), "row": str(row), "rule": rule, "value": value}
        for row, rule, value in (
            (9, "time not in seconds", "1700000005000"),
            (11, "no number", "-1"),
            (22, "row twice", f"{rows[19][3]:g}"),
        )
    ]
    monkeypatch.undo()
    engine = Fold(tmp_path / "tables")
    journal = [str(tmp_path / "out")]
    assert ticks(engine, raw(engine, journal), lambda share: None).left_out == (
        "1 in quarantine.csv: no number",
        "1 in quarantine.csv: row twice",
        "1 in quarantine.csv: time not in seconds",
    )
    for command in (["replay"], ["replay", "--policy", "otd"]):
        result = CliRunner().invoke(app, [*command, *journal])
        assert "skipped: 1 in quarantine.csv: row twice" in result.stdout


def test_a_whole_file_is_left_out_only_where_that_is_allowed(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    rows, used = edges(chance, 30), cpu(chance, 30)
    files = written(tmp_path, rows, [[*row[:2], 100 * row[2]] for row in used])
    with pytest.raises(IngestError, match=r"cpu_cores of 1 is above 1.5 .* out 150 of 150 rows"):
        gathered(files)
    found = gathered(files, 1.0)
    assert found.cpu == []
    assert len(found.edges) == len(rows)
    (whole,) = [one for _, one in found.quarantine.rows if one.row is None]
    assert (whole.rule, whole.value) == ("thread above a core", "")
    assert found.quarantine.count == 150


def test_rows_of_executors_that_no_placement_has_are_left_out(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    rows, used = edges(chance, 100), cpu(chance, 100)
    rows[7][2] = used[9][1] = 9.0
    tables = written(tmp_path, rows, used)
    place = tmp_path / "place.csv"
    place.write_text("executor,worker\n" + "".join(f"{one},w{one}:6700\n" for one in range(1, 6)))
    found = gathered([*tables, place])
    assert [(one.row, one.rule, one.value) for _, one in found.quarantine.rows] == [
        (9, "not in the placement", "9"),
        (11, "not in the placement", "9"),
    ]
    assert (len(found.edges), len(found.cpu)) == (len(rows) - 1, len(used) - 1)
    # A placement of a part is none of all, as no placement is.
    place.write_text("executor,worker\n1,w1:6700\n")
    for given in ([*tables, place], tables):
        found = gathered(given)
        assert found.quarantine.rows == []
        assert (len(found.edges), len(found.cpu)) == (len(rows), len(used))


def test_a_gap_is_counted_in_reports(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    tables = written(tmp_path, gap(edges(chance, 40), chance), cpu(chance, 40))
    said = ingest(tables, tmp_path / "out", "t")
    table = tmp_path / "out" / "quarantine.csv"
    assert f"gaps, listed in {table}" in said
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert (row["file"], row["row"], row["rule"]) == (str(tables[0]), "", "gap")
    engine = Fold(tmp_path / "tables")
    log = raw(engine, [str(tmp_path / "out")])
    assert log.lacks == ("1 in quarantine.csv: gap",)


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path, below: str) -> None:
    chance = np.random.default_rng(0)
    rows = edges(chance, 100)
    rows[7][3] = -1.0
    tables = written(tmp_path, rows, cpu(chance, 100))
    out = tmp_path / "out" / below
    (tmp_path / "out").write_text("")
    with pytest.raises(IngestError, match=f"^{out}: (File exists|Not a directory)$"):
        ingest(tables, out, "t")
