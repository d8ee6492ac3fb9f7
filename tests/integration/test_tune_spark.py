"""The same stages on Spark: on this machine, and on a cluster of which an executor is killed."""

import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pyspark
import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from controller.config import build
from controller.errors import TuneError
from controller.journal.lines import QUARANTINE, QUARANTINE_FILE
from controller.journal.writer import Bounds
from controller.pipeline.engine import ROOT, Engine
from controller.pipeline.fold import Fold
from controller.pipeline.schemas import HOURS
from controller.pipeline.spark import spark
from controller.pipeline.stages import answers, concluded, episodes, hours, raw, trials
from controller.pipeline.stages import ticks as decode
from controller.tune.choice import SetOutcome
from controller.tune.space import Space, parameter_sets
from controller.weeks.log_report import OfHours
from controller.weeks.run import answered
from tests.recorded_world import record
from tests.tuned_world import laid_out, span

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S, STOP_S = 300.0, 60.0
# pyspark forgets the pipe to a JVM that does not start.
LEFT_OPEN = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
SPACE = Space({"asc.threshold": (0.002, 1.0), "policy": ("gather", "otd")})
SETS = parameter_sets(SPACE, build({}).keys)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two leaders with several segments each."""
    folder = tmp_path_factory.mktemp("log")
    small = Bounds(segment_bytes=30_000)
    record(folder, ticks=range(18), mode="advise", bounds=small)
    record(folder, ticks=range(14, 26), mode="auto", bounds=small, name="two", epoch=1)
    for name in ("one", "two"):
        assert len(list(folder.glob(f"*-{name}-*"))) > 1
    (folder / QUARANTINE_FILE).write_text(
        f"{','.join(QUARANTINE)}\n"
        '"a ""b"".csv",7,no number,"1\n2"\nc.csv,,thread above a core,\nc.csv,8,no number,"\\"\n'
    )
    return folder


@dataclass(frozen=True)
class Made:
    """What the stages come to: how each set did, the load by hour, and what follows from it."""

    outcomes: list[SetOutcome]
    by_hour: list[dict[str, Any]]
    answers: bytes


def stages(engine: Engine, journal: Path, told: Callable[[float], None]) -> Made:
    ticks = decode(engine, raw(engine, [str(journal)]), lambda share: None)
    assert ticks.left_out == (
        "4 ticks of a leader that had lost its lead",
        "2 in quarantine.csv: no number",
        "1 in quarantine.csv: thread above a core",
    )
    configs = [one.config for one in SETS]
    folders = trials(engine, episodes(ticks), configs, told, {"wc-1"})
    figures = answers(engine, folders, len(SETS))
    outcomes = [SetOutcome(one, *both) for one, both in zip(SETS, figures, strict=True)]
    added_up = hours(engine, episodes(ticks), lambda share: None)
    by_hour = engine.rows(added_up, HOURS)
    order = [("hour", "ascending"), ("unit", "ascending")]
    work = partial(answered, shown=["wc-1"], high_frac=0.01)
    return Made(outcomes, by_hour.sort_by(order).to_pylist(), concluded(engine, added_up, work))


@pytest.fixture(scope="module")
def expected(journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    tables = tmp_path_factory.mktemp("tables")
    found = stages(Fold(tables), journal, lambda share: None)
    assert len({outcome.chosen_by.moves for outcome in found.outcomes}) > 2
    assert [row["unit"] for row in found.by_hour].count(None) == 1
    assert len(found.by_hour) > 2
    answers = msgspec.msgpack.decode(found.answers, type=OfHours)
    assert [one.topology for one in answers.needs] == ["wc-1"]
    assert {one.node for one in answers.hosts} == {one.node for one in answers.full}
    assert {one.node for one in answers.hosts} == {"host-a", "host-b"}
    return found


@dataclass
class Cluster:
    """Spark's master and workers as processes of this machine."""

    master: str
    workers: list[psutil.Process]

    def executors(self) -> list[psutil.Process]:
        """Give the JVMs in which tasks run."""
        found = []
        for child in (child for worker in self.workers for child in worker.children()):
            with contextlib.suppress(psutil.Error):
                if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                    found.append(child)
        return found


