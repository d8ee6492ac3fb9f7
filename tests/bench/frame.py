"""What all benches share: turns, the machine's load, tables, and a file of finished rounds."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.table import Table

from controller.errors import CommandError

T = TypeVar("T")


def in_turn(sides: Iterable[T], number: int) -> list[T]:
    """Order the sides of a round, A B in the first and B A in the next.

    What changes slowly on the machine is then the same for all sides.
    """
    ordered = list(sides)
    return ordered if number % 2 else ordered[::-1]


def load_average() -> float:
    """Give the load of the machine, the average of a minute."""
    return round(os.getloadavg()[0], 1)


def ratio_text(found: Mapping[str, float | None] | None) -> str:
    """Show a ratio with its interval, where a report has one."""
    if found is None or found["ratio"] is None:
        return "-"
    low, high = found.get("low"), found.get("high")
    known = low is not None and high is not None
    return f"{found['ratio']:.3f}" + (f" [{low:.3f}, {high:.3f}]" if known else "")


def table(title: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Make a table of rows that all have the keys of the first."""
    made = Table(*(rows[0] if rows else ()), title=title)
    for row in rows:
        made.add_row(*map(_cell, row.values()))
    return made


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} {_cell(part)}" for key, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


class Kept:
    """The file of one benchmark: its set-up, then a row for each finished piece.

    Parameters
    ----------
    setup : mapping
        What all rounds have in common, ready for JSON.

    Raises
    ------
    CommandError
        When there are rounds and `resume` is not set, or none and it is.
    """

    def __init__(self, file: Path, setup: Mapping[str, Any], *, resume: bool) -> None:
        self._file = file
        if file.exists() and not resume:
            raise CommandError(
                f"{file} has finished rounds: go on with them by --resume, or remove it"
            )
        # As JSON gives it back.
        self._setup = json.loads(json.dumps(setup))
        stored = read(file)
        if resume and not stored:
            raise CommandError(f"--resume: {file} has no finished round: leave --resume out")
        self._has_setup = bool(stored)
        self._of_rounds = stored[0].get("setup", {}) if stored else self._setup
        self.rows = stored[1:]

    def refuse_another_set_up(self) -> None:
        """Refuse to add to rounds that new ones could not be compared with."""
        other = {
            key: self._of_rounds.get(key)
            for key in self._setup
            if self._setup[key] != self._of_rounds.get(key)
        }
        if other:
            raise CommandError(
                f"{self._file} has rounds of another set-up, {other}: ask the same, or remove it"
            )

    def append(self, row: dict[str, Any]) -> None:
        """Write a finished piece down."""
        if not self._has_setup:
            append(self._file, {"setup": self._setup})
            self._has_setup = True
        self.rows.append(row)
        append(self._file, row)


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
