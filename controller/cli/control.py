"""``nstorm pause``, ``freeze``, ``resume`` and ``cancel``: quick, for they load little."""

import time
from typing import Annotated

import typer
from msgspec.structs import asdict

from controller.cli.asking import (
    MoveId,
    Topology,
    ask,
    connected,
    end,
    seconds,
)
from controller.cli.running import Conf
from controller.cli.views import name_of, topologies, view_named
from controller.core.controls import EVERYWHERE, Pause
from controller.core.topology import TopologyView, moves_under_way
from controller.errors import CommandError
from controller.output import Output, OutputOption, tell, unix_s
from controller.storm import controls
from controller.storm.command_record import Command
from migration.model import MOVING

Reason = Annotated[str, typer.Option(help="Shown by `nstorm status`.")]


def pause(
    conf: Conf,
    topology: Topology = "",
    lasting: Annotated[str, typer.Option("--for", help="Such as 90s, 30m, 2h or 1d.")] = "",
    reason: Reason = "paused",
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop automatic moves.

    Moves under way continue, and `nstorm move` still works. A pause that holds longer stays: only
    `nstorm resume` ends it.
    """
    lasting_s = seconds("--for", lasting) if lasting else None
    with connected(conf) as session:
        views = topologies(session)
        name = view_named(views, topology).publication.name if topology else EVERYWHERE
        made = controls.pause(session, reason, name, lasting_s)
    _tell_pause(output, made, f"paused {name or 'everything'}", views, name)


def freeze(
    conf: Conf,
    until: Annotated[str, typer.Option(help="Such as 2026-12-01T06:00+01:00.")],
    reason: Reason = "frozen",
    output: OutputOption = Output.TABLE,
) -> None:
    """Block all new moves, including manual ones, until a time.

    `nstorm resume` ends the freeze; another one does not shorten it.
    """
    until_s = unix_s("--until", until, 0.0)
    if until_s <= time.time():
        raise CommandError(f"--until: {until} is past")
    with connected(conf) as session:
        views = topologies(session)
        made = controls.freeze(session, reason, until_s)
    _tell_pause(output, made, "frozen", views, EVERYWHERE)


def resume(conf: Conf, topology: Topology = "", output: OutputOption = Output.TABLE) -> None:
    """Allow automatic moves again.

    Without --topology this ends all pauses and the freeze.
    """
    with connected(conf) as session:
        kept = controls.read(session.read(controls.CONTROLS)).pauses
        name = name_of(topologies(session), topology, kept) if topology else None
        left = controls.resume(session, name)
    said = [f"{n or 'everything'} is still paused: {p}" for n, p in left.pauses.items()]
    said += [f"everything is still frozen: {left.freeze}"] * (left.freeze is not None)
    still = [{"topology": n, **asdict(p)} for n, p in left.pauses.items()]
    frozen = left.freeze and asdict(left.freeze)
    tell(
        output,
        {"topology": name or EVERYWHERE, "still_paused": still, "freeze": frozen},
        "; ".join([f"resumed {name or 'everything'}", *said]),
    )


def cancel(
    move: MoveId, conf: Conf, topology: Topology = "", output: OutputOption = Output.TABLE
) -> None:
    """Cancel a move that has not reached STOP.

    Exit code 1: it was too late, and the move continued.
    """
    with connected(conf) as session:
        last = ask(session, Command(topology, verb="cancel", what=move), output)
    end(last, output, f"cancellation of {move}")
    raise typer.Exit(0 if last.state == "UNDONE" else 1)


def _tell_pause(
    output: Output, pause: Pause, what: str, views: list[TopologyView], name: str
) -> None:
    """Print what is paused, and the moves that still run."""
    chosen = [view for view in views if name in (EVERYWHERE, view.publication.name)]
    moving = [
        {"topology": t, "executor": str(e.executor), "phase": str(e.phase)}
        for t, e in moves_under_way(chosen, MOVING)
    ]
    moves = ", ".join("{executor} of {topology} in {phase}".format_map(one) for one in moving)
    tell(
        output,
        {"topology": name, **asdict(pause), "moving": moving},
        f"{what}: {pause}; {f'still moving: {moves}' if moves else 'nothing is moving'}",
    )
