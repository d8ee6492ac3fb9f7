"""The command line as a stranger meets it: version, help, examples that can be typed."""

import os
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
from deploy.command import app as deploy_app
from tests.bench.command import app as bench_app
from tests.papers.command import app as papers_app
from tests.unit.controller.conftest import Nstorm

ROOT = Path(__file__).parents[4]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


APPS = {
    "nstorm": app,
    "python -m deploy": deploy_app,
    "python -m tests.bench": bench_app,
    "python -m tests.papers": papers_app,
}
COMMANDS = {name: dict(commands(get_command(one))) for name, one in APPS.items()}


def help_of(*path: str, name: str = "nstorm") -> str:
    result = CliRunner().invoke(APPS[name], [*path, "--help"], prog_name=name)
    assert result.exit_code == 0
    return result.output


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"nstorm {project['version']}\n")


def loaded(code: str, heavy: set[str]) -> str:
    told = f"print(sorted(name for name in {heavy} if sys.modules.get(name)))"
    code = f"import atexit, sys; atexit.register(lambda: {told}); {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


DECIDING = {"numpy", "pydantic", "controller.core.fit", "controller.policies.registry"}
SHOWING = {"rich", "kazoo.recipe", "controller.storm.collect"}


@pytest.mark.parametrize(
    ("arguments", "does_without"),
    [
        (["--version"], DECIDING | SHOWING - {"kazoo.recipe"}),
        (["--help"], DECIDING | SHOWING - {"kazoo.recipe"}),
        (["check-topology", "--help"], DECIDING | {"controller.storm.collect"}),
        (["pause", "--help"], DECIDING | {"controller.config", "rich"}),
        (["cancel", "--help"], DECIDING | {"controller.config", "rich"}),
        (
            ["plan", "--help"],
            DECIDING | {"controller.config", "controller.replay.playback", "rich"},
        ),
        (["status", "--help"], DECIDING | {"controller.config", "controller.cli.why", "rich"}),
        (["move", "--help"], DECIDING | {"controller.config", "rich"}),
        (
            ["history", "--help"],
            DECIDING | {"controller.config", "controller.replay.playback", "rich"},
        ),
        (["mode", "--help"], DECIDING | {"controller.config", "rich"}),
        (["approve", "--help"], DECIDING | {"controller.config", "rich"}),
        (["reject", "--help"], DECIDING | {"controller.config", "rich"}),
        (["show", "--help"], DECIDING | {"controller.config", "controller.cycle", "rich"}),
        (["undo", "--help"], DECIDING | {"controller.config", "controller.cycle", "rich"}),
        (["off", "--help"], DECIDING | {"controller.config", "controller.cycle", "rich"}),
        (["bundle", "--help"], DECIDING | {"controller.cycle", "rich"}),
        (["drain", "--help"], DECIDING | {"controller.cycle", "rich"}),
        (["roll", "--help"], DECIDING | {"controller.cycle", "rich"}),
        (["adopt", "--help"], DECIDING | {"controller.cycle", "rich"}),
        (["doctor", "--help"], DECIDING | {"controller.cycle", "rich", "urllib.request"}),
        (["top", "--help"], DECIDING | {"controller.config"}),
        (["decide", "--help"], DECIDING | {"controller.storm.collect"}),
        (["ingest", "--help"], DECIDING | {"controller.config", "rich"}),
        (["tune", "--help"], DECIDING | {"matplotlib", "pyspark", "controller.storm.collect"}),
    ],
    ids=" ".join,
)
def test_a_verb_loads_only_what_it_needs(arguments: list[str], does_without: set[str]) -> None:
    code = f"sys.argv[1:] = {arguments}; from controller.cli import main; main()"
    told = loaded(code, does_without | {"deploy", "scipy", "tests"})
    assert told.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        "assess nosuch",
        "decide nosuch",
        "page --conf nosuch",
        "pipeline ticks nosuch",
        "replay nosuch",
        "report nosuch",
        "tune nosuch",
    ],
)
def test_a_path_that_is_gone_is_refused_before_what_is_slow_is_loaded(arguments: str) -> None:
    code = f"sys.argv[1:] = {arguments.split()}\nfrom controller.cli import main\n"
    code += "try:\n main()\nexcept SystemExit as ended:\n print(ended.code)"
    slow = DECIDING | {"controller.cycle", "fastapi", "rich.table", "uvicorn"}
    assert loaded(code, slow) == "2\n[]\n"


@pytest.mark.parametrize(
    ("arguments", "most"),
    [("--version", 240), ("--help", 200), ("pause --help", 390), ("plan --help", 390)],
)
def test_what_is_typed_in_a_hurry_starts_with_few_modules(arguments: str, most: int) -> None:
    code = f"sys.argv[1:] = {arguments.split()}; from controller.cli import main; main()"
    code = f"import atexit, sys; atexit.register(lambda: print(len(sys.modules))); {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) <= most


def test_a_controller_that_starts_loads_nothing_that_its_first_decision_does_without() -> None:
    heavy = {"deploy", "matplotlib", "networkx", "prometheus_client", "pydantic"}
    heavy |= {"pyspark", "rich", "scipy", "tests", "typer"}
    start = "from controller.cli import run_controller; run_controller(['--conf', '/nowhere'])"
    assert loaded(start, heavy) == "[]\n"


