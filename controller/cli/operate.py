"""``nstorm status``, ``move``, ``drain`` and ``undrain``; how any command asks the leader."""

import getpass
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from controller.cli.places import only, slot_of
from controller.cli.running import Conf
from controller.cli.status_document import (
    DrainStatus,
    StatusDocument,
    as_document,
    as_json,
    drain_progress,
    schema,
)
from controller.cli.status_view import as_tables, drain_lines
from controller.config import Config, from_storm_yaml
from controller.console import Console
from controller.core.drain import cannot_drain, left_on
from controller.core.hostnames import shown
from controller.errors import CommandError
from controller.output import Output, OutputOption, tell
from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.commands import COMMANDS, REFUSED, WAITING, Command, decode, encode
from controller.storm.status import loads_of, read
from kvstore.errors import NotConnectedError, SessionLostError
from kvstore.service import say_waiting, without_storm
from kvstore.zookeeper import Session, Waiting
from migration import ModelError, storm_yaml
from migration.model import ExecutorId, Slot

UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
T = TypeVar("T")
NO_ANSWER_S = 15.0
SLOW_S = 2.0  # after which a command names whom it waits for
CONTROLS_SINCE = 2  # the version of the protocol whose leaders know what operators set
# What was asked for goes on while ZooKeeper is away; its end is waited for.
AWAY_LIMIT_S = 60.0


@contextmanager
def connected(conf: Path) -> Iterator[Session]:
    """Connect to Storm's part of ZooKeeper; gives up after `NO_ANSWER_S`."""
    _, zookeeper = storm_yaml.read_as(conf, from_storm_yaml)
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
        with _named_when_slow(f"ZooKeeper at {session.hosts}"):
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
        print(f"cluster {session.hosts}", file=sys.stderr)
        yield session


@contextmanager
def _named_when_slow(whom: str) -> Iterator[None]:
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


def confirm(what: str) -> None:
    """Ask before something large where a person is at the terminal; a `typer.Abort` if not so."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm(what, abort=True, err=True)


def heeded(session: Session, what: str) -> None:
    """Refuse what a leader of an older version would silently ignore."""
    for leader in LiveCluster.of_session(session).controllers()[:1]:
        if leader.speaks < CONTROLS_SINCE:
            raise CommandError(
                f"{what} would do nothing: the leader {leader.name} speaks version {leader.speaks} "
                f"of the protocol, and that needs {CONTROLS_SINCE}. Upgrade it, or stop it so that "
                "a newer controller leads"
            )


Topology = Annotated[str, typer.Option("--topology", help="Only this topology, by name or id.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would be done, or why it is refused.")
]
Host = Annotated[str, typer.Option("--host", help="Only this host, by name or supervisor id.")]


def look(session: Session, view: LiveCluster) -> StatusDocument:
    """Put together what ZooKeeper shows now."""
    return as_document(
        view.topologies(),
        view.acks(),
        read(session),
        view.controls(),
        controllers=view.controllers(),
        drained=view.drained(),
        left_out={load.node: load.left_out for load in view.loads()},
        clocks_ahead_s=view.clocks_ahead_s(),
        silent_s=view.silent_s(),
        off=view.off(),
    )


def _print_schema(wanted: bool) -> None:
    if wanted:
        print(schema())
        raise typer.Exit


def status(
    conf: Conf,
    topology: Topology = "",
    host: Host = "",
    output: OutputOption = Output.TABLE,
    _schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            callback=_print_schema,
            is_eager=True,
            help="Print the JSON Schema of -o json, and do nothing else.",
        ),
    ] = False,
) -> None:
    """Show where executors run, the load, and the last decision.

    Also show moves under way and moves that ended recently.
    """
    with connected(conf) as session:
        document = only(look(session, LiveCluster.of_session(session)), topology, host)
    if output is Output.JSON:
        print(as_json(document))
        return
    console = Console()
    for part in as_tables(document):
        console.print(part, highlight=False, soft_wrap=isinstance(part, str))


def move(
    topology: Annotated[str, typer.Argument(help="Id or name of the topology.")],
    executor: Annotated[str, typer.Argument(help="Its first and last task, such as 7-7.")],
    slot: Annotated[
        str,
        typer.Argument(help="The target: HOST:PORT or SUPERVISOR-ID:PORT, as `status` shows it."),
    ],
    *,
    conf: Conf,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return only when the move has ended.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Ask the leading controller to move one executor.

    The command returns once the move has begun. With --wait it returns once Storm's own assignment
    shows the move. Exit code 1: the move was undone or Storm decided otherwise. Exit code 2: the
    move was refused, or ZooKeeper was away for too long to know. The reason is printed.
    """
    try:
        ExecutorId.parse(executor), Slot.parse(slot)
    except ModelError as error:
        raise CommandError(str(error)) from None
    with connected(conf) as session:
        nodes = LiveCluster.of_session(session).nodes()
        wish = Command(topology, executor, str(slot_of(slot, nodes)), by=operator())
        last = ask(session, wish, output, until_begun=not wait)
    raise typer.Exit(end(last, output, f"move of {executor}"))


