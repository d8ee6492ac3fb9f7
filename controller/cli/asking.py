"""How a command asks: it connects to the cluster, names the operator, and waits for the leader."""

import getpass
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from msgspec.structs import asdict, replace

from controller import interrupt
from controller.core.hostnames import shown
from controller.errors import CommandError, RefusedError
from controller.output import Output
from controller.storm.command_record import (
    COMMANDS,
    REFUSED,
    WAITING,
    Command,
    decode,
    encode,
)
from kvstore.ensemble import Ensemble
from kvstore.errors import NotConnectedError, SessionLostError, StoreError
from kvstore.printable import argument
from kvstore.service import say_waiting, without_storm
from kvstore.zookeeper import Session, Waiting
from migration import storm_yaml, wire
from migration.access import ensemble
from migration.model import LINE

UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
T = TypeVar("T")
Say = Callable[[str], None]
NO_ANSWER_S = 15.0
SLOW_S = 2.0  # after which a command names whom it waits for
# What was asked for goes on while ZooKeeper is away; its end is waited for.
AWAY_LIMIT_S = 60.0


@contextmanager
def connected(conf: Path, *, says: bool = True) -> Iterator[Session]:
    """Connect to Storm's part of ZooKeeper, and print its name; gives up after `NO_ANSWER_S`."""
    zookeeper = storm_yaml.read_as(conf, _ensemble)
    until_s, given_up = time.monotonic() + NO_ANSWER_S, threading.Event()

    refused: str | None = None

    def wait(waiting: Waiting) -> None:
        nonlocal refused
        if waiting.refused:
            refused = waiting.error
            given_up.set()
        elif time.monotonic() >= until_s:
            given_up.set()
        else:
            say_waiting(waiting)

    with Session(zookeeper) as session:
        with named_when_slow(f"ZooKeeper at {session.hosts}"):
            is_there = session.connect(on_wait=wait, stop=given_up)
        if not is_there:
            servers = zookeeper.hosts.partition("/")[0].replace(",", ", ")
            if refused is not None:
                raise CommandError(f"{refused} ({servers}; {conf})")
            raise CommandError(
                f"ZooKeeper has not answered within {NO_ANSWER_S:.0f} s at {servers}. Check that "
                f"it runs, that storm.zookeeper.servers and storm.zookeeper.port in {conf} name "
                "it, and that this machine may reach it"
            )
        problem = without_storm(session)
        if problem is not None:
            raise CommandError(problem)
        if says:
            print(f"cluster {session.hosts}", file=sys.stderr)
        yield session


def _ensemble(document: Mapping[str, Any]) -> Ensemble:
    """Take only the ZooKeeper from a storm.yaml: `pause` does not ask whether a limit is right."""
    storm_yaml.own_keys(document)  # refuses what is misspelt
    return ensemble(document)


