"""What is built and checked elsewhere is built and checked as here."""

import hashlib
import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
MAKE = re.compile(r"^ *(?:- run: )?(make .*)$", re.MULTILINE)


def hosted() -> tuple[str, dict[str, Any]]:
    """Give the workflow of a hosted runner, as text and as read."""
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    return text, yaml.safe_load(text)


def test_a_hosted_runner_makes_what_the_script_makes() -> None:
    text, read = hosted()
    made = MAKE.findall(text)
    assert made == MAKE.findall((ROOT / ".ci/run").read_text())
    steps = read["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == made
    rules = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets = {word for line in made for word in line.split()[1:] if word[0].isalpha()}
    assert targets == {"lint", "fetch", "test"}
    assert targets <= rules


def test_the_first_row_is_the_oldest_python_and_java_that_are_supported() -> None:
    _, read = hosted()
    first = read["jobs"]["test"]["strategy"]["matrix"]["include"][0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={first['python']}"
    pom = (ROOT / "migration/jvm/pom.xml").read_text()
    assert f"<maven.compiler.release>{first['java']}</maven.compiler.release>" in pom


def test_a_hosted_runner_may_only_read_and_its_actions_are_pinned() -> None:
    _, read = hosted()
    assert read["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in read["jobs"]["test"]["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@(v\d+|[0-9a-f]{40})", one) for one in used)


def test_all_that_is_installed_is_pinned_by_hashes() -> None:
    """A package of a package too; pip checks no file of what it finds no hash for."""
    row = re.compile(
        r"^([\w.-]+)==([\w.]+)(?: ; .+)? \\\n +--hash=sha256:[0-9a-f]{64}", re.MULTILINE
    )
    locks = [(ROOT / name).read_text() for name in ("constraints.txt", "pip.txt")]
    pins = {
        canonicalize_name(name): version for lock in locks for name, version in row.findall(lock)
    }
    installed = {
        canonicalize_name(one.name): one.version for one in importlib.metadata.distributions()
    }
    assert {name for name, _ in installed.items() - pins.items()} == {"nstorm", "nstorm-lab"}


POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  {}
  <groupId>some</groupId>
  <artifactId>{}</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  {}
</project>
"""
PARENT = (
    "<parent><groupId>some</groupId><artifactId>parent</artifactId><version>1</version>"
    "<relativePath/></parent>"
)
REPOSITORY = "<repositories><repository><id>central</id><url>{}</url></repository></repositories>"


@pytest.mark.parametrize("right", [True, False])
def test_maven_refuses_what_has_another_checksum(tmp_path: Path, right: bool) -> None:
    """Maven alone warns, and builds with it."""
    served = tmp_path / "served/some/parent/1/parent-1.pom"
    served.parent.mkdir(parents=True)
    served.write_text(POM.format("", "parent", ""))
    checksum = hashlib.sha1(served.read_bytes()).hexdigest() if right else "0" * 40
    served.with_name("parent-1.pom.sha1").write_text(checksum)
    child = tmp_path / "deep/down/pom.xml"
    child.parent.mkdir(parents=True)
    child.write_text(POM.format(PARENT, "child", REPOSITORY.format(f"file://{tmp_path}/served")))
    (tmp_path / ".mvn").symlink_to(ROOT / ".mvn")
    command = [
        "mvn",
        "-q",
        "-B",
        f"-Dmaven.repo.local={tmp_path}/own",
        "-f",
        str(child),
        "validate",
    ]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert (done.returncode == 0) is right, done.stdout
    assert right or "Checksum validation failed" in done.stdout
