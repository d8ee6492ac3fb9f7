"""``nstorm top``: the cluster as it is now, again and again."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Annotated

import typer
from msgspec import UNSET
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

from controller.cli.asking import Host, Topology, connected
from controller.cli.operate import look
from controller.cli.places import only
from controller.cli.running import Conf
from controller.cli.status_document import StatusDocument
from controller.cli.status_view import FILLED, decided, ended, filled, head, percent
from controller.console import Console
from controller.core.hostnames import shown as named
from controller.core.resources import RESOURCES
from controller.core.times import utc
from controller.errors import CommandError, ControllerError
from controller.storm.collect import LiveCluster
from kvstore.errors import StoreError
from migration import ConfigError
from migration.meters import TO_SEND

_BAR = 20


def top(
    conf: Conf,
    topology: Topology = "",
    host: Host = "",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
) -> None:
    """Show placement, load, traffic and moves, live, until Ctrl-C.

    Where the output is no terminal, it is shown once.
    """
    console = Console()
    shown: list[RenderableType] = []
    live: Live | None = None
    # Ctrl-C is how one leaves.
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        while True:
            try:
                with connected(conf, says=not shown) as session:
                    view = LiveCluster.of_session(session)
                    while True:
                        document = look(session, view)
                        shown = _screen(document, topology, host, is_first=not shown)
                        shown_s = time.time()
                        if live is None:  # not before, for it hides what a slow start prints
                            screen = Live(console=console, screen=console.is_terminal)
                            live = stack.enter_context(screen)
                        live.update(Group(*shown), refresh=True)
                        if not console.is_terminal:
                            return
                        time.sleep(every)
            except (ConfigError, ControllerError, StoreError) as error:
                if live is None:
                    raise
                why = f"NOT READ since {utc(shown_s)}: {error}"
                live.update(Group(why, *shown), refresh=True)
                time.sleep(every)


def _screen(
    document: StatusDocument, topology: str, host: str, *, is_first: bool
) -> list[RenderableType]:
    """Make a screen; what was there before and is gone now may come back."""
    try:
        return [*as_screen(only(document, topology, host))]
    except CommandError as error:
        if is_first:
            raise
        return [*head(document), str(error)]


def as_screen(document: StatusDocument) -> Iterator[RenderableType]:
    """Make what fits on a screen of a status: workers by load, without each executor."""
    hosts = document.hosts
    yield from head(document)
    for topology in document.topologies:
        yield from decided(topology, hosts)
        here = Counter((e.slot, e.component) for e in topology.executors)
        columns = [name for row in RESOURCES for name in (row.name, "")]
        workers = Table("worker", *columns, *FILLED, "waiting", "to send", "executors", box=None)
        for worker in topology.workers:
            counts = [f"{n} {name}" for (slot, name), n in here.items() if slot == worker.slot]
            loads = [cell for share in worker.shares for cell in (percent(share), _bar(share))]
            own = (e.queue for e in topology.executors if e.slot == worker.slot)
            queues = [tuples for tuples in own if tuples is not None]
            waiting = f"{sum(queues):,}" if queues else "?"
            left = None if worker.meters is UNSET else worker.meters.get(TO_SEND.column)
            to_send = "?" if left is None else f"{left:,.0f}"
            cells = (*loads, *filled(worker), waiting, to_send, ", ".join(counts))
            workers.add_row(named(worker.slot, hosts), *cells)
        yield workers
        links = Table("from", "to", "tuples/s", "MB/s", box=None)
        for row in topology.links:
            ends = (hosts.get(end, end) for end in (row.source, row.target))
            size = "?" if row.bytes_per_s is UNSET else f"{row.bytes_per_s / 1e6:,.3g}"
            links.add_row(*ends, f"{row.tps:,.0f}", size)
        if topology.links:
            yield links
    yield from ended(document.ended_moves[-5:], hosts)


def _bar(share: float | None) -> str:
    return ("█" * round(min(share or 0, 1) * _BAR)).ljust(_BAR, "·")
