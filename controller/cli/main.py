"""Puts the commands together, and turns errors into one line and an exit code."""

import logging
import sys

import structlog
import typer

from agent.errors import AgentError
from controller.cli import lab
from controller.cli.daemons import agent_app, run_controller
from controller.cli.decide import decide
from controller.cli.operate import move, pause, resume, status
from controller.errors import ControllerError
from controller.replay.command import app as replay_app
from controller.reproduce.command import reproduce
from controller.sim.command import simulate
from deploy.demo.command import demo
from deploy.lab import LabError
from kvstore.errors import StoreError

app = typer.Typer(
    name="nstorm",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(agent_app, name="agent")
app.command("controller")(run_controller)
app.command()(status)
app.command()(move)
app.command()(pause)
app.command()(resume)
app.command()(decide)
app.command()(simulate)
app.command()(reproduce)
app.command()(demo)
app.add_typer(replay_app, name="replay")
app.add_typer(lab.app, name="lab")
app.add_typer(lab.bench_app, name="bench")


@app.callback()
def _root() -> None:
    """Adapts a running Apache Storm cluster: moves single executors between live workers."""


def main() -> None:
    """Run the command line; errors a user can mend end in one line and exit code 2."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # Standard output belongs to the answer alone.
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    # kazoo tells of every failed attempt at length; ours are told with the countdown.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        app()
    except (AgentError, ControllerError, LabError, StoreError) as error:
        print(f"nstorm: {error}", file=sys.stderr)
        sys.exit(2)
