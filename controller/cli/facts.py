"""Prints answers of a leader or a journal: one fact as a line, many of a kind as a table."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from controller.core.hostnames import shown
from controller.core.readable import readable
from controller.errors import CommandError
from controller.journal_place import journal_dir
from controller.output import Output
from migration import storm_yaml

Name = Annotated[
    str,
    typer.Argument(metavar="[TOPOLOGY]", help="Id or name of the topology; else all topologies."),
]
Journal = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of a journal. Repeatable.  [default: nstorm.journal.dir]"),
]
# As in reasons, where a field has another name.
_NAMES = {
    "inter_node_frac": "between nodes",
    "score": "gain",
    "asc_tps": "t/s inside nodes",
    "headroom": "head-room",
}


def show_facts(
    found: Sequence[Mapping[str, Any]], output: Output, hosts: Mapping[str, str] | None = None
) -> None:
    """Print one fact as a line, and many of a kind as a table, with hosts for supervisors' ids.

    Where the output is no terminal, a row of a table is a line with tabs between its cells.
    """
    if output is Output.JSON:
        print(json.dumps(found, indent=1))
    elif sys.stdout.isatty():
        draw_facts(found, hosts)
    else:
        for name, value in _facts(found, hosts):
            if isinstance(value, str):
                print(f"{name}: {value}")
            else:
                heads, rows = value
                print(f"{name}:", *map(_tabbed, [heads, *rows]), sep="\n")


def draw_facts(
    found: Sequence[Mapping[str, Any]],
    hosts: Mapping[str, str] | None = None,
    file: IO[str] | None = None,
    width: int | None = None,
) -> None:
    """Draw the tables; None: as wide as the terminal."""
    # rich: a pipe needs none
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.table import Column, Table  # noqa: PLC0415

    from controller.console import Console  # noqa: PLC0415

    console = Console(highlight=False, file=file, width=width)
    for name, value in _facts(found, hosts):
        if isinstance(value, str):
            console.print(f"{name}: {value}", soft_wrap=True)
            continue
        heads, rows = value
        # What has no spaces, such as a slot, stays in one piece where there is room.
        most = max(1, console.width // len(heads) - 1)
        columns = (
            Column(
                head, min_width=min(most, max(map(len, " ".join(of).split(" ")))), overflow="fold"
            )
            for head, of in zip(heads, zip(*rows, strict=True), strict=True)
        )
        table = Table(*columns, title=name, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for row in rows:
            table.add_row(*row)
        console.print(table)


def _facts(
    found: Iterable[Mapping[str, Any]], hosts: Mapping[str, str] | None
) -> Iterator[tuple[str, str | tuple[list[str], list[list[str]]]]]:
    """Give each fact by its name as a text, or as the heads and rows of its table."""
    for one in found:
        known = one.get("hosts", hosts or {})
        for key, value in one.items():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                rows = [[_cell(of, known, head) for head, of in row.items()] for row in value]
                yield key, ([*map(_name, value[0])], rows)
            elif key != "hosts" and value not in (None, "", [], {}):
                yield _name(key), _cell(value, known, key)


def _name(key: str) -> str:
    return _NAMES.get(key, key.replace("_", " "))


def _tabbed(cells: Iterable[str]) -> str:
    return "\t".join(cell.translate({ord("\t"): " ", ord("\n"): " "}) for cell in cells)


def _cell(value: Any, hosts: Mapping[str, str], key: str) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_name(name)} {_cell(of, hosts, name)}" for name, of in value.items())
    if isinstance(value, list):
        return ", ".join(_cell(of, hosts, key) for of in value)
    if isinstance(value, float):
        return f"{value:.1%}" if key == "inter_node_frac" else readable(value)
    return "" if value is None else shown(str(value), hosts)


def folders_of(conf: Path, journals: list[Path] | None) -> list[Path]:
    """Give the folders of journals that were named, else the one of the storm.yaml."""
    own = storm_yaml.read_as(conf, journal_dir)
    for folder in journals or ():
        if not folder.is_dir():
            raise CommandError(f"--journal {folder}: there is no such folder")
    return journals or ([] if own is None else [own])
