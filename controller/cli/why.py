"""``nstorm plan`` and ``explain``: what moves, what does not, and why."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from controller.cli.asking import Topology, ask, connected, end
from controller.cli.facts import Journal, Name, show_facts
from controller.cli.running import Conf
from controller.core.times import moment
from controller.errors import CommandError
from controller.output import Output, OutputOption
from controller.storm.command_record import Command
from migration import storm_yaml


def plan(conf: Conf, topology: Name = "", output: OutputOption = Output.TABLE) -> None:
    """Show every move that mode auto would make, and the gain."""
    _look(conf, Command(topology, verb="plan"), output)


def explain(
    conf: Conf,
    what: Annotated[str, typer.Argument(metavar="[EXECUTOR|WORKER|HOST|CYCLE]")] = "",
    cycle: Annotated[
        str,
        typer.Argument(
            metavar="[CYCLE]",
            help="Its number, as `nstorm status` shows it, or a time such as 2026-11-25T03:12 "
            "(UTC), for the last cycle by then.  [default: the last of all]",
        ),
    ] = "",
    *,
    topology: Topology = "",
    journal: Journal = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain the last decision, or why an executor cannot move.

    With CYCLE, that decision is repeated from the journal of this machine.
    """
    named = cycle_named(cycle or what)
    if named is None and cycle:
        raise CommandError(
            f"{cycle!r} is neither the number of a cycle nor a time such as 2026-12-01T06:00"
        )
    wish = Command(topology, verb="explain", what=what if cycle or named is None else "")
    if named is None:
        _look(conf, wish, output)
    else:
        # The leader has all of that for the last cycle.
        from controller.cli.facts import folders_of  # noqa: PLC0415
        from controller.cli.recorded import in_journal  # noqa: PLC0415
        from controller.config import from_storm_yaml  # noqa: PLC0415
        from controller.storm.answers import explained  # noqa: PLC0415

        storm_yaml.read_as(conf, from_storm_yaml)  # refuses what is wrong
        folders = folders_of(conf, journal)
        if not folders:
            raise CommandError("there is no journal: set nstorm.journal.dir or storm.local.dir")
        reports, config = in_journal(folders, named)
        show_facts(facts_of(explained(reports, wish, config)), output)


def cycle_named(text: str) -> int | datetime | None:
    """Read a number or a time, UTC if it has no zone; None if it is neither."""
    if text.isdecimal():
        return int(text)
    with suppress(ValueError):
        return moment(text)
    return None


def _look(conf: Conf, wish: Command, output: Output) -> None:
    with connected(conf) as session:
        show_facts(facts_of(ask(session, wish, output)), output)


def facts_of(last: Command) -> list[dict[str, Any]]:
    """Give what was answered, ready for `show_facts`; a CommandError if it was refused."""
    end(last, Output.TABLE, last.verb)
    # As a leader's answer comes: with lists and not tuples.
    found: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(last.answer))
    return found
