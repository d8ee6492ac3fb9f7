"""Keeps rows of JSON in a file, one a line, of which the last may have been cut off."""

import json
from pathlib import Path
from typing import Any


def read(file: Path) -> list[dict[str, Any]]:
    """Give the rows that are whole; none where there is no file."""
    return [json.loads(line) for line in _whole(file)]


def append(file: Path, row: dict[str, Any]) -> None:
    """Write one more row, in place of one that was cut off."""
    whole_bytes = sum(map(len, _whole(file)))
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.truncate(whole_bytes)
        stream.write(json.dumps(row).encode() + b"\n")


def _whole(file: Path) -> list[bytes]:
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [line for line in lines if line.endswith(b"\n")]
