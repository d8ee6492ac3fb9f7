"""``nstorm check-topology`` before a JVM starts, and what it makes of that JVM's answer."""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.errors import CommandError
from migration import jar as hooks

COMPONENT = {
    "component": "count[0]",
    "kind": "bolt",
    "class": "com.example.Count",
    "executors": 3,
    "way": "stays",
    "why": "has threads in its field pool",
    "declare": "nstorm.move: {count: live} if those may live on",
    "guess": True,
}


def jar(folder: Path, manifest: str | None = "Main-Class: com.example.Main\n") -> Path:
    path = folder / "topology.jar"
    with zipfile.ZipFile(path, "w") as file:
        if manifest is not None:
            file.writestr("META-INF/MANIFEST.MF", manifest)
    return path


@pytest.fixture
def storm(tmp_path: Path) -> Path:
    for name in ("lib/storm-client-2.8.3.jar", "lib/storm-server-2.8.3.jar", "extlib/own.jar"):
        path = tmp_path / "storm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "storm"


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in for Java and the hooks: the arguments are written down, the answer is `answer`."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {home}/arguments\necho "nstorm: hooks active" >&2\n'
        f'echo "said this" >&2\ncat {home}/answer\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.delenv("STORM_HOME", raising=False)
    monkeypatch.setattr(hooks, "path", lambda: tmp_path / "hooks.jar")
    yield home


def answers(home: Path, document: Mapping[str, Any] | str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    (home / "answer").write_text(text)


def ran(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["check-topology", *map(str, arguments)])


def refusal(*arguments: object) -> str:
    result = ran(*arguments)
    assert isinstance(result.exception, CommandError), result.output
    return str(result.exception)


def test_the_main_class_of_the_manifest_runs_on_storms_client(
    tmp_path: Path, storm: Path, java: Path
) -> None:
    answers(java, {"error": None, "topologies": [{"name": "wc", "components": [COMPONENT]}]})
    path = jar(tmp_path, "Main-Class: com.example.a.very.long.name.of.a.package.t\n hat.Goes.On\n")
    result = ran(path, "production", "--storm-home", storm, "-o", "json", "--", "-x")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == [{"name": "wc", "components": [COMPONENT]}]
    given = (java / "arguments").read_text().splitlines()
    assert given[0] == f"-javaagent:{tmp_path}/hooks.jar"
    assert [one.removeprefix(str(tmp_path)) for one in given[2].split(os.pathsep)] == [
        "/storm/lib/storm-client-2.8.3.jar",
        "/storm/extlib/own.jar",
        "/storm/conf",
        "/topology.jar",
        "/hooks.jar",
    ]
    main = "com.example.a.very.long.name.of.a.package.that.Goes.On"
    assert given[3:] == ["nstorm.check.CheckTopology", main, "read", "production", "-x"]


def test_another_class_and_jars_are_taken_as_named(tmp_path: Path, storm: Path, java: Path) -> None:
    answers(java, {"error": None, "topologies": []})
    lib = storm / "lib"
    assert ran(jar(tmp_path), "--class", "Other", "--prepare", "--storm-lib", lib).exit_code == 0
    given = (java / "arguments").read_text().splitlines()
    assert given[3:] == ["nstorm.check.CheckTopology", "Other", "prepare"]
    assert f"{storm}/conf" not in given[2]


def test_a_guess_is_marked_and_text_of_others_is_no_markup(
    tmp_path: Path, storm: Path, java: Path
) -> None:
    answers(java, {"error": None, "topologies": [{"name": "[wc]", "components": [COMPONENT]}]})
    shown = ran(jar(tmp_path), "--storm-home", storm).output
    for text in ("[wc]", "count[0] (3)", "Count", "stays?", "a first guess"):
        assert text in shown


def test_no_text_of_others_reaches_a_terminal_as_a_command(
    tmp_path: Path, storm: Path, java: Path
) -> None:
    evil = {**COMPONENT, "component": "a\x1b]0;title\x07b"}
    answers(java, {"error": None, "topologies": [{"name": "w\x1bc", "components": [evil]}]})
    assert "\x1b" not in ran(jar(tmp_path), "--storm-home", storm).output
    answers(java, {"error": "threw \x1b[2J", "topologies": []})
    assert "\x1b" not in refusal(jar(tmp_path), "--storm-home", storm)


def test_storm_is_found_by_its_command(
    tmp_path: Path, storm: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(java, {"error": None, "topologies": []})
    (storm / "bin").mkdir()
    (storm / "bin" / "storm").write_text("")
    (storm / "bin" / "storm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{storm}/bin:{os.environ['PATH']}")
    assert ran(jar(tmp_path)).exit_code == 0


def test_what_is_missing_is_named(
    tmp_path: Path, storm: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, at = jar(tmp_path), ("--storm-home", storm)
    assert refusal(tmp_path / "no.jar", *at).endswith("no.jar: there is no such file")
    assert refusal(tmp_path / "no.jar", "--class", "A", *at).endswith("there is no such file")
    broken = tmp_path / "broken.jar"
    broken.write_text("text")
    assert "not a jar that can be read: " in refusal(broken, *at)
    assert "storm-client-*.jar" in refusal(there, "--storm-home", tmp_path)
    assert "name one with --class" in refusal(jar(tmp_path, None), *at)
    assert "name one with --class" in refusal(jar(tmp_path, "Created-By: me\n"), *at)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "--storm-home or --storm-lib" in refusal(jar(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "there is no java" in refusal(jar(tmp_path), *at)


def test_what_the_main_class_did_wrong_is_shown_with_its_last_lines(
    tmp_path: Path, storm: Path, java: Path
) -> None:
    answers(java, {"error": "its main class, A, threw B", "topologies": []})
    result = ran(jar(tmp_path), "--storm-home", storm)
    assert str(result.exception).endswith("topology.jar: its main class, A, threw B")
    assert result.stderr == "said this\n"


def test_a_jvm_without_an_answer_is_quoted(tmp_path: Path, storm: Path, java: Path) -> None:
    answers(java, "")
    why = "its JVM gave no answer; it printed:\nsaid this"
    assert refusal(jar(tmp_path), "--storm-home", storm) == why