@pytest.fixture
def without_nstorm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers have a Python with the libraries that nstorm needs, but not nstorm."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    venv.create(tmp_path / "bare")
    python = tmp_path / "bare" / "bin" / "python"
    (own,) = (tmp_path / "bare").glob("lib/*/site-packages")
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    tried = [str(python), "-c", "import numpy, msgspec, pyarrow, controller"]
    result = subprocess.run(tried, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "No module named 'controller'" in result.stderr
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))


@pytest.fixture
def cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_nstorm: None
) -> Iterator[Cluster]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started: list[psutil.Process] = []
    log = tmp_path / "cluster.log"

    def start(kind: str, *arguments: str) -> psutil.Process:
        name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        with log.open("ab") as file:
            process = psutil.Popen(
                [CLASS, name, *here, *arguments], stdout=file, stderr=subprocess.STDOUT
            )
        started.append(process)
        return process

    def wait_for(text: str, count: int) -> None:
        deadline = time.monotonic() + START_S
        while log.read_text().count(text) < count:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)

    try:
        start("Master", "--port", str(port))
        wait_for("I have been elected leader", 1)
        master = f"spark://127.0.0.1:{port}"
        at = ("--work-dir", str(tmp_path / "work"), "--cores", "1", "--memory", "1g", master)
        workers = [start("Worker", *at) for _ in range(2)]
        wait_for("Registering worker", 2)
        yield Cluster(master, workers)
    finally:
        below = [child for process in started for child in process.children(recursive=True)]
        for process in reversed(started):
            process.terminate()
        _, alive = psutil.wait_procs([*started, *below], STOP_S)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, STOP_S)


def test_spark_finds_what_one_process_finds_and_goes_on_where_it_broke_off(
    journal: Path, expected: Made, tmp_path: Path
) -> None:
    told: list[float] = []

    def break_off(share: float) -> None:
        told.append(share)
        if share > 0.3:
            raise KeyboardInterrupt

    tables = tmp_path / "tables"
    with (
        pytest.raises(KeyboardInterrupt),
        spark("local[2]", tmp_path / "spark.log", str(tables)) as engine,
    ):
        stages(engine, journal, break_off)
    whole = {path: path.stat().st_mtime_ns for path in tables.rglob("_SUCCESS")}
    assert whole
    told.clear()
    with spark("local[2]", tmp_path / "spark.log", str(tables)) as engine:
        assert stages(engine, journal, told.append) == expected
        # What was whole is as it was.
        assert all(path.stat().st_mtime_ns == at for path, at in whole.items())
        # The same tables without Spark.
        assert stages(Fold(tables), journal, told.append) == expected
    assert told[-1] == 1.0
    assert any((tmp_path / "spark-events").iterdir())


def test_spark_reads_what_this_process_has_decoded_whatever_the_name(tmp_path: Path) -> None:
    one = span(20, [1], lambda tick: [(0, 1, 10.0)])
    first = dataclasses.replace(one.first, topology="größe-1-7")
    here, made = laid_out([dataclasses.replace(one, first=first)], tmp_path / "tables")
    (episode,) = episodes(made)
    with spark("local[1]", tmp_path / "spark.log", str(tmp_path / "tables")) as engine:
        found = [list(one.ticks(episode, episode.folders)) for one in (here, engine)]
    assert [[batch.num_rows for batch in batches] for batches in found] == [[20], [20]]


def archive(folder: Path) -> dict[str, str]:
    """Pack nstorm for workers, with its compiled loops, as docs/tuning.md does."""
    with tarfile.open(folder / "site.tar.gz", "w:gz", compresslevel=1) as file:
        for name in ("controller", "kvstore", "migration"):
            file.add(ROOT.parent / name, name, filter=_no_java)
    return {
        "spark.archives": f"{folder}/site.tar.gz#site",
        "spark.executorEnv.PYTHONPATH": "site",
    }


