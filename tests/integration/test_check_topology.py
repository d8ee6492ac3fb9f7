"""``nstorm check-topology`` on the lab's workloads, with the real jars and no cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.lab.home.assemble import homes
from deploy.lab.layout import WORKLOAD_JAR

STORM = homes().storm
SUBMIT = ("--class", "nstorm.workload.Submit", "--storm-home", str(STORM))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "controller.cli", "check-topology", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"}
    )


def ways(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {
        topology["name"]: {one["component"]: one["way"] for one in topology["components"]}
        for topology in json.loads(done.stdout)
    }


def test_each_topology_that_is_submitted_is_judged_as_a_worker_would(tmp_path: Path) -> None:
    given = (str(WORKLOAD_JAR), str(tmp_path), "wordcount", "threads", "windows")
    found = ways(run(*given, *SUBMIT, "--prepare", "-o", "json"))
    # Its spout counts what it has emitted, which nobody gives it again.
    assert (found["wordcount"]["spout"], found["wordcount"]["split"]) == ("stays", "carry")
    assert found["threads"]["lookup"] == "stays"
    assert found["windows"]["window"] == "stays"


def test_without_prepare_verdicts_are_guesses_and_nothing_is_opened(tmp_path: Path) -> None:
    done = run(str(WORKLOAD_JAR), str(tmp_path), "wordcount", *SUBMIT)
    assert done.returncode == 0, done.stderr
    assert "live?" in done.stdout
    assert "a first guess" in done.stdout
    assert list(tmp_path.iterdir()) == []


def source(folder: Path, body: str) -> Path:
    """Make a jar of one main class."""
    code = folder / "Main.java"
    code.write_text(
        "import org.apache.storm.*; import org.apache.storm.topology.*;"
        "import org.apache.storm.testing.*; import java.util.*;"
        "public class Main { static void submit() throws Exception {"
        "  TopologyBuilder builder = new TopologyBuilder();"
        '  builder.setSpout("words", new TestWordSpout());'
        '  StormSubmitter.submitTopologyWithProgressBar("made", new HashMap<>(),'
        "    builder.createTopology()); }"
        f"  public static void main(String[] args) throws Exception {{ {body} }} }}"
    )
    command = ["javac", "-cp", f"{STORM}/lib/*", "-d", str(folder), str(code)]
    subprocess.run(command, check=True, capture_output=True)
    manifest = folder / "manifest"
    manifest.write_text("Main-Class: Main\n")
    path = folder / "made.jar"
    command = ["jar", "cfm", str(path), str(manifest), "-C", str(folder), "Main.class"]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.mark.parametrize(
    "body",
    [
        "submit(); System.exit(3);",
        "submit(); Thread.sleep(1_000_000);",
        'submit(); throw new RuntimeException("asked Nimbus");',
        "new Thread(() -> { while (true) { } }).start(); submit();",
    ],
)
def test_however_a_main_class_ends_what_it_has_submitted_counts(body: str, tmp_path: Path) -> None:
    done = run(str(source(tmp_path, body)), "--storm-home", str(STORM), "-o", "json")
    assert ways(done) == {"made": {"words": "spout"}}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("System.exit(0);", "called System.exit before it had submitted a topology"),
        ('throw new IllegalArgumentException("no name");', "IllegalArgumentException: no name"),
        ("new LocalCluster();", "it starts a LocalCluster; give the main class the arguments"),
        ("", "ended without a topology"),
    ],
)
def test_why_a_main_class_submitted_nothing_is_shown(body: str, why: str, tmp_path: Path) -> None:
    done = run(str(source(tmp_path, body)), "--storm-home", str(STORM))
    assert done.returncode == 2
    assert why in done.stderr
