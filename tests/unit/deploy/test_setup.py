"""``deploy/setup.sh`` where things are missing: it prints what to type, or installs them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "deploy" / "setup.sh"
MESSAGE = (
    "nstorm needs Python's venv and headers, gcc, a JDK of 17 or later and Maven. "
    "On Debian, type:\n"
    "    sudo apt-get update && sudo apt-get install -y {}\n"
)


def say(folder: Path, name: str, script: str) -> None:
    """Put a command on the path, in the place of a link and never through it."""
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with Python and what the script itself needs, of a user who is not root."""
    for name in ("bash", "env", "sed", "ln"):
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    say(tmp_path, "python3", f'exec {sys.executable} "$@"')
    say(tmp_path, "id", "echo 1000")
    say(tmp_path, "gcc", "")
    return tmp_path


def run(path: Path, python: str = "python3") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SETUP, python],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_nothing_is_said_where_nothing_is_missing(path: Path) -> None:
    say(path, "javac", "echo javac 21.0.1")
    say(path, "mvn", "")
    done = run(path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("javac", "maven", "packages"),
    [
        (None, False, "default-jdk-headless maven"),
        ("javac 11.0.2", True, "default-jdk-headless"),
        ("javac 1.8.0_392", True, "default-jdk-headless"),
        ("javac 17.0.9", False, "maven"),
    ],
)
def test_who_is_not_root_is_told_what_to_type(
    path: Path, javac: str | None, maven: bool, packages: str
) -> None:
    if javac:
        say(path, "javac", f"echo {javac}")
    if maven:
        say(path, "mvn", "")
    done = run(path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == MESSAGE.format(packages)


def test_without_a_compiler_or_headers_both_are_named(path: Path) -> None:
    say(path, "javac", "echo javac 21.0.1")
    say(path, "mvn", "")
    (path / "gcc").unlink()
    say(path, "python3", '[[ "$2" != *Python.h* ]]')
    assert run(path).stderr == MESSAGE.format("python3-dev gcc libc6-dev")


def test_an_old_python_is_named(path: Path) -> None:
    say(path, "python3.9", 'if [ "$1" = -V ]; then echo Python 3.9.2; else exit 1; fi')
    done = run(path, "python3.9")
    assert done.returncode == 1
    assert "nstorm needs Python 3.11 or later, and python3.9 is Python 3.9.2" in done.stderr


@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="no Debian")
@pytest.mark.parametrize("works", [True, False])
def test_root_on_debian_has_it_installed(path: Path, works: bool) -> None:
    say(path, "id", "echo 0")
    say(path, "jdk", "echo javac 17.0.9")
    install = f"ln -s {path}/id {path}/mvn; ln -s {path}/jdk {path}/javac" if works else "true"
    say(
        path, "apt-get", f'echo "apt-get $*" >> {path}/log; [ "$1" != install ] || {{ {install}; }}'
    )
    done = run(path)
    assert done.returncode == (0 if works else 1)
    assert (path / "log").read_text().splitlines() == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends default-jdk-headless maven",
    ]
    assert ("not found on the PATH" in done.stderr) is not works
