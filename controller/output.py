"""How the commands print their answers and their help."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from controller import interrupt
from controller.core.times import moment
from controller.errors import CommandError
from kvstore.logs import log

if TYPE_CHECKING:
    from controller.console import Console  # not every command prints with rich

_OLDEST_S, _NEWEST_S = 1e9, 1e11  # in 2001 and 5138
_DATE = 8  # digits
# Longer than the first line of any docstring.
_LINE = 100


class Output(StrEnum):
    """For people or for programs."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")]

From = Annotated[
    str, typer.Option("--from", metavar="TIME", help="Not before: ISO 8601 (UTC) or Unix seconds.")
]
To = Annotated[str, typer.Option("--to", metavar="TIME", help="Not after; as --from.")]


def unix_s(option: str, text: str, none_s: float) -> float:
    """Read a time in ISO 8601, UTC without a zone, or Unix seconds; without a text, `none_s`."""
    if not text:
        return none_s
    # 20261201 is a date, and no other text of digits alone.
    with suppress(ValueError, OverflowError):
        if not text.isdigit() or len(text) == _DATE:
            return moment(text).timestamp()
    with suppress(ValueError):
        # No journal is older; a year alone is no number of seconds, nor are milliseconds.
        if _OLDEST_S <= (given_s := float(text)) < _NEWEST_S:
            return given_s
    raise CommandError(f"{option}: {text!r} is no time such as 2026-12-01T06:00")


def tell(output: Output, found: Mapping[str, Any], *lines: str) -> None:
    """Print what was done: a document for programs, else lines."""
    print(json.dumps(found) if output is Output.JSON else "\n".join(lines))


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Turn what cannot be written at the place that an option names into one sentence."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise CommandError(f"{option} {error.filename or path}: {why}") from None


def counted(count: int, what: str) -> str:
    """Name a number of things, such as ``2 executors`` of ``executor``."""
    return f"{count} {what}{'s' * (count != 1)}"


def print_list(console: "Console", head: str, lines: Iterable[str]) -> None:
    console.print(head, highlight=False)
    for line in lines:
        console.print(f"- {line}", highlight=False)


@contextmanager
def quiet(level: int) -> Iterator[None]:
    """Keep the controller's code, run for its result, from logging below a level of `logging`."""
    usual, log.level = log.level, level
    try:
        yield
    finally:
        log.level = usual


def example(*lines: str) -> str:
    """Make the end of a command's help, an epilog that keeps its lines."""
    return "\n  ".join(("\b\nExample:", *lines))


class SectionedCommand(TyperCommand):
    """Lists its options by the sections that they name as ``rich_help_panel``."""

    def invoke(self, ctx: Any) -> Any:
        interrupt.while_working()
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows = [(p, p.get_help_record(ctx)) for p in self.get_params(ctx)]
        _write(formatter, [(_section(p, f"{p.param_type_name}s"), row) for p, row in rows if row])


class SectionedGroup(TyperGroup):
    """Lists its commands by the sections that they name as ``rich_help_panel``."""

    def listed(self) -> Iterable[tuple[str, str, str]]:
        """Give the section, name and first line of each command."""
        for name, command in self.commands.items():
            yield _section(command, "commands"), name, command.get_short_help_str(_LINE)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        _write(formatter, [(section, (name, line)) for section, name, line in self.listed()])


def _section(owner: Any, usual: str) -> str:
    return getattr(owner, "rich_help_panel", None) or usual.capitalize()


def _write(formatter: Any, rows: Iterable[tuple[str, tuple[str, str]]]) -> None:
    """Write definition lists, in the order in which their sections first come up."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for title, row in rows:
        sections.setdefault(title, []).append(row)
    for title, found in sections.items():
        with formatter.section(title):
            formatter.write_dl(found)
