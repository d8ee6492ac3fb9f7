"""Puts the commands together, and turns errors into one line and an exit code."""

import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from controller.cli import lab
from controller.cli.daemons import AS_GIVEN, run_agent, run_controller
from controller.cli.decide import decide
from controller.cli.operate import move, pause, resume, status
from controller.errors import ControllerError
from controller.output import SectionedGroup, example
from controller.replay.command import app as replay_app
from controller.reproduce.command import reproduce
from controller.sim.command import simulate
from controller.tune.command import tune
from deploy.demo.command import demo
from deploy.lab import LabError
from kvstore.errors import StoreError
from kvstore.service import log_to_stderr
from migration import ConfigError

BESIDE = "Beside Storm"
ASK = "To look and to ask"
FILES = "From files, without a cluster"
HERE = "On a Storm cluster of this machine's own, to try and to measure"

app = typer.Typer(
    name="nstorm",
    cls=SectionedGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _add(command: Callable[..., None], section: str, *lines: str, name: str | None = None) -> None:
    made = app.command(name, rich_help_panel=section, epilog=example(*lines))
    made(command)


# In the order of the help.
app.command("agent", rich_help_panel=BESIDE, add_help_option=False, context_settings=AS_GIVEN)(
    run_agent
)
_add(run_controller, BESIDE, "nstorm controller --conf storm.yaml --mode auto", name="controller")
_add(status, ASK, "nstorm status --conf storm.yaml", "nstorm status --conf storm.yaml -o json")
_add(move, ASK, "nstorm move wc 7-7 2f5c1c0d-node-2:6701 --conf storm.yaml --wait")
_add(pause, ASK, 'nstorm pause "release of today" --conf storm.yaml')
_add(resume, ASK, "nstorm resume --conf storm.yaml")
_add(decide, FILES, "nstorm decide snapshot.json --policy target --steps 20 --set load.high=0.9")
_add(simulate, FILES, "nstorm simulate tests/golden/scenarios/drift.txt")
app.add_typer(replay_app, name="replay", rich_help_panel=FILES)
_add(tune, FILES, "nstorm tune build/demo/journal", "nstorm tune journal --topology wc")
_add(reproduce, FILES, "nstorm reproduce 004 --out plots")
_add(demo, HERE, "nstorm demo")
app.add_typer(lab.app, name="lab", rich_help_panel=HERE)
app.add_typer(lab.bench_app, name="bench", rich_help_panel=HERE)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nstorm {version('nstorm')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Adapts a running Apache Storm cluster: moves single executors between live workers."""


def main() -> None:
    """Run the command line; errors a user can mend end in one line and exit code 2."""
    log_to_stderr()
    # So that what was begun is cleaned up; daemons and the lab put handlers of their own instead.
    usual = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app(prog_name="nstorm")
    except (ConfigError, ControllerError, LabError, StoreError) as error:
        print(f"nstorm: {error}", file=sys.stderr)
        sys.exit(2)
    finally:
        signal.signal(signal.SIGTERM, usual)
