"""``nstorm status`` and ``move``."""

from typing import Annotated

import typer

from controller.cli.asking import (
    Host,
    Topology,
    ask,
    connected,
    end,
    operator,
)
from controller.cli.places import only, slot_of
from controller.cli.running import Conf
from controller.cli.status_document import (
    StatusDocument,
    as_document,
    as_json,
    schema,
)
from controller.errors import CommandError
from controller.output import Output, OutputOption
from controller.storm.collect import LiveCluster
from controller.storm.command_record import Command
from controller.storm.leader_status import read
from kvstore.zookeeper import Session
from migration import ModelError
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
        unpublished=view.unpublished(),
        status_s=view.status_s(),
        cluster=session.hosts,
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
    # rich: `move` needs none
    from controller.cli.status_view import as_tables  # noqa: PLC0415
    from controller.console import Console  # noqa: PLC0415

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