def _no_java(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if file.name == "migration/jvm" else file


def test_a_cluster_without_nstorm_survives_the_death_of_an_executor(
    cluster: Cluster, journal: Path, expected: Made, tmp_path: Path
) -> None:
    killed: list[psutil.Process] = []

    def kill_one(share: float) -> None:
        if not killed:
            victim = cluster.executors()[0]
            victim.kill()
            killed.append(victim)

    log, tables, conf = tmp_path / "spark.log", str(tmp_path / "tables"), archive(tmp_path)
    with spark(cluster.master, log, tables, conf) as engine:
        assert stages(engine, journal, kill_one) == expected
    assert len(killed) == 1
    assert "Lost executor" in log.read_text()


def test_the_command_needs_no_argument_but_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "journal", ticks=range(30), mode="advise")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "controller.py").write_text("raise RuntimeError('not ours')\n")
    (tmp_path / "space.yaml").write_text("asc.threshold: [0, 0.01, 0.1]\nload.ewma: [0.3, 1]\n")
    given = ["tune", "journal", "--space", "space.yaml", "-o", "json"]
    alone = CliRunner().invoke(app, given)
    assert alone.exit_code == 0, alone.output
    assert not Path("build/tune/spark.log").exists()
    result = CliRunner().invoke(app, [*given, "--master", "local[2]", "--tables", "again"])
    assert result.stdout == alone.stdout
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert len(document["ranking"]) == 7
    assert document["today"]["settings"] == "as today (mode auto)"
    assert [Path(name).name for name in document["files"]][:2] == ["front.png", "report.html"]
    assert all(Path(name).is_file() for name in document["files"])
    assert "parameter sets" in result.stderr
    assert "Spark: http://" in result.stderr
    # Spark speaks into its log alone.
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "build/tune/spark.log").stat().st_size > 0


def test_spark_submit_runs_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path / "journal", ticks=range(30), mode="advise")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    # As docs/tuning.md does.
    Path("run.py").write_text("from controller.cli import main\nmain()\n")
    submit = [str(CLASS.with_name("spark-submit")), "--conf", "spark.app.name=mine", "run.py"]
    given = ["pipeline", "episodes", "journal", "-o", "json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent), "PYSPARK_PYTHON": sys.executable}
    result = subprocess.run(
        [*submit, *given, "--master", "local[2]", "--tables", f"file:{tmp_path}/tables"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    alone = CliRunner().invoke(app, given)
    # spark-submit puts both outputs of the command into one.
    assert result.stdout.startswith("Spark: http://")
    assert result.stdout.endswith(alone.stdout)


def test_another_spark_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.4.1")
    with (
        pytest.raises(TuneError, match=r"^pyspark 3\.4\.1 is too old, 3\.5 is needed: pip install"),
        spark("local[1]", tmp_path / "spark.log", "tables"),
    ):
        pytest.fail("that Spark is not known")


def test_a_jvm_that_dies_is_one_sentence_and_its_ui_is_of_this_machine(
    journal: Path, tmp_path: Path
) -> None:
    started: list[psutil.Process] = []

    def die(share: float) -> None:
        # The tests before it may have left a ZooKeeper to those after it.
        children = psutil.Process().children()
        (jvm,) = (one for one in children if any("SparkSubmit" in word for word in one.cmdline()))
        ports = [one.laddr.ip for one in jvm.net_connections() if one.status == "LISTEN"]
        assert ports and {ip.removeprefix("::ffff:") for ip in ports} == {"127.0.0.1"}
        jvm.kill()
        started.append(jvm)

    with (
        pytest.raises(TuneError, match=r"^Spark's JVM has ended with code -9; see .*spark\.log\."),
        spark("local[1]", tmp_path / "spark.log", str(tmp_path / "tables")) as engine,
    ):
        stages(engine, journal, die)
    assert len(started) == 1


@LEFT_OPEN
def test_a_master_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(TuneError, match=r"Spark did not start: .*[Mm]aster"),
        spark("nonsense", tmp_path / "spark.log", "tables"),
    ):
        pytest.fail("there is no such master")


@LEFT_OPEN
def test_a_jvm_that_does_not_start_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho it is too old >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with (
        pytest.raises(TuneError, match="did not start: it is too old; it needs Java 17"),
        spark("local[1]", tmp_path / "spark.log", "tables"),
    ):
        pytest.fail("there is no Java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with (
        pytest.raises(TuneError, match=r"none in JAVA_HOME, .*; type: apt-get install"),
        spark("local[1]", tmp_path / "spark.log", "tables"),
    ):
        pytest.fail("there is no Java")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", os.devnull)
    with (
        pytest.raises(TuneError, match="there is none on the path; type: apt-get"),
        spark("local[1]", tmp_path / "spark.log", "tables"),
    ):
        pytest.fail("there is no Java")
