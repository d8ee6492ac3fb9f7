"""``nstorm replay``: what the controller would have done with a recorded log."""

import math
from pathlib import Path
from typing import Annotated

import typer

from controller.config import keys_of
from controller.journal.lines import refuse_gone
from controller.output import From, Output, OutputOption, To, unix_s
from controller.policies.options import NAMES

# Sections of the help.
OTHERWISE = "Other settings than the recorded ones"


def replay(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG", help="Folders or segments of a journal (nstorm.journal.dir)."
        ),
    ],
    *,
    begin: From = "",
    end: To = "",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            rich_help_panel=OTHERWISE,
            help="A key of storm.yaml, such as load.high=0.7. Repeatable.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=OTHERWISE, help=f"One of {', '.join(NAMES)}."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="With the recorded settings: also print ticks like the one before."
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Decide a recorded log again, also with other settings.

    With the recorded settings every decision must be the same, byte for byte. Exit code 1: one is
    not. The command prints the ticks with a move, and those whose outcome differs from the tick
    before.

    With other settings, by --set or --policy, the outcome is compared with that of the recorded
    settings. Moves follow other moves, whatever the mode was. Executors take their CPU along, less
    the cost of tuples that stay near now. The traffic between executors stays as recorded. So a
    replay misses that shuffles would send elsewhere, and that an overload would slow the topology
    down. Each topology has max.moves.per.cycle moves of its own, while in a live run all topologies
    share them.
    """
    window = unix_s("--from", begin, -math.inf), unix_s("--to", end, math.inf)
    changes = keys_of(assignments or [])
    if policy is not None:
        changes["policy"] = policy
    for path in paths:
        refuse_gone(path)
    # Late: a refusal needs none of it.
    from controller.replay.command import print_replay  # noqa: PLC0415

    print_replay(paths, window, changes, every=every, output=output)
