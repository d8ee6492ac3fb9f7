"""``nstorm history``, ``show`` and ``undo``: the moves that were made."""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import asdict as as_builtins

from controller.cli.asking import (
    DryRun,
    MoveId,
    Topology,
    ask,
    code_of,
    confirm,
    connected,
    operator,
)
from controller.cli.facts import Journal, Name, folders_of, show_facts
from controller.cli.running import Conf
from controller.cli.views import hosts_of
from controller.core.figures import percent
from controller.core.times import utc
from controller.errors import CommandError, RefusedError
from controller.output import From, Output, OutputOption, To, unix_s
from controller.storm.collect import LiveCluster
from controller.storm.command_record import Command, find
from controller.storm.move_record import HISTORY, REMEMBERED_MOVES, MoveRecord, known_moves
from kvstore.errors import StoreError
from kvstore.zookeeper import Session
from migration.model import topology_name

_UNDO = "undo of "
# The id of a topology ends with a number; its name may have spaces and brackets.
_UNDONE = re.compile(rf"{_UNDO}(\S+ of .*\d)\)?$")
_MOVED = "MOVED"


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
        moves, hosts = _moves(session, topology, folders_of(conf, journal)), hosts_of(session)
    moves = [move for move in moves if executor in ("", move.executor)]
    moves = [move for move in moves if since_s <= (move.begun_s or move.ended_s) <= until_s]
    moves = moves if begin else moves[-REMEMBERED_MOVES:]
    if output is Output.JSON:
        show_facts([asdict(move) for move in moves], output)
        return
    rows = [_row(move) for move in moves]
    show_facts([{"moves": rows or "none"}], output, hosts)


def _row(move: MoveRecord) -> dict[str, Any]:
    return {
        "id": move.id,
        "topology": topology_name(move.topology),
        "executor": move.executor,
        "to": move.target,
        "begun": utc(move.begun_s),
        "asked by": move.asked_by,
        "end": move.outcome,
        "inter_node_frac": [
            figures.get("inter_node_frac") for figures in (move.before, move.after)
        ],
        "effect": move.effect.partition(":")[0],
        "predicted CPU": _percent(move.predicted_cpu),
        "measured CPU": _percent(move.measured_cpu),
    }


def _percent(factor: float | None) -> str:
    return "" if factor is None else percent(factor)


def show(
    move: MoveId,
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
        moves, hosts = _moves(session, topology, folders_of(conf, journal)), hosts_of(session)
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
        # `effect` has the last two.
        for name in ("begun_s", "ended_s", "predicted_cpu", "measured_cpu"):
            del told[name]
        if one.outcome == _MOVED and not one.after:
            told["after"] = (
                "not measured: that is 30 s after the end, unless the executor moves again before"
            )
    show_facts([told], output, hosts)


def undo(
    conf: Conf,
    count: Annotated[int, typer.Argument(min=1, help="How many of the last moves.")] = 1,
    topology: Topology = "",
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move the executors of the last moves back, the newest first.

    A move that cannot go back is left, and the command goes on with those before it. In mode auto
    the policy may move the executors again later. Exit code 1: some moves are not undone, or not
    known to be. Exit code 2: refused, with the reason.
    """
    with connected(conf) as session:
        moves = last_moves(_moves(session, topology), count)
        if dry_run:
            show_facts([{"would undo": [_row(move) for move in moves]}], output, hosts_of(session))
            return
        if count > 1:
            confirm(f"Undo {count} moves, from {moves[0].id} back to {moves[-1].id}?")
        stay: list[str] = []
        ends: list[Command] = []
        for place, move in enumerate(moves):
            back = (move.executor, move.target, move.source)
            by = f"{operator()}, {_UNDO}{_key(move)}"
            wish = Command(move.topology, moves=(back,), what=move.id, by=by)
            try:
                ends.append(ask(session, wish, output))
                stay += [move.id] * code_of(ends[-1], f"undo of {move.id}")
            except RefusedError as refused:
                stay.append(move.id)
                if count > 1:
                    typer.echo(str(refused), err=True)
            except (CommandError, StoreError) as error:
                if not place:
                    raise
                # Those before may be undone, so it is no refusal.
                stay += [one.id for one in moves[place:]]
                typer.echo(str(error), err=True)
                break
    if output is Output.JSON:
        print(json.dumps(list(map(as_builtins, ends))))
    if count == 1:
        raise typer.Exit(code_of(ends[0], f"undo of {moves[0].id}"))
    if stay:
        named = ", ".join(stay)
        typer.echo(f"{len(stay)} of {count} moves are not undone: {named}", err=True)
        raise typer.Exit(1)


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


def _key(move: MoveRecord) -> str:
    return f"{move.id} of {move.topology}"
