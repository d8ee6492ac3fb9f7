"""``nstorm plan``, ``explain``, ``history``, ``show``, ``cancel`` and ``undo``."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from controller.cli.operate import (
    DryRun,
    Topology,
    ask,
    confirm,
    connected,
    end,
    hosts_of,
)
from controller.cli.recorded import cycle_named, in_journal
from controller.cli.running import Conf
from controller.config import from_storm_yaml
from controller.console import Console
from controller.core.hostnames import shown
from controller.core.times import utc
from controller.errors import CommandError
from controller.output import From, Output, OutputOption, To, unix_s
from controller.storm.answers import explained
from controller.storm.collect import LiveCluster
from controller.storm.commands import Command, find
from controller.storm.history import HISTORY, REMEMBERED_MOVES, MoveRecord, known_moves
from kvstore.zookeeper import Session
from migration import storm_yaml
from migration.model import topology_name

_UNDO = "undo of "
_UNDONE = re.compile(rf"{_UNDO}(\S+ of [^\s)]+)\)?$")
_WIDE = 400
_MOVED = "MOVED"

Name = Annotated[
    str,
    typer.Argument(metavar="[TOPOLOGY]", help="Id or name of the topology; else all topologies."),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="As `nstorm history` shows it.")]
Journal = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of a journal. Repeatable.  [default: nstorm.journal.dir]"),
]


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
        folders = _folders(conf, journal)
        if not folders:
            raise CommandError("there is no journal: set nstorm.journal.dir or storm.local.dir")
        reports, config = in_journal(folders, named)
        _answer(explained(reports, wish, config), output)


def _look(conf: Conf, wish: Command, output: Output) -> None:
    with connected(conf) as session:
        _answer(ask(session, wish, output), output)


def _answer(last: Command, output: Output) -> None:
    end(last, Output.TABLE, last.verb)
    _show(msgspec.to_builtins(last.answer), output)


def _show(
    found: Sequence[Mapping[str, Any]], output: Output, hosts: Mapping[str, str] | None = None
) -> None:
    """Print one fact as a line, and many of a kind as a table, with hosts for supervisors' ids."""
    if output is Output.JSON:
        print(json.dumps(found, indent=1))
        return
    console = Console(highlight=False)
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


