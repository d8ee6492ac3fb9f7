"""``nstorm drain`` and ``undrain``: a host is emptied without a restart."""

import time
from collections.abc import Callable, Iterable
from typing import Annotated

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from controller.cli.asking import (
    DryRun,
    Say,
    beginning,
    confirm,
    connected,
    named_when_slow,
    patient,
    seconds,
    teller,
)
from controller.cli.running import Conf
from controller.cli.status_document import (
    DrainStatus,
    drain_lines,
    drain_progress,
)
from controller.config import Config, from_storm_yaml
from controller.core.drainable import cannot_drain
from controller.errors import CommandError
from controller.output import Output, OutputOption, counted, tell
from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.leader_status import loads_of, read
from kvstore.zookeeper import Session
from migration import storm_yaml


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
    every mode, also if it starts later. `nstorm status` shows the progress. Exit code 0 without
    --within: the drain has begun, and the host is not empty yet. Exit code 1: --within was too
    short, or some executors stay. Exit code 2: refused, with the reason.
    """
    limit_s = seconds("--within", within) if within else None
    config = storm_yaml.read_as(conf, from_storm_yaml)[0]
    with connected(conf) as session:
        view = LiveCluster.of_session(session)
        if dry_run:
            would = _would_drain(session, view, config, host, view.drained())
            tell(output, to_builtins(would), *drain_lines(would, dry=True))
            return
        confirm(f"Move every executor away from {host}?")
        with beginning(f"a drain that has begun goes on: `nstorm undrain {host}` ends it"):
            had = begin_drain(session, view, config, host)
        if limit_s is None and output is Output.TABLE:
            executors = counted(had, "executor")
            print(f"begun: {executors} to leave {host}; `nstorm status` or --within shows the end")
            return
        with named_when_slow(f"the controller that leads to empty {host}"):
            left = _wait_drained(
                lambda: drain_progress(view.topologies(), view.acks(), host, had, config.excluded),
                limit_s or 0.0,
                teller(output),
            )
    tell(output, to_builtins(left), *drain_lines(left))
    raise typer.Exit(1 if limit_s is not None and (left.left or left.unseen) else 0)


def _would_drain(
    session: Session, view: LiveCluster, config: Config, host: str, drained: Iterable[str]
) -> DrainStatus:
    """Show a drain before its first move; a `CommandError` if the others cannot carry it."""
    refusal = cannot_drain_now(session, view, config, host, drained)
    if refusal is not None:
        raise CommandError(refusal)
    left = drain_progress(view.topologies(), view.acks(), host, 0, config.excluded)
    return replace(left, of=left.left)


def begin_drain(session: Session, view: LiveCluster, config: Config, host: str) -> int:
    """Note the wish, and give how many it had; a `CommandError` if the others cannot carry them."""
    drained = view.drained()
    if host in drained:
        return drained[host]
    count = _would_drain(session, view, config, host, drained).of
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
        excluded=config.excluded,
    )


def _wait_drained(look: Callable[[], DrainStatus], limit_s: float, say: Say) -> DrainStatus:
    """Return what is left, once only staying executors are left or the time is over."""
    until_s = time.monotonic() + limit_s
    while True:
        left = patient(look, say)
        is_all = left.left <= len(left.stay) and left.unseen is None
        if is_all or time.monotonic() >= until_s:
            return left
        time.sleep(0.5)


def undrain(
    host: Annotated[str, typer.Argument(help="As `nstorm status` shows it.")],
    conf: Conf,
    output: OutputOption = Output.TABLE,
) -> None:
    """Allow moves to a drained host again."""
    with connected(conf) as session:
        is_drained = host in LiveCluster.of_session(session).drained()
        if not is_drained or not session.delete(f"{DRAINED}/{host}"):
            raise CommandError(f"host {host} is not drained")
    tell(output, {"host": host}, f"executors may move to {host} again")
