"""Puts the commands together; only the module of the command that was typed is loaded."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperOption

from controller.cli import VERBS, print_version
from controller.cli.running import new_app, run
from controller.output import SectionedCommand, SectionedGroup, example

DAEMONS = "Daemons and the jar"
ASK = "Look and ask"
RULE = "Control what moves"
FILES = "Work without nstorm in the cluster"


class _Verb(NamedTuple):
    """Where the function of a verb is, its section of the help, and its examples."""

    module: str
    section: str
    examples: tuple[str, ...] = ()


def _verb(module: str, section: str, *examples: str) -> _Verb:
    return _Verb(f"controller.{module}", section, examples)


# In the order of the help.
_TABLE: Mapping[str, _Verb] = {
    **{name: _verb("cli", DAEMONS) for name in VERBS},
    "status": _verb(
        "cli.operate",
        ASK,
        "nstorm status --conf storm.yaml",
        "nstorm status --conf storm.yaml -o json",
    ),
    "top": _verb("cli.top", ASK, "nstorm top --conf storm.yaml --topology wc"),
    "page": _verb(
        "cli.page",
        ASK,
        "nstorm page --conf storm.yaml",
        "nstorm page --conf storm.yaml --listen 10.0.0.5:8089 --token-file /etc/nstorm/page.token",
    ),
    "doctor": _verb(
        "cli.doctor",
        ASK,
        "nstorm doctor --conf storm.yaml",
        "nstorm doctor --notify --conf storm.yaml",
    ),
    "bundle": _verb("cli.bundle", ASK, "nstorm bundle --conf storm.yaml"),
    "move": _verb("cli.operate", ASK, "nstorm move wc 7-7 node-2:6701 --conf storm.yaml --wait"),
    "plan": _verb("cli.why", ASK, "nstorm plan wc --conf storm.yaml"),
    "explain": _verb(
        "cli.why",
        ASK,
        "nstorm explain 7-7 --conf storm.yaml",
        "nstorm explain 7-7 2026-11-25T03:12 --conf storm.yaml",
    ),
    "history": _verb("cli.moves", ASK, "nstorm history wc --conf storm.yaml"),
    "show": _verb("cli.moves", ASK, "nstorm show m17 --conf storm.yaml"),
    "cancel": _verb("cli.control", ASK, "nstorm cancel m17 --conf storm.yaml"),
    "undo": _verb("cli.moves", ASK, "nstorm undo 2 --conf storm.yaml"),
    "mode": _verb(
        "cli.modes",
        RULE,
        "nstorm mode approve --conf storm.yaml",
        "nstorm mode wc auto --conf storm.yaml",
    ),
    "approve": _verb("cli.modes", RULE, "nstorm approve p-1a2b3c --conf storm.yaml"),
    "reject": _verb("cli.modes", RULE, "nstorm reject p-1a2b3c --conf storm.yaml"),
    "pause": _verb(
        "cli.control", RULE, 'nstorm pause --for 30m --reason "release" --conf storm.yaml'
    ),
    "freeze": _verb(
        "cli.control", RULE, "nstorm freeze --until 2026-12-27T06:00+01:00 --conf storm.yaml"
    ),
    "resume": _verb("cli.control", RULE, "nstorm resume --conf storm.yaml"),
    "off": _verb("cli.switch", RULE, 'nstorm off --reason "a fault" --conf storm.yaml'),
    "on": _verb("cli.switch", RULE, "nstorm on --conf storm.yaml"),
    "drain": _verb("cli.drain", RULE, "nstorm drain node-3 --conf storm.yaml --within 60s"),
    "roll": _verb(
        "cli.roll",
        RULE,
        """nstorm roll --run 'ssh "$NSTORM_HOST" sudo reboot-and-wait' --conf storm.yaml""",
    ),
    "adopt": _verb(
        "cli.adopt",
        RULE,
        """nstorm adopt wc --conf storm.yaml --run """
        """'ssh "$NSTORM_HOST" sudo pkill -f "[w]orker.port=$NSTORM_PORT"'""",
    ),
    "undrain": _verb("cli.drain", RULE, "nstorm undrain node-3 --conf storm.yaml"),
    "check-topology": _verb(
        "cli.check",
        FILES,
        "nstorm check-topology my-topology.jar production",
        "nstorm check-topology my-topology.jar --class com.example.Main --prepare -o json",
    ),
    "check-storm": _verb("cli.check", FILES, "nstorm check-storm /opt/apache-storm-2.8.4"),
    "assess": _verb(
        "cli.assess",
        FILES,
        "nstorm assess http://ui:8080 --html report.html",
        "nstorm assess /var/storm/nstorm-journal --topology wc",
    ),
    "decide": _verb(
        "cli.decide",
        FILES,
        "nstorm decide snapshot.json --policy gather --steps 20 --set load.high=0.9",
    ),
    "ingest": _verb(
        "ingest.command",
        FILES,
        "nstorm ingest worker.log.metrics --out journal",
        "nstorm ingest edges.csv placement.csv cpu.csv --out journal",
    ),
    "replay": _verb(
        "cli.replay",
        FILES,
        "nstorm replay /var/storm/nstorm-journal --from 2025-03-01T08:00",
        "nstorm replay /var/storm/nstorm-journal --set load.high=0.7",
    ),
    "tune": _verb(
        "tune.command", FILES, "nstorm tune build/demo/journal", "nstorm tune journal --topology wc"
    ),
    "report": _verb(
        "weeks.command",
        FILES,
        "nstorm report /var/storm/nstorm-journal",
        "nstorm report journal --topology wc -o json",
    ),
    "pipeline": _verb(
        "tune.pipeline",
        FILES,
        "nstorm pipeline ticks journal --tables tables",
        "nstorm pipeline answers journal --space space.yaml -o json",
    ),
}


class _Commands(Mapping[str, Any]):
    """The commands by name, each made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        verb, one = _TABLE[name], new_app()
        if name in VERBS:
            _pass_on(one, name)
        else:
            function = getattr(import_module(verb.module), name.replace("-", "_"))
            how: Any = {"cls": SectionedCommand, "epilog": example(*verb.examples)}
            one.command(name, rich_help_panel=verb.section, **how)(function)
        command: Any = typer.main.get_command(one)
        if any(param.name == "conf" and param.required for param in command.params):
            command.params.append(_over_the_file())
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_TABLE)

    def __len__(self) -> int:
        return len(_TABLE)


