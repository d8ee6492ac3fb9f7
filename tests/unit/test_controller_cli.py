"""The command line as a stranger meets it: version, help, examples that can be typed."""

import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from controller.cli.main import app

ROOT = Path(__file__).parent.parent.parent


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = dict(commands(get_command(app)))


def help_of(*path: str) -> str:
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="nstorm")
    assert result.exit_code == 0
    return result.output


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"nstorm {project['version']}\n")


def test_what_only_one_command_needs_is_not_loaded_for_all() -> None:
    heavy = {"deploy.bench.moves", "deploy.bench.decide", "deploy.lab.cluster"}
    heavy |= {"controller.sim.engine", "matplotlib", "pyspark", "pymetis"}
    code = f"import sys, controller.cli.main; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", list(COMMANDS)[1:], ids=" ".join)
def test_every_help_ends_with_examples_that_can_be_typed(path: tuple[str, ...]) -> None:
    _, _, examples = help_of(*path).partition("  Example:\n")
    lines = [shlex.split(line, comments=True) for line in examples.splitlines()]
    assert lines
    for nstorm, *words in lines:
        assert nstorm == "nstorm"
        depth = max(n for n in (1, 2) if tuple(words[:n]) in COMMANDS)
        name, arguments = tuple(words[:depth]), words[depth:]
        assert name[: len(path)] == path or path[-1] == "log"
        if arguments != ["--help"]:
            COMMANDS[name].make_context(" ".join(name), arguments).close()


def test_the_list_of_commands_says_what_each_does_in_one_line() -> None:
    listed = help_of()
    for (name, *inner), command in list(COMMANDS.items())[1:]:
        if not inner:
            (line,) = [row for row in listed.splitlines() if row.startswith(f"  {name} ")]
            assert line.endswith(".")
            assert not line.endswith("..."), line
            assert command.rich_help_panel in listed


def test_replay_tells_its_options_by_what_they_are_for() -> None:
    shown = help_of("replay")
    assert shown == help_of("replay", "log")
    sections = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert sections == [
        "Arguments:",
        "A part of the log only:",
        "Other settings than the recorded ones:",
        "Options:",
    ]
