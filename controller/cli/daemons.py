"""``nstorm controller``."""

import argparse
import os
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from controller.config import Config, Mode, from_storm_yaml
from controller.errors import ControllerError
from controller.policies.registry import policy
from controller.storm.live import LiveController
from kvstore.endpoint import Endpoint
from kvstore.ensemble import Ensemble
from kvstore.errors import StoreError
from kvstore.logs import log, log_to_stderr
from kvstore.printable import printable
from kvstore.pulse import Pulse
from kvstore.service import ended_by_signals, serve
from kvstore.zookeeper import Session
from migration import ConfigError, storm_yaml
from migration.settings import metrics_at


def main(arguments: Sequence[str]) -> int:
    """Run the command line; errors a user can mend end in one line and exit code 2."""
    parser = argparse.ArgumentParser(
        "nstorm controller",
        description="Run the controller; of several, one leads, the others wait.\n\n"
        "It steps down at once when ZooKeeper does not answer, and starts again in another\n"
        "session when its own is lost. Moves under way stay in the plan for the next leader.",
        epilog="  Example:\n    nstorm controller --conf storm.yaml --mode auto",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    text = "the storm.yaml of this node, with its nstorm.* keys"
    parser.add_argument("--conf", type=Path, required=True, metavar="FILE", help=text)
    text = (
        "how far it goes without an operator; by default nstorm.mode of the storm.yaml, else advise"
    )
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], help=text)
    storm_yaml.add_option(parser)
    given = parser.parse_args(arguments)
    log_to_stderr()
    try:
        storm_yaml.give(given.given)
        config, zookeeper = storm_yaml.read_as(given.conf, from_storm_yaml)
        metrics = metrics_at(config.keys, "metrics.port")
        if given.mode is not None:
            config = replace(config, mode=Mode(given.mode))
        policy(config.policy, config.options)  # or it would be refused in each cycle
        with ended_by_signals() as stop:
            _run(config, zookeeper, metrics, stop)
    except (ConfigError, ControllerError, StoreError) as error:
        print(f"nstorm: {printable(str(error))}", file=sys.stderr)
        return 2
    return 0


def _run(
    config: Config, zookeeper: Ensemble, metrics: Endpoint | None, stop: threading.Event
) -> None:
    pulse, telemetry = Pulse(), None
    name = f"{socket.gethostname()}:{os.getpid()}"

    def work(session: Session) -> None:
        log.info("controller_started", name=name, mode=config.mode.value, **session.facts)
        LiveController(session, config, name=name, pulse=pulse, telemetry=telemetry).run(stop)

    with ExitStack() as beside:
        if metrics is not None:
            # Late: metrics that are not asked for take no time.
            from controller.storm.telemetry import Telemetry  # noqa: PLC0415
            from kvstore.exposition import exposed  # noqa: PLC0415

            telemetry = Telemetry(config, pulse)
            beside.enter_context(exposed(metrics, "controller", telemetry, pulse))
        serve(zookeeper, work, stop, pulse=pulse)