def _over_the_file() -> TyperOption:
    """Make `-c`, which no function takes: `storm_yaml` knows what was given."""
    from migration import storm_yaml  # noqa: PLC0415  # not every verb reads one

    return TyperOption(
        param_decls=["-c"],
        multiple=True,
        expose_value=False,
        callback=lambda _context, _option, given: storm_yaml.give(given),
        metavar=storm_yaml.GIVEN,
        help=storm_yaml.GIVEN_HELP,
    )


def _pass_on(one: typer.Typer, name: str) -> None:
    """Add a verb that has a help of its own and reads its arguments itself."""
    as_given = {"allow_extra_args": True, "ignore_unknown_options": True}

    @one.command(
        name,
        help=VERBS[name].__doc__,
        rich_help_panel=DAEMONS,
        add_help_option=False,
        context_settings=as_given,
    )
    def _run(context: typer.Context) -> None:
        raise typer.Exit(VERBS[name](context.args))


class _Group(SectionedGroup):
    """Lists the commands without loading them."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.commands = _Commands()  # type: ignore[assignment]

    def listed(self) -> Iterator[tuple[str, str, str]]:
        for name, verb in _TABLE.items():
            yield verb.section, name, _first_line(name, verb)


def _first_line(name: str, verb: _Verb) -> str:
    """Read the first line of a verb's docstring, without loading its module."""
    if name in VERBS:
        return (VERBS[name].__doc__ or "").partition("\n")[0]
    spec = find_spec(verb.module)
    assert spec is not None and spec.origin is not None
    function = rf'^def {name.replace("-", "_")}\(.*?^    """(.*?)$'
    found = re.search(function, Path(spec.origin).read_text(), re.DOTALL | re.MULTILINE)
    if found is not None:
        return found[1].removesuffix('"""')
    raise LookupError(f"{verb.module} has no function for {name}")


app = new_app(_Group, completes=True)


def _say_version(wanted: bool) -> None:
    if wanted:
        raise typer.Exit(print_version())


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
