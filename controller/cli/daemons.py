"""``nstorm agent`` and ``nstorm controller``: the two processes that run beside Storm."""

import os
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import structlog
import typer

import agent.config
import agent.daemon
from agent.connection import serve
from agent.daemon import ended_by_signals
from controller.config import Config, Mode, from_storm_yaml
from controller.core.decide import prepare
from controller.output import example
from controller.storm.live import LiveController
from kvstore.zookeeper import Session
from migration import storm_yaml

log = structlog.get_logger()

Conf = Annotated[
    Path, typer.Option("--conf", help="The storm.yaml of this node, with its nstorm.* keys.")
]

agent_app = typer.Typer(
    invoke_without_command=True, epilog=example("nstorm agent --conf /opt/storm/conf/storm.yaml")
)


@agent_app.callback()
def run_agent(
    context: typer.Context,
    conf: Annotated[
        Path | None, typer.Option("--conf", help="The storm.yaml of this node.")
    ] = None,
) -> None:
    """Run the agent of this node, between ZooKeeper and its JVMs.

    One on every supervisor node, as the user of Storm; it may be stopped and started again at any
    time.
    """
    if context.invoked_subcommand is not None:
        return
    if conf is None:
        raise typer.BadParameter("is needed to run the agent", param_hint="--conf")
    with ended_by_signals() as stop:
        raise typer.Exit(
            agent.daemon.run(agent.config.from_storm_yaml(storm_yaml.read(conf)), stop)
        )


@agent_app.command(
    "adopt-cluster", epilog=example("nstorm agent adopt-cluster --conf /opt/storm/conf/storm.yaml")
)
def adopt_cluster(conf: Conf) -> None:
    """Follow the new cluster after ZooKeeper was rebuilt.

    Until then an agent that knows another cluster takes no plans.
    """
    cluster = agent.daemon.adopt_cluster(agent.config.from_storm_yaml(storm_yaml.read(conf)))
    typer.echo(f"this node follows cluster {cluster}")


def run_controller(
    conf: Conf,
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="observe: only measure. advise: say what it would do. auto: do it. By default "
            "nstorm.mode of the storm.yaml, else advise."
        ),
    ] = None,
) -> None:
    """Run the controller; of several, one leads, the others wait.

    It steps down at once when ZooKeeper does not answer, and begins anew in another session when
    its own is lost. Moves under way stay in the plan for the next leader.
    """
    config, zookeeper = from_storm_yaml(storm_yaml.read(conf))
    if mode is not None:
        config = replace(config, mode=mode)
    with ended_by_signals() as stop:
        _run(config, zookeeper, stop)


def _run(config: Config, zookeeper: str, stop: threading.Event) -> None:
    name = f"{socket.gethostname()}:{os.getpid()}"

    def work(session: Session) -> None:
        begun_s = time.monotonic()
        prepare()
        log.info("decisions_compiled", spent_s=round(time.monotonic() - begun_s, 1))
        log.info("controller_started", name=name, mode=config.mode.value, zookeeper=zookeeper)
        LiveController(session, config, name=name).run(stop)

    serve(zookeeper, work, stop)