@contextmanager
def named_when_slow(whom: str) -> Iterator[None]:
    """Print whom the command waits for once that has taken `SLOW_S`."""
    timer = threading.Timer(SLOW_S, _say_waits, (whom,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say_waits(whom: str) -> None:
    print(f"waits for {whom}", file=sys.stderr, flush=True)


@contextmanager
def beginning(what: str) -> Iterator[None]:
    """Name what goes on from what is written within; nothing does where ZooKeeper refuses that."""
    interrupt.does_not_end(what)
    try:
        yield
    except (NotConnectedError, SessionLostError):  # it may have been written
        raise
    except StoreError:
        interrupt.does_not_end("")
        raise


def confirm(what: str) -> None:
    """Ask before something large where a person is at the terminal; a `typer.Abort` if not so."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm(what, abort=True, err=True)


MoveId = Annotated[str, typer.Argument(metavar="ID", help="As `nstorm history` shows it.")]
Topology = Annotated[str, typer.Option("--topology", help="Only this topology, by name or id.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would be done, or why it is refused.")
]
Host = Annotated[str, typer.Option("--host", help="Only this host, by name or supervisor id.")]


def operator() -> str:
    """Name who asks, for the history."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # it has no name
        user = str(os.getuid())
    return f"operator {user} at {socket.gethostname()}"


def ask(session: Session, wish: Command, output: Output, *, until_begun: bool = False) -> Command:
    """Ask the leading controller, and show what becomes of it until it has ended (or begun)."""
    for name in (wish.topology, wish.executor, wish.slot, wish.what):
        if re.match(LINE, name) is None:  # no controller would read it
            raise CommandError(
                f"{name!r} names nothing: it has control characters, or more than 511 characters"
            )
    path = session.create(f"{COMMANDS}/c-", ephemeral=True, sequence=True)
    session.set(path, encode(wish))  # a write proves who asks, and a creation does not
    only_looks = wish.verb in ("plan", "explain")
    if not only_looks:
        interrupt.does_not_end("what has begun goes on: see `nstorm status`")
    say = _say_nothing if only_looks else teller(output)
    return _follow(session, path, say, until_begun=until_begun)


def teller(output: Output) -> Say:
    """Give what prints a line under way: what programs read is on standard output alone."""
    return partial(print, file=sys.stderr if output is Output.JSON else sys.stdout, flush=True)


def _say_nothing(_: str) -> None:
    """Leave it to the answer."""


def end(last: Command, output: Output, what: str) -> int:
    """Print the last word on a command for programs, and give the exit code."""
    if output is Output.JSON:
        print(json.dumps(asdict(last)))
    return code_of(last, what)


def code_of(last: Command, what: str) -> int:
    """Give the exit code of a command that has ended; a `RefusedError` if it was refused."""
    if last.state == REFUSED:
        raise RefusedError(f"{what} refused: {last.reason}")
    return 1 if last.state in {"UNDONE", "VOID"} else 0


def _follow(session: Session, path: str, say: Say, *, until_begun: bool) -> Command:
    """Print every change of a command until it has ended (or begun)."""
    changed = threading.Event()
    before: Command | None = None
    hosts: Mapping[str, str] | None = None
    asked_s, is_named = time.monotonic(), False
    heard_s, is_led = asked_s, True
    while True:
        changed.clear()
        told, away_s = _look(session, path, changed, say)
        if told.reason and hosts is None:  # most answers have none
            from controller.cli.views import hosts_of  # noqa: PLC0415  # slow to load

            hosts = patient(lambda: hosts_of(session), say)
        command = replace(told, reason=shown(told.reason, hosts or {}))
        asked_s, heard_s = asked_s + away_s, heard_s + away_s
        news = command != before and (command.state != WAITING or command.reason)
        if news and command.state != REFUSED:  # which `end` prints
            before, heard_s = command, time.monotonic()
            if command.move:
                cancels = f"nstorm cancel {argument(command.move)}"
                goes_on = f"{command.move} goes on: `{cancels}` ends it"
                interrupt.does_not_end("" if command.ended else goes_on)
            reason = f": {command.reason}" if command.reason else ""
            took = f" ({command.stopped_after_s:.3f} s)" if command.stopped_after_s else ""
            say(f"{command.executor or command.what} {command.state}{took}{reason}")
        if command.ended or (until_begun and command.state != WAITING):
            return command
        unheard = command.state == WAITING and not command.reason
        if unheard and not is_named and time.monotonic() - asked_s > SLOW_S:
            _say_waits("the controller that leads")
            is_named = True
        if unheard and time.monotonic() - asked_s > NO_ANSWER_S:
            raise CommandError("no controller leads: start one with `nstorm controller`")
        if not unheard and time.monotonic() - heard_s > NO_ANSWER_S:
            heard_s, was_led = time.monotonic(), is_led
            is_led = bool(patient(lambda: session.children(wire.LEADER), say))
            if was_led and not is_led:
                _say_waits("a controller that leads: start one with `nstorm controller`")
        changed.wait(1.0)


def _look(session: Session, path: str, changed: threading.Event, say: Say) -> tuple[Command, float]:
    """Read a command; while ZooKeeper is away wait for it, and return for how long."""
    began_s = time.monotonic()
    stored = patient(lambda: session.read(path, changed.set), say)
    command = None if stored is None else decode(stored.data)
    if command is None:
        raise CommandError("the command is gone from ZooKeeper; see `nstorm status`")
    return command, time.monotonic() - began_s


def patient(look: Callable[[], T], say: Say) -> T:
    """Look, and again while ZooKeeper is away: the leader works on during that time."""
    began_s = time.monotonic()
    said = False
    while True:
        try:
            return look()
        except NotConnectedError as error:
            if time.monotonic() - began_s > AWAY_LIMIT_S:
                raise CommandError(f"{error}{_what_came()}") from error
        except SessionLostError as error:
            raise CommandError(f"{error}{_what_came()}") from error
        if not said:
            say("ZooKeeper is away: waiting for it")
            said = True
        time.sleep(0.5)


def _what_came() -> str:
    return interrupt.goes_on() or "; see `nstorm status` for what came of it"


def seconds(option: str, text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise CommandError(f"{option}: {text!r} is no time such as 90s, 30m, 2h or 1d")
    return int(found[1]) * UNITS_S[found[2]]