def operator() -> str:
    """Name who asks, for the history."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # it has no name
        user = str(os.getuid())
    return f"operator {user} at {socket.gethostname()}"


def ask(session: Session, wish: Command, output: Output, *, until_begun: bool = False) -> Command:
    """Ask the leading controller, and show what becomes of it until it has ended (or begun)."""
    path = session.create(f"{COMMANDS}/c-", ephemeral=True, sequence=True)
    session.set(path, encode(wish))  # a write proves who asks, and a creation does not
    console = Console(stderr=output is Output.JSON, quiet=wish.verb in ("plan", "explain"))
    return _follow(session, path, console, hosts_of(session), until_begun=until_begun)


def end(last: Command, output: Output, what: str) -> int:
    """Print the last word on a command for programs, and give the exit code."""
    if output is Output.JSON:
        print(json.dumps(asdict(last)))
    if last.state == REFUSED:
        raise CommandError(f"{what} refused: {last.reason}")
    return 1 if last.state in {"UNDONE", "VOID"} else 0


def hosts_of(session: Session) -> dict[str, str]:
    """Name the host of each supervisor."""
    return {node.id: node.host for node in LiveCluster.of_session(session).nodes()}


def _follow(
    session: Session, path: str, console: Console, hosts: Mapping[str, str], *, until_begun: bool
) -> Command:
    """Print every change of a command until it has ended (or begun)."""
    changed = threading.Event()
    before: Command | None = None
    asked_s, is_named = time.monotonic(), False
    while True:
        changed.clear()
        told, away_s = _look(session, path, changed, console)
        command = replace(told, reason=shown(told.reason, hosts))
        asked_s += away_s
        news = command != before and (command.state != WAITING or command.reason)
        if news and command.state != REFUSED:  # which `end` prints
            before = command
            reason = f": {command.reason}" if command.reason else ""
            took = f" ({command.stopped_after_s:.3f} s)" if command.stopped_after_s else ""
            console.print(
                f"{command.executor or command.what} {command.state}{took}{reason}", highlight=False
            )
        if command.ended or (until_begun and command.state != WAITING):
            return command
        unheard = command.state == WAITING and not command.reason
        if unheard and not is_named and time.monotonic() - asked_s > SLOW_S:
            _say_waits("the controller that leads")
            is_named = True
        if unheard and time.monotonic() - asked_s > NO_ANSWER_S:
            raise CommandError("no controller leads: start one with `nstorm controller`")
        changed.wait(1.0)


def _look(
    session: Session, path: str, changed: threading.Event, console: Console
) -> tuple[Command, float]:
    """Read a command; while ZooKeeper is away wait for it, and return for how long."""
    began_s = time.monotonic()
    stored = patient(lambda: session.read(path, changed.set), console)
    command = None if stored is None else decode(stored.data)
    if command is None:
        raise CommandError("the command is gone from ZooKeeper; see `nstorm status`")
    return command, time.monotonic() - began_s


def patient(look: Callable[[], T], console: Console) -> T:
    """Look, and again while ZooKeeper is away: the leader works on during that time."""
    began_s = time.monotonic()
    said = False
    while True:
        try:
            return look()
        except SessionLostError as error:
            raise CommandError(f"{error}; see `nstorm status` for what came of it") from error
        except NotConnectedError as error:
            if time.monotonic() - began_s > AWAY_LIMIT_S:
                raise CommandError(f"{error}; see `nstorm status` for what came of it") from error
        if not said:
            console.print("ZooKeeper is away: waiting for it", highlight=False)
            said = True
        time.sleep(0.5)


def drain(
    host: Annotated[str, typer.Argument(help="As `nstorm status` shows it.")],
    *,
    conf: Conf,
    within: Annotated[
        str | None,
        typer.Option(help="Wait for this time, such as 30s, and list the executors that are left."),
    ] = None,
    dry_run: DryRun = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move every executor away from a host.

    No executor moves to the host until `nstorm undrain`. The leading controller drains the host in
    every mode, also if it starts later. `nstorm status` shows the progress. Exit code 1: --within
    was too short, or some executors stay. Exit code 2: refused, with the reason.
    """
    limit_s = seconds("--within", within) if within else None
    config = storm_yaml.read_as(conf, from_storm_yaml)[0]
    with connected(conf) as session:
        heeded(session, "nstorm drain")
        view = LiveCluster.of_session(session)
        if dry_run:
            would = _would_drain(session, view, config, host)
            tell(output, to_builtins(would), *drain_lines(would))
            return
        confirm(f"Move every executor away from {host}?")
        had = begin_drain(session, view, config, host)
        if limit_s is None and output is Output.TABLE:
            return
        left = _wait_drained(view, host, had, limit_s or 0.0)
    tell(output, to_builtins(left), *drain_lines(left))
    raise typer.Exit(1 if limit_s is not None and left.left else 0)


