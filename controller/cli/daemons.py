"""``nstorm controller``."""

import os
import socket
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import structlog
import typer

from controller.cli.running import new_app, run
from controller.compiling import compiling_beside
from controller.config import Config, Mode, from_storm_yaml
from controller.output import example
from controller.storm.live import LiveController
from controller.storm.telemetry import Telemetry
from kvstore.exposition import exposed
from kvstore.pulse import Pulse
from kvstore.service import ended_by_signals, serve
from kvstore.zookeeper import Session
from migration import storm_yaml
from migration.settings import metrics_at

log = structlog.get_logger()

CONTROLLER_EXAMPLE = example("nstorm controller --conf storm.yaml --mode auto")

Conf = Annotated[
    Path, typer.Option("--conf", help="The storm.yaml of this node, with its nstorm.* keys.")
]


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
    config, zookeeper = storm_yaml.read_as(conf, from_storm_yaml)
    metrics = metrics_at(config.keys, "metrics.port")
    if mode is not None:
        config = replace(config, mode=mode)
    with ended_by_signals() as stop:
        _run(config, zookeeper, metrics, stop)


def _run(
    config: Config, zookeeper: str, metrics: tuple[str, int] | None, stop: threading.Event
) -> None:
    pulse = Pulse()
    telemetry = None if metrics is None else Telemetry(config)
    name = f"{socket.gethostname()}:{os.getpid()}"

    def work(session: Session) -> None:
        log.info("controller_started", name=name, mode=config.mode.value, zookeeper=zookeeper)
        LiveController(session, config, name=name, pulse=pulse, telemetry=telemetry).run(stop)

    with ExitStack() as beside:
        if metrics is not None and telemetry is not None:
            beside.enter_context(exposed(metrics, "controller", telemetry, pulse))
        beside.enter_context(compiling_beside())
        serve(zookeeper, work, stop, pulse=pulse)


def controller_alone() -> None:
    """Run ``nstorm controller`` without loading the other commands: it has to lead in seconds."""
    app = new_app()
    app.callback()(lambda: None)
    app.command("controller", epilog=CONTROLLER_EXAMPLE)(run_controller)
    run(app, "nstorm")
