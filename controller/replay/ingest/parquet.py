"""Reads Parquet with Spark, which the extra ``nstorm[replay]`` brings anyway."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

STOP_S = 30.0


class ParquetError(Exception):
    """A table cannot be read; the message says why and what to type."""


def rows(path: Path) -> list[dict[str, Any]]:
    """Read a table.

    Parameters
    ----------
    path : Path
        A file, or a folder of files as Spark writes it.

    Returns
    -------
    list of dict
        By column; empty without rows.

    Raises
    ------
    ParquetError
        pyspark or Java is missing, or it is no Parquet.
    """
    try:
        import_module("pyspark")
    except ImportError:
        raise ParquetError("Parquet needs pyspark; type: pip install 'nstorm[replay]'") from None
    try:
        with _session() as session:
            return [row.asDict() for row in session.read.parquet(str(path.resolve())).collect()]
    except Exception as error:
        if not type(error).__module__.startswith(("py4j", "pyspark")):
            raise
        raise ParquetError(_cause(error)) from error


@contextmanager
def _session() -> Iterator[Any]:
    """Start Spark in a JVM of its own, which is silent and ends with the block."""
    pyspark, gateways = import_module("pyspark"), import_module("pyspark.java_gateway")
    conf = pyspark.SparkConf().setMaster("local[1]").setAppName("nstorm ingest")
    conf.set("spark.ui.enabled", "false")
    conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gateway, context = gateways.launch_gateway(conf, popen_kwargs=silent), None
    try:
        context = pyspark.SparkContext(conf=conf, gateway=gateway)
        yield import_module("pyspark.sql").SparkSession(context)
    finally:
        if context is not None:
            context.stop()
        gateway.shutdown()
        # The JVM ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait(STOP_S)
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None


def _cause(error: Exception) -> str:
    """Take the first line of what may be a Java stack trace."""
    text = str(error).strip() or repr(error)
    if "JAVA_GATEWAY" in text:
        return "Spark's JVM did not start; it needs Java 17 or later"
    return text.splitlines()[0][:300]
