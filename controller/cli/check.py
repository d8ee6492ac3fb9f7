"""How a topology would move, and what the hooks would do in a Storm, without a cluster."""

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from controller.console import Console
from controller.errors import CommandError
from controller.output import Output, OutputOption
from migration import jar as hooks

MAIN = "nstorm.check.CheckTopology"
# The JVM judges for 5 s of CPU a component at most, prepares for 10 s, and ends.
LIMIT_S = 1800
LAST_LINES = 20


def check_topology(
    jar: Annotated[Path, typer.Argument(help="The jar of the topology, as for storm jar.")],
    main_args: Annotated[
        list[str] | None,
        typer.Argument(help="Arguments of its main class; after a -- if one begins with a -."),
    ] = None,
    *,
    main_class: Annotated[
        str,
        typer.Option(
            "--class", metavar="CLASS", help="Its main class. By default that of its manifest."
        ),
    ] = "",
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Call prepare() of each bolt, as a worker does before it reads a bolt. The call "
            "may open the bolt's connections.",
        ),
    ] = False,
    storm_home: Annotated[
        Path | None,
        typer.Option(
            envvar="STORM_HOME",
            metavar="DIR",
            help="Storm's folder, with lib/ and conf/. By default that of storm on the path.",
        ),
    ] = None,
    storm_lib: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Storm's jars, without a whole Storm.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show how the components of a topology would move.

    For a component that stays, show what to declare. The command runs the main class of the jar and
    takes the topology that it submits. It sends nothing to a cluster. Only after prepare() is it
    known what a bolt keeps: without --prepare the verdict is a first guess. docs/moves.md has the
    ways.
    """
    named = main_class or _main_class(jar)
    found = _run(_class_path(jar, storm_home, storm_lib), named, prepare, main_args or [])
    if found["error"]:
        raise CommandError(f"{jar}: {_plain(found['error'])}")
    if output is Output.JSON:
        print(json.dumps(found["topologies"], indent=1))
    else:
        _print(found["topologies"], prepare)


def check_storm(
    home: Annotated[
        Path, typer.Argument(metavar="DIR", help="An unpacked Storm, with lib/ and lib-worker/.")
    ],
) -> None:
    """Show what the hooks would do in each kind of JVM of a Storm.

    Nothing is installed, and nothing of Storm runs. Exit code 1: one of them would move nothing, or
    would run stock Storm.
    """
    if not (home / "lib").is_dir():
        raise CommandError(f"{home}: there is no lib/ in it; name the folder of an unpacked Storm")
    command = [_java(), "-cp", str(hooks.path()), "nstorm.entry.CheckStorm", str(home)]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


def _main_class(jar: Path) -> str:
    try:
        with zipfile.ZipFile(jar) as file:
            manifest = (
                file.read("META-INF/MANIFEST.MF").decode(errors="replace").replace("\r\n", "\n")
            )
    except FileNotFoundError:
        raise CommandError(f"{jar}: there is no such file") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise CommandError(f"{jar}: not a jar that can be read: {error}") from None
    except KeyError:
        manifest = ""
    # A line of more than 72 bytes goes on in the next, after a space.
    for line in manifest.replace("\n ", "").splitlines():
        if line.startswith("Main-Class:"):
            return line.partition(":")[2].strip()
    raise CommandError(f"{jar}: its manifest has no Main-Class; name one with --class")


def _class_path(jar: Path, home: Path | None, lib: Path | None) -> str:
    """Lay out what `storm jar` would, but for the server: a LocalCluster would start daemons."""
    if not jar.is_file():
        raise CommandError(f"{jar}: there is no such file")
    folders: Sequence[Path] = [lib] if lib else []
    if not folders:
        storm = shutil.which("storm")
        home = home or (Path(storm).resolve().parent.parent if storm else None)
        if home is None:
            raise CommandError("no Storm was found; name it with --storm-home or --storm-lib")
        folders = [home / "lib", home / "extlib"]
    jars = [one for folder in folders for one in sorted(folder.glob("*.jar"))]
    if not any(one.name.startswith("storm-client") for one in jars):
        raise CommandError(f"{folders[0]}: there is no storm-client-*.jar in it")
    client = [one for one in jars if not one.name.startswith("storm-server")]
    conf = [home / "conf"] if home and not lib else []
    return os.pathsep.join(str(one) for one in (*client, *conf, jar, hooks.path()))


def _java() -> str:
    java = hooks.java()
    if java is None:
        raise CommandError("there is no java; install a Java of 17 or later, or set JAVA_HOME")
    return java


def _run(
    class_path: str, main_class: str, prepare: bool, main_args: Sequence[str]
) -> Mapping[str, Any]:
    command = [_java(), f"-javaagent:{hooks.path()}", "-cp", class_path, MAIN]
    command += [main_class, "prepare" if prepare else "read", *main_args]
    with tempfile.TemporaryFile("w+") as errors:
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CommandError(f"its JVM has not ended after {LIMIT_S} s") from None
        errors.seek(0)
        lines = errors.read().splitlines()
    last = [_plain(one) for one in lines if not one.startswith("nstorm: hooks ")][-LAST_LINES:]
    try:
        found: Mapping[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise CommandError("\n".join(["its JVM gave no answer; it printed:", *last])) from None
    if found["error"] and last:
        typer.echo("\n".join(last), err=True)
    return found


def _plain(text: str) -> str:
    """Show text of others; a terminal would obey control characters in it."""
    return "".join(c if c.isprintable() else " " for c in text)


def _print(topologies: Sequence[Mapping[str, Any]], prepare: bool) -> None:
    console = Console()
    for topology in topologies:
        table = Table(
            "component", "class", "moves", "why", "declare", title=Text(_plain(topology["name"]))
        )
        for one in topology["components"]:
            name = f"{one['component']} ({one['executors']})"
            way = f"{one['way']}?" if one["guess"] else one["way"]
            short = one["class"].rpartition(".")[2]
            # Names and reasons are not ours: a [ in them is no markup.
            cells = (name, short, way, one["why"], one["declare"] or "")
            table.add_row(*(Text(_plain(cell)) for cell in cells))
        console.print(table)
    if any(one["guess"] for topology in topologies for one in topology["components"]):
        better = "" if prepare else "--prepare makes a better one, and "
        print(f"?: a first guess; {better}a move looks at the object itself")
