"""What Spark cannot read is one sentence, without a JVM."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import controller.pipeline.spark as module
from controller.errors import TuneError
from controller.pipeline.spark import spark

BUCKET = "s3a://closed/journal"


class Py4JJavaError(Exception):
    """As py4j raises it: a stack trace, and the exception of the JVM."""

    def __init__(self, *causes: str) -> None:
        super().__init__("An error occurred while calling o42.load.\n\tat java.base/Thread.run")
        self.java_exception = Java(causes)


Py4JJavaError.__module__ = "py4j.protocol"


class Java:
    def __init__(self, causes: tuple[str, ...]) -> None:
        self._causes = causes

    def getCause(self) -> "Java | None":
        return Java(self._causes[1:]) if self._causes[1:] else None

    def getMessage(self) -> str:
        return self._causes[0]

    def toString(self) -> str:
        return self._causes[0]


class Reader:
    def format(self, name: str) -> "Reader":
        return self

    def option(self, key: str, value: str) -> "Reader":
        return self

    def load(self, path: str) -> Any:
        raise Py4JJavaError(
            f"java.io.IOException: cannot list {path}",
            f"java.nio.file.AccessDeniedException: {path}: getFileStatus: 403 Forbidden",
        )


@pytest.fixture
def _no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a session be all that there is of Spark."""
    context = SimpleNamespace(
        defaultParallelism=2,
        uiWebUrl="http://here",
        _accumulatorServer=SimpleNamespace(),
        stop=lambda: None,
    )
    session = SimpleNamespace(read=Reader(), sparkContext=context)
    conf = SimpleNamespace(setExecutorEnv=lambda *pair: None, set=lambda *pair: None)
    conf.setMaster = conf.setAppName = lambda name: conf
    of_spark = {
        "pyspark": SimpleNamespace(SparkContext=SimpleNamespace()),
        "pyspark.sql": SimpleNamespace(SparkSession=lambda context: session),
    }
    pyspark = SimpleNamespace(SparkConf=lambda: conf, SparkContext=lambda **options: context)
    monkeypatch.setattr(module, "loaded_pyspark", lambda: pyspark)
    monkeypatch.setattr(module, "import_module", of_spark.__getitem__)
    # As `spark-submit` has it: the JVM is no process of ours.
    monkeypatch.setattr(module, "_launch", lambda *given: SimpleNamespace(proc=None))


@pytest.mark.usefixtures("_no_jvm")
def test_a_bucket_without_rights_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(TuneError) as raised,
        spark("yarn", tmp_path / "spark.log", "hdfs:///tables") as engine,
    ):
        engine.files([BUCKET])
    assert str(raised.value) == (
        f"Spark at yarn gave up: java.nio.file.AccessDeniedException: {BUCKET}: getFileStatus: 403 "
        f"Forbidden; see {tmp_path / 'spark.log'}"
    )