def _would_drain(session: Session, view: LiveCluster, config: Config, host: str) -> DrainStatus:
    """Show a drain before its first move; a `CommandError` if the others cannot carry it."""
    refusal = cannot_drain_now(session, view, config, host, view.drained())
    if refusal is not None:
        raise CommandError(refusal)
    views = view.topologies()
    return drain_progress(views, host, sum(len(left_on(v, (host,)).executors) for v in views))


def begin_drain(session: Session, view: LiveCluster, config: Config, host: str) -> int:
    """Note the wish, and give how many it had; a `CommandError` if the others cannot carry them."""
    drained = view.drained()
    if host in drained:
        return drained[host]
    refusal = cannot_drain_now(session, view, config, host, drained)
    if refusal is not None:
        raise CommandError(refusal)
    count = sum(len(left_on(one, (host,)).executors) for one in view.topologies())
    session.put(f"{DRAINED}/{host}", str(count).encode())
    return count


def cannot_drain_now(
    session: Session, view: LiveCluster, config: Config, host: str, drained: Iterable[str]
) -> str | None:
    """Return why a host cannot be drained as well; None if the rest can carry its executors."""
    views, status = view.topologies(), read(session)
    if {"executors", "workers"} & {*status.left_out}:
        return "the loads do not fit into /nstorm/status, so the room is not known"
    demand, room = loads_of(status, config.limits)
    return cannot_drain(
        views,
        host,
        drained,
        demand,
        room,
        free=view.free(views),
        limits=config.limits,
        capacity=config.capacity,
        excluded=config.excluded.hosts,
    )


def seconds(option: str, text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise CommandError(f"{option}: {text!r} is no time such as 90s, 30m, 2h or 1d")
    return int(found[1]) * UNITS_S[found[2]]


def _wait_drained(view: LiveCluster, host: str, had: int, limit_s: float) -> DrainStatus:
    """Return what is left, once only staying executors are left or the time is over."""
    until_s = time.monotonic() + limit_s
    while True:
        left = drain_progress(view.topologies(), host, had)
        if left.left <= len(left.stay) or time.monotonic() >= until_s:
            return left
        time.sleep(0.5)


def undrain(
    host: Annotated[str, typer.Argument(help="As `nstorm status` shows it.")],
    conf: Conf,
    output: OutputOption = Output.TABLE,
) -> None:
    """Allow moves to a drained host again."""
    with connected(conf) as session:
        if not session.delete(f"{DRAINED}/{host}"):
            raise CommandError(f"host {host} is not drained")
    tell(output, {"host": host}, f"executors may move to {host} again")
