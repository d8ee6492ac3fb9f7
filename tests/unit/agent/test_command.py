"""The command of a node: what it refuses, and what it does without."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent import command, daemon
from agent.config import AgentConfig, AgentError
from kvstore.ensemble import Ensemble
from migration import jar

HEAVY = {"numpy", "scipy", "networkx", "typer", "pyarrow", "matplotlib"}
CONF = "storm.local.dir: /var/storm\nnstorm.load.secs: 1\n"


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "storm.yaml"
    path.write_text(CONF)
    return str(path)


def test_it_runs_the_agent_with_the_settings_of_the_file(
    conf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    monkeypatch.setattr(daemon, "run", lambda config, stop: ran.append(config) or 7)  # type: ignore[func-returns-value]
    assert command.main(["--conf", conf]) == 7
    zookeeper = Ensemble("localhost:2181/storm")
    assert ran == [AgentConfig(zookeeper, Path("/var/storm/nstorm"), load_s=1.0)]
    over = ["-c", "nstorm.load.secs=2", "-c", 'storm.zookeeper.servers=["zk1"]']
    assert command.main(["--conf", conf, *over]) == 7
    assert ran[1] == replace(ran[0], zookeeper=Ensemble("zk1:2181/storm"), load_s=2.0)
    assert command.main(["--conf", conf]) == 7
    assert ran[2] == ran[0]


@pytest.mark.parametrize("order", [("adopt-cluster", "--conf"), ("--conf", "adopt-cluster")])
def test_it_adopts_a_cluster(
    conf: str,
    order: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(daemon, "adopt_cluster", lambda config: "c-1")
    arguments = [word for part in order for word in ((part, conf) if part[0] == "-" else (part,))]
    assert command.main(arguments) == 0
    assert capsys.readouterr().out == "this node follows cluster c-1\n"


def test_what_a_user_can_mend_is_one_line(
    conf: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(config: AgentConfig) -> str:
        raise AgentError("there is no cluster")

    monkeypatch.setattr(daemon, "adopt_cluster", refuse)
    assert command.main(["adopt-cluster", "--conf", conf]) == 2
    assert capsys.readouterr().err == "nstorm: there is no cluster\n"
    Path(conf).write_text("nstorm.load.sesc: 1\n")
    assert command.main(["--conf", conf]) == 2
    refused = "nstorm.load.sesc: unknown key, did you mean nstorm.load.secs?"
    assert capsys.readouterr().err == f"nstorm: {conf}: {refused}\n"


def test_the_jar_is_found_without_a_storm_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jar, "files", lambda package: tmp_path)
    assert command.main(["jar"]) == 2
    assert "the jar was not built; with a JDK" in capsys.readouterr().err
    built = tmp_path / "jvm" / "target" / "nstorm-hooks.jar"
    built.parent.mkdir(parents=True)
    built.touch()
    assert command.main(["jar"]) == 0
    assert capsys.readouterr().out == f"{built}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["adopt-cluster"], ["--conf"], ["--conf", "x", "adopt"], ["--con", "x"]]
)
def test_what_cannot_be_typed_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "usage: nstorm-agent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "words", "said"),
    [
        ("agent", ["--help"], "usage: nstorm-agent [-h]"),
        ("controller.cli", ["agent", "--help"], "usage: nstorm agent [-h]"),
        ("controller.cli", ["jar", "--help"], "usage: nstorm jar [-h]\n"),
        ("controller.cli", ["agent", "jar", "--help"], "usage: nstorm agent jar [-h]\n"),
        ("controller.cli", ["--version"], "nstorm "),
    ],
)
def test_no_verb_of_a_node_loads_more_than_a_node_has(
    module: str, words: list[str], said: str
) -> None:
    code = f"""
import runpy, sys
sys.argv[1:] = {words}
try:
    runpy.run_module({module!r}, run_name="__main__")
except SystemExit as ended:
    assert not ended.code, ended.code
print("loaded:", sorted({HEAVY} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(said)
    assert done.stdout.endswith("loaded: []\n")


def test_a_missing_package_is_named_with_what_to_type() -> None:
    code = f"""
import sys
sys.modules["numpy"] = None
sys.argv[1:] = ["decide", {__file__!r}]
from controller.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("nstorm: numpy is missing")
    assert done.stderr.endswith("pip install -c constraints.txt '.[controller]'\n")
