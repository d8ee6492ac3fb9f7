"""Tables of other forms become the journal that the same CSV becomes."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from controller.ingest.signs import IngestError
from controller.ingest.tables import ingest, parquet_rows
from controller.journal.reader import Log
from controller.replay.recording import spans

ROWS = [(1000.0 + 5 * t, a, b, n) for t in range(4) for a, b, n in ((1, 2, 500), (2, 3, 50))]
COLUMNS = ("time_s", "source", "target", "tuples")


def test_an_edge_list_is_read_and_what_is_none_is_said(tmp_path: Path) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = tmp_path / "edges.parquet"
    parquet.write_table(
        arrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in ROWS]), table
    )
    assert [tuple(row.values()) for row in parquet_rows(table)] == ROWS
    said = ingest([table], tmp_path / "parquet", "t")
    assert f"{table}: 8 rows" in said
    lines = [",".join(map(str, row)) for row in ROWS]
    (tmp_path / "edges.csv").write_text("\n".join([",".join(COLUMNS), *lines, ""]))
    ingest([tmp_path / "edges.csv"], tmp_path / "csv", "t")
    (one,), (other,) = (spans(Log.open([tmp_path / name])) for name in ("parquet", "csv"))
    assert one.traffic_tps.tolist() == other.traffic_tps.tolist() == [[100, 10]] * 3
    assert one.time_s.tolist() == other.time_s.tolist()
    garbage = tmp_path / "garbage.parquet"
    garbage.write_text("no table at all")
    with pytest.raises(IngestError, match=r"garbage\.parquet"):
        ingest([garbage], tmp_path / "none", "t")


def test_what_prometheus_answers_is_a_table(tmp_path: Path) -> None:
    pairs = sorted({row[1:3] for row in ROWS})
    result = [
        {
            "metric": {"__name__": "sent", "source": str(source), "target": str(target)},
            "values": [[row[0], str(row[3])] for row in ROWS if row[1:3] == (source, target)],
        }
        for source, target in pairs
    ]
    used = [[1000 + 5 * tick, value] for tick, value in enumerate(("0.25", "0.25", "0.25", "NaN"))]
    cores = {"metric": {"executor": "2"}, "values": used}
    for name, series in (("edges", result), ("cpu", [cores])):
        answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
        (tmp_path / f"{name}.json").write_text(json.dumps(answer))
    files = [tmp_path / "edges.json", tmp_path / "cpu.json"]
    said = ingest(files, tmp_path / "journal", "t", 0.5)
    assert f"{files[0]}: 8 rows" in said
    # What Prometheus could not work out is left out.
    listed = (tmp_path / "journal" / "quarantine.csv").read_text()
    assert listed.splitlines()[1:] == [f"{files[1]},5,no number,NaN"]
    (span,) = spans(Log.open([tmp_path / "journal"]))
    assert span.traffic_tps.tolist() == [[100, 10]] * 3
    # The others handle 10 and 1 tuples where it handles 11.
    assert span.cpu_cores[-1].tolist() == pytest.approx([0.25 * 10 / 11, 0.25, 0.25 / 11])
    for text in ('{"status": "error"}', "no json"):
        files[0].write_text(text)
        with pytest.raises(IngestError, match=r"edges\.json: no answer of Prometheus to a range"):
            ingest(files, tmp_path / "none", "t")