def history(
    conf: Conf,
    topology: Name = "",
    *,
    executor: Annotated[str, typer.Option(help="Only its moves, such as 7-7.")] = "",
    begin: From = "",
    end: To = "",
    journal: Journal = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the last moves of the cluster, and the effect of each.

    ZooKeeper has the last 200 moves, and the journal has older ones.
    """
    since_s, until_s = unix_s("--from", begin, -inf), unix_s("--to", end, inf)
    with connected(conf) as session:
        moves, hosts = _moves(session, topology, _folders(conf, journal)), hosts_of(session)
    moves = [move for move in moves if executor in ("", move.executor)]
    moves = [move for move in moves if since_s <= (move.begun_s or move.ended_s) <= until_s]
    moves = moves if begin else moves[-REMEMBERED_MOVES:]
    if output is Output.JSON:
        _show([asdict(move) for move in moves], output)
        return
    rows = [_row(move) for move in moves]
    _show([{"moves": rows or "none"}], output, hosts)


def _row(move: MoveRecord) -> dict[str, Any]:
    return {
        "id": move.id,
        "topology": topology_name(move.topology),
        "executor": move.executor,
        "to": move.target,
        "begun": utc(move.begun_s),
        "asked by": move.asked_by,
        "end": move.outcome,
        "inter-node": [figures.get("inter_node_frac") for figures in (move.before, move.after)],
        "effect": move.effect.partition(":")[0],
    }


def show(
    move: Id,
    conf: Conf,
    topology: Topology = "",
    journal: Journal = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show who asked for a move and why, its phases, and its gain.

    `asc tps` is the gain that was expected. `before` was measured when the move began, `after` 30 s
    after its end. `measured with` counts the other moves that contribute to the difference.
    `effect` is what the whole run of moves has changed, in blocks of 10 s within 5 minutes before
    and after it.
    """
    with connected(conf) as session:
        moves, hosts = _moves(session, topology, _folders(conf, journal)), hosts_of(session)
    found = [one for one in moves if one.id == move]
    if not found:
        raise CommandError(f"no move {move} is among those of `nstorm history`")
    if len({topology_name(one.topology) for one in found}) > 1:
        named = ", ".join(one.topology for one in found)
        raise CommandError(f"{move} is a move of {named}: name one with --topology")
    *others, one = found
    if others:  # each submission of a topology counts from 1
        named = ", ".join(other.topology for other in others)
        typer.echo(f"this is the newest move of that id; others: {named}", err=True)
    told = {"begun": utc(one.begun_s), "ended": utc(one.ended_s), **asdict(one)}
    if output is Output.TABLE:
        del told["begun_s"], told["ended_s"]
        if one.outcome == _MOVED and not one.after:
            told["after"] = (
                "not measured: that is 30 s after the end, unless the executor moves again before"
            )
    _show([told], output, hosts)


def cancel(
    move: Id, conf: Conf, topology: Topology = "", output: OutputOption = Output.TABLE
) -> None:
    """Cancel a move that has not reached STOP.

    Exit code 1: it was too late, and the move continued.
    """
    with connected(conf) as session:
        last = ask(session, Command(topology, verb="cancel", what=move), output)
    end(last, output, f"cancellation of {move}")
    raise typer.Exit(0 if last.state == "UNDONE" else 1)


def undo(
    conf: Conf,
    count: Annotated[int, typer.Argument(min=1, help="How many of the last moves.")] = 1,
    topology: Topology = "",
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move the executors of the last moves back, the newest first.

    The command stops at the first move that fails. In mode auto the policy may move the executors
    again later.
    """
    with connected(conf) as session:
        moves = last_moves(_moves(session, topology), count)
        if dry_run:
            _show([{"would undo": [_row(move) for move in moves]}], output, hosts_of(session))
            return
        if count > 1:
            confirm(f"Undo {count} moves, from {moves[0].id} back to {moves[-1].id}?")
        for move in moves:
            back = (move.executor, move.target, move.source)
            wish = Command(move.topology, moves=(back,), what=move.id, by=_UNDO + _key(move))
            last = ask(session, wish, output)
            code = end(last, output, f"undo of {move.id}")
            if code:
                raise typer.Exit(code)


def last_moves(moves: list[MoveRecord], count: int) -> list[MoveRecord]:
    """Choose the newest moves that have been made and not been undone."""
    made = [move for move in reversed(moves) if move.outcome == _MOVED]
    undoes = {_key(move): _UNDONE.search(move.asked_by) for move in made}
    undone = {found[1] for found in undoes.values() if found}
    left = [m for m in made if _key(m) not in undone and not undoes[_key(m)]]
    if count > len(left):
        raise CommandError(f"of {count} moves only {len(left)} can be undone; nothing was changed")
    return left[:count]


def _moves(session: Session, topology: str, journals: Iterable[Path] = ()) -> list[MoveRecord]:
    stored = session.read(HISTORY)
    try:
        known = known_moves(stored, journals)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        typer.echo(f"only the moves that ZooKeeper keeps are known here: {why}", err=True)
        known = known_moves(stored, ())
    found = [m for m in known if topology in ("", m.topology, topology_name(m.topology))]
    if not found and topology:
        views = LiveCluster.of_session(session).topologies()
        if find(views, topology) is None:
            names = {view.publication.name for view in views}
            names |= {topology_name(move.topology) for move in known}
            there = ", ".join(sorted(names)) or "none"
            raise CommandError(f"no topology {topology}: those known are {there}")
    return found


def _folders(conf: Path, journals: list[Path] | None) -> list[Path]:
    own = storm_yaml.read_as(conf, from_storm_yaml)[0].journal.dir
    for folder in journals or ():
        if not folder.is_dir():
            raise CommandError(f"--journal {folder}: there is no such folder")
    return journals or ([] if own is None else [own])


def _key(move: MoveRecord) -> str:
    return f"{move.id} of {move.topology}"
