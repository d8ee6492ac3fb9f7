"""Parquet tables become the journal that the same CSV becomes."""

from importlib import import_module
from pathlib import Path

import pytest

from controller.journal.reader import Log
from controller.replay.recording import spans
from deploy.ingest.signs import IngestError
from deploy.ingest.tables import ingest, parquet_rows

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
