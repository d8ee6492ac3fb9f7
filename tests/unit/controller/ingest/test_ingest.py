"""Logs from elsewhere: what is read, what is assumed, and what is refused."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from controller.ingest.metrics_log import loads, samples
from controller.ingest.signs import IngestError, Sent, wrong_edges
from controller.ingest.tables import gathered, ingest
from controller.journal.reader import Log
from controller.replay.playback import replay
from controller.replay.recording import Span, spans
from tests.unit.controller.conftest import Nstorm

EDGES = "time_s,source,target,tuples\n" + "".join(
    f"{1000 + 5 * t},{a},{b},{n}\n"
    for t in range(5)
    for a, b, n in ((1, 2, 500), (1, 3, 250), (2, 3, 50))
)
PLACES = (
    "executor,worker,component,kind,capacity_cores\n"
    "1,a:6700,lines,spout,2\n2,b:6700,split,bolt,2\n3,b:6700,count,bolt,2\n"
)
CPU = "time_s,executor,cpu_cores\n1000,1,0.5\n1000,2,0.25\n1000,3,0.5\n1010,2,0.75\n"


def files(tmp_path: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(text)
    return paths


def measured(out: Path) -> Span:
    log = Log.open([out])
    assert all(one.identical for one in replay(log.ticks(0)))
    (span,) = spans(log)
    return span


def test_tables_become_a_journal(tmp_path: Path) -> None:
    said = ingest(
        files(tmp_path, edges=EDGES, places=PLACES, cpu=CPU), tmp_path / "out", "wordcount"
    )
    assert said[-1] == f"5 windows of 3 executors: {tmp_path / 'out'}"
    assert not any("assumed" in line or "taken" in line for line in said)
    span = measured(tmp_path / "out")
    assert span.topology == "wordcount"
    assert span.first.executors == ("1-1", "2-2", "3-3")
    assert span.first.component_of == ("lines", "split", "count")
    assert span.first.pinned == ("spout", None, None)
    assert [span.cluster.workers[w] for w in span.place] == ["a:6700", "b:6700", "b:6700"]
    assert span.cluster.capacity_cores.tolist() == [2.0, 2.0]
    pairs = list(zip(span.source.tolist(), span.target.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (1, 2)]
    assert span.traffic_tps.tolist() == [[100, 50, 10]] * 4
    assert span.cpu_cores[:, 0].tolist() == [0.5] * 4
    assert span.cpu_cores[:, 1].tolist() == [0.25, 0.75, 0.75, 0.75]
    assert span.time_s.tolist() == [1005, 1010, 1015, 1020]


def test_what_is_missing_is_assumed_and_said(tmp_path: Path) -> None:
    text = EDGES.replace(",1,", ",spout-a,").replace(",2,", ",split,").replace(",3,", ",count,")
    said = "\n".join(ingest(files(tmp_path, edges=text), tmp_path / "out", "t"))
    for words in (
        "3 executors (count, split, spout-a) without a placement",
        "3 executors (count, split, spout-a) without a component: each is taken as a component of",
        "no CPU",
        "1 core",
        "numbered in their natural order",
    ):
        assert words in said
    span = measured(tmp_path / "out")
    assert span.first.component_of == ("count", "split", "spout-a")
    # Half of three cores, shared out by tuples: 750, 550 and 300 of 1600.
    assert span.cpu_cores[0].sum() == pytest.approx(1.5)
    assert sorted(span.cpu_cores[0] / 1.5) == pytest.approx([300 / 1600, 550 / 1600, 750 / 1600])


def cpu_of(*rows: tuple[float, int]) -> str:
    """Give each of these executors 0.5 cores at these seconds."""
    return CPU.partition("\n")[0] + "\n" + "".join(f"{t},{e},0.5\n" for t, e in rows)


def test_cpu_that_is_not_known_is_said_and_is_not_0(tmp_path: Path) -> None:
    given = files(tmp_path, edges=EDGES, places=PLACES, cpu=cpu_of((1000, 1), (1000, 2)))
    said = "\n".join(ingest(given, tmp_path / "out", "t"))
    assert "no CPU is known of 1 executor (3), in up to 5 of 5 windows. Each is taken" in said
    # 1 and 2 handle 1,300 tuples with a core, and 3 handles 300.
    assert measured(tmp_path / "out").cpu_cores[:, 2] == pytest.approx([3 / 13] * 4)
    # Where they handle few, not more than the share of half of all capacity.
    given = files(tmp_path, edges=EDGES, places=PLACES, cpu=cpu_of((1000, 3)))
    ingest(given, tmp_path / "most", "t")
    assert measured(tmp_path / "most").cpu_cores[0, :2] == pytest.approx(
        [2 * 750 / 1600, 2 * 550 / 1600]
    )


def test_cpu_holds_for_a_while_and_not_for_ever(tmp_path: Path) -> None:
    edges = EDGES.partition("\n")[0] + "\n"
    edges += "".join(f"{1000 + 5 * t},1,2,100\n" for t in range(40))
    given = files(tmp_path, edges=edges, cpu=cpu_of((1050, 1), (1050, 2)))
    said = "\n".join(ingest(given, tmp_path / "out", "t"))
    # Ten windows before, and those more than 50 s later.
    assert "no CPU is known of 2 executors (1, 2), in up to 29 of 40 windows" in said
    # A tuple then needs what it did before.
    cores = measured(tmp_path / "out").cpu_cores.sum(axis=1)
    assert cores[-1] == pytest.approx(cores[12])


def test_tables_of_something_else_are_refused(tmp_path: Path) -> None:
    week_s = 7 * 86_400
    for at_s in (1000 + week_s, 1000 - 500):
        with pytest.raises(IngestError, match=f"no CPU is of the time of the edges, 995 .* {at_s}"):
            gathered(files(tmp_path, edges=EDGES, cpu=cpu_of((at_s, 1))))
    other = "executor,worker\nx1,a:6700\nx2,b:6700\n"
    with pytest.raises(IngestError, match=r"the placement \(x1, x2\) is in the edges \(1, 2, 3\)"):
        gathered(files(tmp_path, edges=EDGES, places=other))
    long = EDGES.partition("\n")[0] + "\n"
    long += "".join(f"{7200 * t},1,2,100\n" for t in range(1, 6))
    with pytest.raises(IngestError, match="windows have 7200 s, and a journal has none above 3600"):
        gathered(files(tmp_path, edges=long))


def spouts(said: list[str]) -> str:
    (line,) = [line for line in said if line.startswith("taken as spouts")]
    assert line.endswith("A column kind (spout or bolt) in the placement table comes first")
    return line.partition("to them: ")[2].partition(". ")[0]


def test_who_is_taken_for_a_spout_is_said(tmp_path: Path) -> None:
    assert spouts(ingest(files(tmp_path, edges=EDGES), tmp_path / "out", "t")) == "1"
    acked = EDGES + "1000,3,1,250\n"  # as from an acker
    assert spouts(ingest(files(tmp_path, edges=acked), tmp_path / "acked", "t")) == "none"
    # Where the table has it for some, only the others are guessed.
    places = PLACES.replace(",lines,spout,", ",lines,,")
    tables = files(tmp_path, edges=EDGES, places=places)
    assert spouts(ingest(tables, tmp_path / "some", "t")) == "lines"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "a table has the columns of one of: time_s, source, target, tuples; "),
        ("time_s,source,target,count\n1,a,b,3\n", "column tuples is missing"),
        ("executor,node\n1,a\n", "column worker is missing"),
        ("", "holds no rows"),
        ("time_s,source,target,tuples\n", "holds no rows"),
        ("time_s,source,target,tuples\n1,a,b,-3\n", "row 2: tuples must be a number of at least 0"),
        ("time_s,source,target,tuples\n1,a,b,nan\n", "row 2: tuples must be a number"),
        ("time_s,source,target,tuples\nx,a,b,3\n", "row 2: time_s must be a number"),
        ("time_s,source,target,tuples\n1,,b,3\n", "row 2: source is empty"),
        ("time_s,source,target,tuples\n1,a\n", "row 2: target is empty"),
        (PLACES, "no file holds traffic"),
        (PLACES + "1,b:6700,lines,spout,2\n", "row 5: worker is b:6700, but a:6700 in .* row 2"),
        (
            PLACES.replace("split,bolt", "split,blot"),
            "row 3: kind must be spout or bolt, is 'blot'",
        ),
        (PLACES + "4,c:6700,lines,bolt,2\n", "row 5: lines is a spout in .* row 2"),
        (PLACES.replace("spout,2", "spout,0"), "row 2: capacity_cores must be more than 0"),
        (PLACES.replace("spout,2", "spout,x"), "row 2: capacity_cores must be a number"),
        (
            PLACES.replace("bolt,2", "bolt,1e308"),
            r"row 3: capacity_cores must be a number of at least 0 and at most 10000, is '1e308'",
        ),
        (
            "time_s,source,target,tuples\n1,a,b,1e308\n",
            r"row 2: tuples must be a number of at least 0 and at most 1e\+12, is '1e308'",
        ),
        (
            PLACES.replace("count,bolt,2", "count,bolt,4"),
            "row 3: |row 4: capacity_cores is 4.0, but 2.0 in .* row 3",
        ),
        (
            "executor,worker,node\n1,a:6700,x\n2,b:6700,x\n",
            "row 3: there is another worker at x:6700",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_row(tmp_path: Path, text: str, message: str) -> None:
    tables = {"table": text}
    if text.startswith("executor,worker") and text != PLACES:
        tables["edges"] = EDGES
    with pytest.raises(IngestError, match=message):
        ingest(files(tmp_path, **tables), tmp_path / "out", "t")
    assert not (tmp_path / "out").exists()


def test_blanks_are_filled_in_and_ports_made_up_are_free(tmp_path: Path) -> None:
    places = "executor,worker,node,capacity_cores\n1,w1,n,2\n2,w1,,\n3,n:6700,,\n3,n:6700,n,\n"
    ingest(files(tmp_path, edges=EDGES, places=places), tmp_path / "out", "t")
    span = measured(tmp_path / "out")
    assert [span.cluster.workers[w] for w in span.place] == ["n:6701", "n:6701", "n:6700"]


def test_two_journals_are_two(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ingest(files(tmp_path, edges=EDGES), tmp_path / name, name)
    log = Log.open([tmp_path / "a", tmp_path / "b"])
    assert sorted(span.topology for span in spans(log)) == ["a", "b"]


def test_a_journal_is_not_written_over(tmp_path: Path) -> None:
    ingest(files(tmp_path, edges=EDGES), tmp_path / "out", "t")
    with pytest.raises(IngestError, match="holds a journal already"):
        ingest(files(tmp_path, edges=EDGES), tmp_path / "out", "t")


def test_a_missing_file_and_a_missing_library_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(IngestError, match="No such file"):
        ingest([tmp_path / "x.csv"], tmp_path / "out", "t")
    with pytest.raises(IngestError, match=r"x\.parquet: No such file"):
        ingest([tmp_path / "x.parquet"], tmp_path / "out", "t")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(IngestError, match=r"pip install .*\[replay\]"):
        ingest([tmp_path / "x.parquet"], tmp_path / "out", "t")
    (tmp_path / "x.log").write_text("hello\n")
    with pytest.raises(IngestError, match="neither a table"):
        ingest([tmp_path / "x.log"], tmp_path / "out", "t")


def logged(
    time_s: int, task: int, component: str, name: str, value: str, *, host: str = "node-a"
) -> str:
    # As LoggingMetricsConsumer of Storm 2.8.3 formats its lines.
    where = f"{host:>15}:{6700:<4}\t{task:3d}:{component:<11}"
    return f"2026-01-01 10:00:00 INFO  metrics [x] - {time_s}\t{where}\t{name:<23}\t{value}\n"


def test_storms_own_metrics_as_far_as_they_go(tmp_path: Path) -> None:
    lines = []
    for time_s in (1_700_000_000, 1_700_000_060, 1_700_000_120):
        lines += [
            logged(time_s, 1, "lines", "__transfer-count", "{default=300}"),
            logged(time_s, 2, "lines", "__transfer-count", "{default=100}"),
            logged(time_s, 3, "split", "__execute-count", "{lines:default=400}"),
            logged(time_s, 3, "split", "__capacity", "0.25"),
            logged(time_s, -1, "__system", "memory/heap", "{usedBytes=1}"),
            "garbage\n",
        ]
    path = tmp_path / "worker.log.metrics"
    path.write_text("".join(lines))
    said = "\n".join(ingest([path], tmp_path / "out", "t"))
    for words in ("does not count who sent to whom", "fields groupings", "__capacity"):
        assert words in said
    span = measured(tmp_path / "out")
    assert span.first.component_of == ("lines", "lines", "split")
    assert span.traffic_tps.tolist() == [[5.0, pytest.approx(5 / 3)]] * 2
    # Spouts have no capacity: they need for a tuple what the bolt does.
    assert span.cpu_cores[0].tolist() == [0.1875, 0.0625, 0.25]
    assert "no CPU is known of 2 executors (1, 2), in up to 3 of 3 windows" in said


T = 1_700_000_000


def test_a_metrics_log_is_assessed_by_two_commands(tmp_path: Path, nstorm: Nstorm) -> None:
    path, journal = tmp_path / "worker.log.metrics", tmp_path / "journal"
    path.write_text("".join(ticked([T, T + 60, T + 120], "node-a", 1, 3, 100, totals=False)))
    refused = nstorm("assess", str(path))
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.endswith("Of a metrics log or a table `nstorm ingest` makes a journal\n")
    made = nstorm("ingest", str(path), "--out", str(journal), "-o", "json")
    assert (made.code, made.err) == (0, "")
    found = json.loads(made.out)
    assert found["journal"] == str(journal)
    assert found["notes"][-1] == f"3 windows of 2 executors: {journal}"
    assessed = nstorm("assess", str(journal))
    assert assessed.code == 0
    assert "of 100 tuples/s" in assessed.out
    assert "see what `nstorm ingest` has assumed" in assessed.out


def test_graphite_names_count_totals() -> None:
    name = "storm.worker.wc-1.node_a.split.3.6700-__execute-count-lines:default"
    lines = [f"{name} {total} {at}" for at, total in ((T, 50), (T + 60, 110), (T + 120, 20))]
    lines.append(f"{name}.m1_rate 7.5 {T}")
    sender = "storm.worker.wc-1.node_a.lines.default.1.6700-__transfer-count-default"
    lines += [f"{sender} {total} {at}" for at, total in ((T, 9), (T + 60, 18), (T + 120, 18))]
    found = loads(samples(lines))
    # The first total has no beginning; the fall is a new worker's.
    assert found.edges == [(T + 60.0, "1", "3", 60.0), (T + 120.0, "1", "3", 20.0)]
    assert found.places["3"] == ("split", "node_a:6700")


def test_each_stream_has_a_total_of_its_own() -> None:
    lines = [
        logged(time_s, task, component, f"{name}{stream}", f"{total * (time_s - T + 600)}")
        for time_s in (T, T + 60)
        for task, component, name in (
            (1, "lines", "__transfer-count-"),
            (3, "split", "__execute-count-lines:"),
        )
        for stream, total in (("default", 5), ("late", 2))
    ]
    assert loads(samples(lines)).edges == [(T + 60.0, "1", "3", 420.0)]


def ticked(
    ticks_s: Iterable[float], host: str, spout: int, bolt: int, tps: float, *, totals: bool
) -> list[str]:
    """Log a worker with a spout and a bolt, of which either handles `tps`, at its own ticks."""
    lines, before_s, sums = [], None, 0
    for time_s in ticks_s:
        tuples = round(tps * (60 if before_s is None else time_s - before_s))
        before_s, sums = time_s, sums + tuples
        for task, component, name, stream in (
            (spout, "lines", "__transfer-count", "default"),
            (bolt, "split", "__execute-count", "lines:default"),
        ):
            count = (f"{name}-{stream}", str(sums)) if totals else (name, f"{{{stream}={tuples}}}")
            lines.append(logged(int(time_s), task, component, *count, host=host))
    return lines


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("late_s", [0, 1, 13, 29, 30, 31, 59])
def test_workers_may_tick_at_seconds_of_their_own(
    tmp_path: Path, late_s: int, totals: bool
) -> None:
    steady = [T + 60 * tick for tick in range(20)]
    chance = np.random.default_rng(late_s)
    # Each tick is a bit late, so that the second worker drifts by 2 s in 20 ticks.
    drifting = [T + late_s + 60.1 * tick + chance.uniform(0, 0.5) for tick in range(20)]
    path = tmp_path / "worker.log.metrics"
    path.write_text(
        "".join(
            ticked(steady, "node-a", 1, 3, 120, totals=totals)
            + ticked(drifting, "node-b", 2, 4, 80, totals=totals)
        )
    )
    said = "\n".join(ingest([path], tmp_path / "out", "t"))
    assert "windows of 60 s" in said
    assert "no traffic is known" not in said
    span = measured(tmp_path / "out")
    assert len(span.time_s) >= (17 if totals else 18)
    assert span.traffic_tps.sum(axis=1) == pytest.approx(200, rel=0.03)
    # Either spout sends to both bolts by what it sends in all, and either bolt gets its own.
    assert span.traffic_tps == pytest.approx(
        np.tile([120 * 0.6, 80 * 0.6, 120 * 0.4, 80 * 0.4], (len(span.time_s), 1)), rel=0.04
    )


@pytest.mark.parametrize("late_s", [0, 1, 30, 59])
def test_no_tuple_is_gained_or_lost_between_windows(late_s: int) -> None:
    """Loads change from tick to tick, and ticks are missing here and there."""
    chance = np.random.default_rng(late_s)
    lines, whole = [], 0
    for sender, task, first_s in ((1, 3, T), (2, 4, T + late_s)):
        for tick in range(200):
            if chance.random() < 0.05:
                continue
            tuples = int(chance.poisson(400) * chance.choice([0, 1, 10]))
            at = first_s + 60 * tick + int(chance.integers(-2, 3))
            lines.append(
                logged(at, task, "split", "__execute-count", f"{{lines:default={tuples}}}")
            )
            lines.append(logged(at, sender, "lines", "__transfer-count", f"{{default={tuples}}}"))
            whole += tuples
    found = loads(samples(lines))
    assert sum(edge[3] for edge in found.edges) + found.cut_tuples == pytest.approx(whole)
    assert found.cut_tuples < whole / 50
    assert set(np.diff(sorted({edge[0] for edge in found.edges}))) <= {60.0, 120.0, 180.0}


def test_cores_are_of_the_window_that_has_most_of_the_sample() -> None:
    lines = [
        logged(T + late_s + 60 * tick, task, "split", "__capacity", f"0.{tick + 1}")
        for task, late_s in ((3, 0), (4, 1), (5, 59))
        for tick in range(3)
    ]
    found = loads(samples(lines)).cpu
    for task, first in (("3", 0), ("4", 0), ("5", 1)):
        times_s = [row[0] for row in found if row[1] == task]
        assert times_s == [T + 60.0 * (first + tick) for tick in range(3)]


def test_a_clock_that_was_wrong_makes_no_windows_up_to_now() -> None:
    right = [T + 60 * tick for tick in range(10)]
    lines = ticked([T - 6_000_000, *right], "node-a", 1, 3, 100, totals=True)
    found = loads(samples(lines))
    assert len(found.edges) < 30  # of 100 000 windows
    assert [edge[3] for edge in found.edges] == pytest.approx([6000] * len(found.edges))
    assert found.times_s == [T - 6_000_000, *right]


def test_an_idle_topology_is_no_gap(tmp_path: Path) -> None:
    lines: list[str] = []
    for tick in range(29):
        tps = 0 if 10 <= tick < 25 else 100
        lines += ticked([T + 60 * tick], "node-a", 1, 3, tps, totals=False)
    path = tmp_path / "worker.log.metrics"
    path.write_text("".join(lines))
    said = "\n".join(ingest([path], tmp_path / "out", "t"))
    assert "no traffic is known" not in said
    # The first window has nothing before it.
    rates = measured(tmp_path / "out").traffic_tps
    assert rates.ravel().tolist() == [100.0] * 9 + [0.0] * 15 + [100.0] * 4


def two_workers() -> list[str]:
    lines = [
        line
        for late_s, tasks, tps in ((0, (1, 3), 120), (30, (2, 4), 80))
        for line in ticked(
            [T + late_s + 60 * tick for tick in range(20)], "node-a", *tasks, tps, totals=True
        )
    ]
    return sorted(lines, key=lambda line: line.partition(" - ")[2])


def written(folder: Path, *logs: list[str]) -> list[Path]:
    paths = [folder / f"worker.log.metrics.{at}" for at in range(len(logs))]
    for path, lines in zip(paths, logs, strict=True):
        path.write_text("".join(lines))
    return paths


@pytest.mark.parametrize("kind", ["consumers", "components", "rotated", "twice"])
def test_the_logs_of_a_run_are_one(tmp_path: Path, kind: str) -> None:
    lines = two_workers()
    by_chance = np.random.default_rng(1).random(len(lines)) < 0.5
    first = {
        "consumers": [line for line, here in zip(lines, by_chance, strict=True) if here],
        "components": [line for line in lines if ":lines" in line.split("\t")[2]],
        "rotated": lines[: len(lines) // 2],
        "twice": lines,
    }[kind]
    assert len(first) > len(lines) / 4
    second = lines if kind == "twice" else [line for line in lines if line not in first]
    whole = gathered(written(tmp_path, lines))
    split = gathered(written(tmp_path, first, second))
    assert split.edges == whole.edges
    assert split.times_s == whole.times_s
    assert split.places.keys() == whole.places.keys()


def test_tuples_from_a_component_that_no_log_has_are_counted(tmp_path: Path) -> None:
    lines = two_workers()
    for at in (T, T + 60, T + 120):
        for source, tuples in (("late", 70), ("__acker", 9)):
            count = f"{{{source}:default={tuples}}}"
            lines.append(logged(at, 3, "split", "__execute-count", count))
    (line,) = (line for line in gathered(written(tmp_path, lines)).said if "came from" in line)
    assert "210 tuples are left out: they came from late, of which no log has a task" in line
    alone = [line for line in lines if ":split" in line]
    with pytest.raises(IngestError, match="they came from late, lines, of which no log has a task"):
        gathered(written(tmp_path, alone))


Row = tuple[float, int, int, float]


def measured_rows(seed: int = 0, windows: int = 60) -> list[Row]:
    """Give rows of six pairs in windows of 5 s, their counts by chance."""
    chance = np.random.default_rng(seed)
    pairs = [(source, target) for source in (1, 2) for target in (3, 4, 5)]
    return [
        (1_700_000_000.0 + 5 * window, *pair, float(chance.poisson(400)))
        for window in range(windows)
        for pair in pairs
    ]


def table(rows: list[Row]) -> str:
    return "time_s,source,target,tuples\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def jittered(rows: list[Row]) -> list[Row]:
    chance = np.random.default_rng(1)
    return [(t + float(chance.uniform(-0.4, 0.4)), a, b, tuples) for t, a, b, tuples in rows]


def totals(rows: list[Row]) -> list[Row]:
    made: list[Row] = []
    sums: dict[tuple[int, int], float] = {}
    for time_s, source, target, tuples in rows:
        sums[source, target] = sums.get((source, target), 1e6) + tuples
        made.append((time_s, source, target, sums[source, target]))
    return made


DIRTY = {
    "jitter": (jittered, "All rows of a window need the same time_s"),
    "ms": (lambda rows: [(1000 * t, *rest) for t, *rest in rows], "row 2: time_s must be Unix"),
    "twice": (lambda rows: [row for row in rows for _ in range(2)], "row 3: is the same as"),
    "totals": (totals, "not a total that goes on"),
    "clock": (
        lambda rows: [
            (t - 3600 * (at >= len(rows) // 2), *rest) for at, (t, *rest) in enumerate(rows)
        ],
        "time_s of row 182 is 3595 s before the row before of the same pair",
    ),
}


@pytest.mark.parametrize("kind", DIRTY)
def test_what_is_wrong_by_a_sure_sign_is_refused(tmp_path: Path, kind: str) -> None:
    spoil, message = DIRTY[kind]
    with pytest.raises(IngestError, match=message):
        ingest(files(tmp_path, edges=table(spoil(measured_rows()))), tmp_path / "out", "t")


def test_tables_that_are_right_alone_are_refused_where_their_times_are_apart(
    tmp_path: Path,
) -> None:
    one = measured_rows()
    other = [(t + 0.1, a + 10, b + 10, tuples) for t, a, b, tuples in one]
    apart = files(tmp_path, one=table(one), other=table(other))
    for path in apart:
        gathered([path])
    with pytest.raises(IngestError, match="the tables together: 60 of 119 windows are shorter"):
        gathered(apart)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1000,1,14.9\n1005,1,15.2\n", "row 2: cpu_cores is 14.9, and an executor is one thread"),
        ("1700000000000,1,0.5\n", "row 2: time_s must be Unix seconds"),
        ("1000,1,0.5\n1000,1,0.4\n", "row 3: has the time and executor of row 2"),
    ],
)
def test_cpu_that_cannot_be_is_refused(tmp_path: Path, rows: str, message: str) -> None:
    cpu = "time_s,executor,cpu_cores\n" + rows
    with pytest.raises(IngestError, match=message):
        ingest(files(tmp_path, edges=EDGES, cpu=cpu), tmp_path / "out", "t")


def test_a_gap_is_said_and_is_not_a_window_without_traffic(tmp_path: Path) -> None:
    rows = measured_rows(windows=20)
    gap = [row for row in rows if not 10 <= (row[0] - 1_700_000_000) / 5 < 15]
    late = [(t + 600 * (t >= 1_700_000_075), a, b, tuples) for t, a, b, tuples in gap]
    said = ingest(files(tmp_path, edges=table(late)), tmp_path / "out", "t")
    assert (
        "no traffic is known for 630 s before 1700000675, where windows have 5 s: taken to be as "
        "in the window after it"
    ) in said
    rates = measured(tmp_path / "out").traffic_tps
    assert rates.min() > 50  # of 80


def test_nothing_is_refused_where_nothing_is_wrong() -> None:
    for seed in range(100):
        chance = np.random.default_rng(seed)
        rows = measured_rows(seed, windows=int(chance.integers(2, 40)))
        kept = [row for row in rows if chance.random() > chance.choice([0.0, 0.5])]
        if seed % 3 == 0:
            chance.shuffle(kept)
        sent = [Sent(at, t, str(a), str(b), n) for at, (t, a, b, n) in enumerate(kept)]
        assert wrong_edges(sent) == ([], [])


@pytest.mark.parametrize("name", ["split", "src spout", "bölt 中文", "a/b:c,d=e", "{x=1}"])
def test_ids_of_any_letters_are_read(name: str) -> None:
    (one,) = samples(
        [logged(1_700_000_000, 7, name, "__execute-count", "{" + name + ":default=100}")]
    )
    assert (one.component, one.source, one.value) == (name, name, 100.0)
    both = "{" + name + ":default=1.0E7, two:default=3}"
    first, second = samples([logged(1_700_000_000, 7, "b", "__execute-count", both)])
    assert [(first.source, first.value), (second.source, second.value)] == [(name, 1e7), ("two", 3)]


def test_a_log_without_counts_names_the_key_that_is_missing(tmp_path: Path) -> None:
    """A stock Storm 2.8 gives metrics consumers what users registered, and no counts."""
    path = tmp_path / "worker.log.metrics"
    path.write_text(logged(1_700_000_000, 23, "met", "f-v1", "14"))
    message = r"has metrics \(f-v1\) and no counts .* topology.enable.v2.metrics.tick is true"
    with pytest.raises(IngestError, match=message):
        ingest([path], tmp_path / "out", "t")
