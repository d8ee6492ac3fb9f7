"""``nstorm off`` and ``nstorm on``: the switch of everything that the hooks do."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from msgspec import UNSET

from agent.config import from_storm_yaml as agent_config
from controller.cli.asking import (
    Say,
    beginning,
    connected,
    named_when_slow,
    operator,
    patient,
    seconds,
    teller,
)
from controller.cli.running import Conf
from controller.core.switch import left
from controller.core.times import utc
from controller.core.topology import unpublished
from controller.errors import CommandError
from controller.output import Output, OutputOption, tell
from controller.storm.collect import LiveCluster
from controller.storm.leader import Leader
from controller.storm.mirror import Mirror
from controller.storm.move_record import HISTORY
from kvstore.errors import AccessError, NotConnectedError, SessionLostError
from kvstore.foreign import replace_file
from kvstore.printable import one_line
from kvstore.zookeeper import Session
from migration import ConfigError, storm_yaml, wire
from migration.model import Timing

_LOOK_S = 0.1

Here = Annotated[
    bool, typer.Option("--here", help="Only this node, by a file; needs no ZooKeeper and no agent.")
]


def off(
    conf: Conf,
    reason: Annotated[str, typer.Option(help="Shown by `nstorm status`.")] = "switched off",
    *,
    here: Here = False,
    within: Annotated[str, typer.Option(help="How long to wait, such as 30s.")] = "60s",
    output: OutputOption = Output.TABLE,
) -> None:
    """Switch off all hooks, without a restart, until `nstorm on`.

    Moves under way are undone, or end where they can only go on. Then the hooks in workers,
    supervisors and Nimbus do nothing: executors stay where they are. Where no controller leads,
    this command brings the moves to their end. `nstorm doctor` shows before what would happen.
    Exit code 1: --within was too short, and what is left is printed.
    """
    limit_s = seconds("--within", within)
    text = one_line(f"{reason} ({operator()}, {utc(time.time())})".encode())
    if here:
        file = _file(conf)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text.encode())
        tell(output, {"off": str(file)}, f"the hooks of this node are off as long as {file} exists")
        return
    with connected(conf) as session:
        with beginning("what is switched off stays so: `nstorm on` ends that"):
            session.put(wire.OFF, text.encode())
        with named_when_slow("the agents and JVMs to switch their hooks off"):
            still = _end_moves(session, limit_s, teller(output))
    tell(
        output,
        {"off": text, "left": still},
        f"switched off: {text}",
        *(still or ["all hooks are inert"]),
    )
    raise typer.Exit(1 if still else 0)


def on(conf: Conf, *, here: Here = False, output: OutputOption = Output.TABLE) -> None:
    """Switch the hooks on again.

    A worker that has started in the meantime has no hooks until its next start, or `nstorm adopt`.
    """
    if here:
        file = _file(conf)
        file.unlink(missing_ok=True)
        tell(output, {"on": str(file)}, f"{file} is gone")
        return
    with connected(conf) as session:
        session.put(wire.OFF, b"")
    tell(output, {"on": True}, "switched on; `nstorm status` shows nodes that a file keeps off")


def _file(conf: Path) -> Path:
    try:
        return agent_config(storm_yaml.read(conf)).store_dir / wire.OFF_FILE
    except ConfigError as error:
        raise CommandError(f"{conf}: {error}") from None


def _end_moves(session: Session, limit_s: float, say: Say) -> list[str]:
    """Wait until all is inert, and lead where nobody does; return what is left at the limit."""
    until_s, wake = time.monotonic() + limit_s, threading.Event()
    mirror, timing = Mirror(session, wake), Timing()
    view = LiveCluster(mirror, timing)
    led, applier = None, None

    def look(leader: Leader) -> list[str]:
        nonlocal led, applier
        with suppress(AccessError):  # an operator need not be one who may lead
            leader.refresh()
        views = view.topologies()
        if leader.epoch is not None:
            if applier is None:
                # Late: where somebody leads, this command needs no numpy.
                from controller.storm.apply import Applier  # noqa: PLC0415
                from controller.storm.history import History  # noqa: PLC0415

                applier = Applier(
                    session, mirror=mirror, leader=leader, timing=timing, history=History()
                )
            history = applier.history  # it keeps ends that could not be stored
            if led != leader.epoch:
                view.led()
                history.load(session.read(HISTORY))
                led = leader.epoch
            applier.step(views)
            if history.changed:
                session.put(HISTORY, history.dump())
                history.changed = False
        still = [line for one in views for line in left(one)]
        return still + [
            f"the worker at {one.slot} of {one.topology}, which Nimbus does not publish, "
            "is not inert yet"
            for _, one in unpublished(views, view.acks())
            if one.off is UNSET
        ]

    with _leading(session) as leader:
        while True:
            still = patient(lambda: look(leader), say)
            if not still or time.monotonic() > until_s:
                return list(dict.fromkeys(still))
            wake.wait(_LOOK_S)
            wake.clear()


@contextmanager
def _leading(session: Session) -> Iterator[Leader]:
    leader = Leader(session, f"nstorm off at {socket.gethostname()}")
    try:
        yield leader
    finally:
        # Where ZooKeeper is away, the end of the session resigns.
        with suppress(AccessError, NotConnectedError, SessionLostError):
            leader.resign()
