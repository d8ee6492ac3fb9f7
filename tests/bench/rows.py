"""Keeps rows of JSON in a file, one a line, of which the last may have been cut off."""

import json
from pathlib import Path
from typing import Any


def read(file: Path) -> list[dict[str, Any]]:
    """Give the rows that are whole, and drop the rest so that more may be written."""
    if not file.exists():
        return []
    whole, newline, _ = file.read_text().rpartition("\n")
    file.write_text(whole + newline)
    return [json.loads(line) for line in whole.splitlines()]


def append(file: Path, row: dict[str, Any]) -> None:
    """Write one more row."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        stream.write(json.dumps(row) + "\n")
