"""Puts the commands together, and turns errors into one line and an exit code."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from controller.cli import VERBS
from controller.cli.check import check_topology
from controller.cli.control import approve, freeze, mode, pause, reject, resume
from controller.cli.decide import decide
from controller.cli.doctor import doctor
from controller.cli.operate import drain, move, status, undrain
from controller.cli.roll import roll
from controller.cli.running import new_app, run
from controller.cli.top import top
from controller.cli.why import cancel, explain, history, plan, show, undo
from controller.output import SectionedCommand, example
from controller.replay.command import replay
from controller.tune.command import tune

DAEMONS = "Daemons and the jar"
ASK = "Look and ask"
RULE = "Control what moves"
FILES = "Work on files, without a cluster"

app = new_app(completes=True)


def _add(command: Callable[..., None], section: str, *lines: str) -> None:
    app.command(cls=SectionedCommand, rich_help_panel=section, epilog=example(*lines))(command)


def _pass_on(name: str) -> None:
    """List a verb that has a help of its own and reads its arguments itself."""
    as_given = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.command(
        name,
        help=VERBS[name].__doc__,
        rich_help_panel=DAEMONS,
        add_help_option=False,
        context_settings=as_given,
    )
    def _run(context: typer.Context) -> None:
        raise typer.Exit(VERBS[name](context.args))


# In the order of the help.
_pass_on("agent")
_pass_on("controller")
_pass_on("jar")
_add(status, ASK, "nstorm status --conf storm.yaml", "nstorm status --conf storm.yaml -o json")
_add(top, ASK, "nstorm top --conf storm.yaml --topology wc")
_add(doctor, ASK, "nstorm doctor --conf storm.yaml")
_add(move, ASK, "nstorm move wc 7-7 node-2:6701 --conf storm.yaml --wait")
_add(plan, ASK, "nstorm plan wc --conf storm.yaml")
_add(
    explain,
    ASK,
    "nstorm explain 7-7 --conf storm.yaml",
    "nstorm explain 7-7 2026-11-25T03:12 --conf storm.yaml",
)
_add(history, ASK, "nstorm history wc --conf storm.yaml")
_add(show, ASK, "nstorm show m17 --conf storm.yaml")
_add(cancel, ASK, "nstorm cancel m17 --conf storm.yaml")
_add(undo, ASK, "nstorm undo 2 --conf storm.yaml")
_add(mode, RULE, "nstorm mode approve --conf storm.yaml", "nstorm mode wc auto --conf storm.yaml")
_add(approve, RULE, "nstorm approve p-1a2b3c --conf storm.yaml")
_add(reject, RULE, "nstorm reject p-1a2b3c --conf storm.yaml")
_add(pause, RULE, 'nstorm pause --for 30m --reason "release" --conf storm.yaml')
_add(freeze, RULE, "nstorm freeze --until 2026-12-27T06:00+01:00 --conf storm.yaml")
_add(resume, RULE, "nstorm resume --conf storm.yaml")
_add(drain, RULE, "nstorm drain node-3 --conf storm.yaml --within 60s")
_add(
    roll, RULE, """nstorm roll --run 'ssh "$NSTORM_HOST" sudo reboot-and-wait' --conf storm.yaml"""
)
_add(undrain, RULE, "nstorm undrain node-3 --conf storm.yaml")
_add(
    check_topology,
    FILES,
    "nstorm check-topology my-topology.jar production",
    "nstorm check-topology my-topology.jar --class com.example.Main --prepare -o json",
)
_add(decide, FILES, "nstorm decide snapshot.json --policy gather --steps 20 --set load.high=0.9")
_add(
    replay,
    FILES,
    "nstorm replay /var/storm/nstorm-journal --from 2025-03-01T08:00",
    "nstorm replay /var/storm/nstorm-journal --set load.high=0.7",
)
_add(tune, FILES, "nstorm tune build/demo/journal", "nstorm tune journal --topology wc")


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
    run(app, "nstorm")
