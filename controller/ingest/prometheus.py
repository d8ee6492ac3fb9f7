"""Reads what Prometheus answers to a range query, as it was saved: a table of its own form."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from controller.ingest.signs import IngestError


class _Series(Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(Struct):
    result: list[_Series]


class _Answer(Struct):
    data: _Data


def prometheus_rows(path: Path) -> list[dict[str, Any]]:
    """Give a row for each sample, in order of time, with its labels as columns.

    The value is `tuples` where the labels name a source, and `cpu_cores` where they do not. Raises
    `IngestError` where the file is no such answer.
    """
    try:
        answer = msgspec.json.decode(path.read_bytes(), type=_Answer)
    except msgspec.MsgspecError as error:
        raise IngestError(f"{path}: no answer of Prometheus to a range query: {error}") from error
    rows = [
        {**series.metric, "time_s": time_s, _value(series.metric): value}
        for series in answer.data.result
        for time_s, value in series.values
    ]
    return sorted(rows, key=lambda row: row["time_s"])


def _value(labels: dict[str, str]) -> str:
    return "tuples" if "source" in labels else "cpu_cores"
