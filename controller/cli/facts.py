"""Prints answers of a leader or a journal: one fact as a line, many of a kind as a table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from controller.console import Console
from controller.core.hostnames import shown
from controller.errors import CommandError
from controller.journal_place import journal_dir
from controller.output import Output
from migration import storm_yaml

_WIDE = 400
Name = Annotated[
    str,
    typer.Argument(metavar="[TOPOLOGY]", help="Id or name of the topology; else all topologies."),
]
Journal = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of a journal. Repeatable.  [default: nstorm.journal.dir]"),
]


def show_facts(
    found: Sequence[Mapping[str, Any]],
    output: Output,
    hosts: Mapping[str, str] | None = None,
    file: IO[str] | None = None,
) -> None:
    """Print one fact as a line, and many of a kind as a table, with hosts for supervisors' ids.

    A table goes to the file in place of standard output.
    """
    if output is Output.JSON:
        print(json.dumps(found, indent=1))
        return
    console = Console(highlight=False, file=file)
    if not console.is_terminal:
        console.width = _WIDE  # a row a line, for grep
    for one in found:
        known = one.get("hosts", hosts or {})
        for key, value in one.items():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                rows = [[_cell(of, known) for of in row.values()] for row in value]
                # What has no spaces, such as a slot, stays in one piece where there is room.
                most = max(1, console.width // len(value[0]) - 1)
                columns = (
                    Column(
                        name.replace("_", " "),
                        min_width=min(most, max(map(len, " ".join(of).split(" ")))),
                        overflow="fold",
                    )
                    for name, of in zip(value[0], zip(*rows, strict=True), strict=True)
                )
                table = Table(*columns, title=key, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
                for row in rows:
                    table.add_row(*row)
                console.print(table)
            elif key != "hosts" and value not in (None, "", [], {}):
                line = f"{key.replace('_', ' ')}: {_cell(value, known)}"
                console.print(line, soft_wrap=True)


def _cell(value: Any, hosts: Mapping[str, str]) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(of, hosts)}" for name, of in value.items())
    if isinstance(value, list):
        return ", ".join(_cell(of, hosts) for of in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "" if value is None else shown(str(value), hosts)


def folders_of(conf: Path, journals: list[Path] | None) -> list[Path]:
    """Give the folders of journals that were named, else the one of the storm.yaml."""
    own = storm_yaml.read_as(conf, journal_dir)
    for folder in journals or ():
        if not folder.is_dir():
            raise CommandError(f"--journal {folder}: there is no such folder")
    return journals or ([] if own is None else [own])
