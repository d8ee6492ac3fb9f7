"""``nstorm status``, ``move``, ``drain`` and ``undrain``."""

import time
from collections.abc import Iterable
from typing import Annotated

import typer
from msgspec import to_builtins

from controller.cli.asking import (
    DryRun,
    Host,
    Topology,
    ask,
    confirm,
    connected,
    end,
    heeded,
    operator,
    seconds,
)
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
from controller.errors import CommandError
from controller.output import Output, OutputOption, tell
from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.command_record import Command
from controller.storm.status import loads_of, read
from kvstore.zookeeper import Session
from migration import ModelError, storm_yaml
from migration.model import ExecutorId, Slot


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