EVERY = [(name, path) for name, known in COMMANDS.items() for path in known if path]


@pytest.mark.parametrize(("name", "path"), EVERY, ids=[" ".join([n, *p]) for n, p in EVERY])
def test_every_help_ends_with_examples_that_can_be_typed(name: str, path: tuple[str, ...]) -> None:
    _, _, examples = help_of(*path, name=name).partition("  Example:\n")
    assert examples
    known = COMMANDS[name]
    for line in examples.splitlines():
        typed, words = line.strip(), shlex.split(line.strip().removeprefix(name), comments=True)
        assert typed.startswith(name)
        depth = max(n for n in (1, 2) if tuple(words[:n]) in known)
        found, arguments = tuple(words[:depth]), words[depth:]
        assert found[: len(path)] == path
        if arguments != ["--help"]:
            known[found].make_context(" ".join(found), arguments).close()


# Those that go on until they are ended; `jar` and `check-storm` print what the jar does.
WITHOUT_AN_ANSWER = {
    ("agent",),
    ("check-storm",),
    ("controller",),
    ("install",),
    ("jar",),
    ("page",),
    ("top",),
}
VERBS = [path for path in COMMANDS["nstorm"] if path]


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_that_has_an_answer_prints_it_for_programs_too(path: tuple[str, ...]) -> None:
    has = "-o, --output <table|json>" in help_of(*path)
    assert has == (path not in WITHOUT_AN_ANSWER)


@pytest.mark.parametrize("path", [p for p in VERBS if p != ("jar",)], ids=" ".join)
def test_every_verb_refuses_in_one_sentence_and_by_exit_code_2(
    path: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nstorm: Nstorm,
) -> None:
    monkeypatch.setattr("controller.cli.running.log_to_stderr", lambda _: None)
    monkeypatch.setattr("agent.command.log_to_stderr", lambda: None)
    monkeypatch.setattr("controller.cli.daemons.log_to_stderr", lambda: None)
    monkeypatch.chdir(tmp_path)  # none of the files is there that its example names
    example = help_of(*path).partition("  Example:\n")[2].splitlines()[0]
    _, *words = shlex.split(example, comments=True)
    said = nstorm(*words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("nstorm: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("2026-02-30", "--until: '2026-02-30' is no time such as 2026-12-01T06:00"),
        ("tomorrow", "--until: 'tomorrow' is no time such as 2026-12-01T06:00"),
        ("2020-01-01", "--until: 2020-01-01 is past"),
    ],
)
def test_a_freeze_that_cannot_be_is_refused_before_zookeeper_is_asked(
    until: str, said: str
) -> None:
    result = CliRunner().invoke(app, ["freeze", "--until", until, "--conf", "/nowhere"])
    assert str(result.exception) == said


@pytest.mark.parametrize("verb", ["controller", "mode auto", "drain h", "explain 4"])
def test_a_window_that_never_opens_is_refused_before_zookeeper_is_asked(
    verb: str, tmp_path: Path
) -> None:
    conf = tmp_path / "storm.yaml"
    conf.write_text("nstorm.windows: ['0 0 30 2 * UTC']\n")
    command = [sys.executable, "-m", "controller.cli", *verb.split(), "--conf", str(conf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = f"nstorm: {conf}: nstorm.windows: '0 0 30 2 * UTC': Bad day-of-month\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_what_is_echoed_does_not_fill_the_terminal(nstorm: Nstorm) -> None:
    for words in (["move", "wc", "7" * 60_000, "s1:6701", "--conf", "x"], ["z" * 60_000]):
        refused = nstorm(*words).err
        assert "…" in refused
        assert len(refused) < 400


def test_the_list_of_commands_says_what_each_does_in_one_line() -> None:
    listed = help_of()
    for (name, *inner), command in list(COMMANDS["nstorm"].items())[1:]:
        if not inner:
            (line,) = [row for row in listed.splitlines() if row.startswith(f"  {name} ")]
            assert line.endswith(".")
            assert not line.endswith("..."), line
            assert command.rich_help_panel in listed


def test_replay_tells_its_options_by_what_they_are_for() -> None:
    shown = help_of("replay")
    sections = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert sections == [
        "Arguments:",
        "Options:",
        "Other settings than the recorded ones:",
    ]


@pytest.mark.parametrize(
    ("executor", "slot", "said"),
    [
        ("7", "s1:6701", "executor '7' is not a task range such as 7-7"),
        ("7-7", "host6701", "slot 'host6701' is not <supervisor-id>:<port>"),
    ],
)
def test_a_move_is_read_before_zookeeper_is_asked(executor: str, slot: str, said: str) -> None:
    # The file is not there: it would be the next thing to read.
    result = CliRunner().invoke(app, ["move", "wc", executor, slot, "--conf", "/nowhere"])
    assert str(result.exception) == said


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "nstorm st", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "nstorm st"}),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "nstorm st", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        ),
    ],
)
def test_shells_complete_commands(shell: str, asked: dict[str, str]) -> None:
    def say(instruction: str) -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("nstorm")],
            env={**os.environ, **asked, "_NSTORM_COMPLETE": f"{instruction}_{shell}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.stdout

    assert "nstorm" in say("source")
    assert "status" in say("complete")
    assert "pause" not in say("complete")
