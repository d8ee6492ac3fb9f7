"""Lets Spark do the work, on this machine or on a cluster; the only use of pyspark.

Each job is a query of its own that leaves a folder, so what is done stays done. The driver sees
only what is small: lists of files, parts and answers.
"""

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import partial, reduce
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from controller.errors import TuneError
from controller.journal.lines import QUARANTINE, QUARANTINE_FILE, JournalError
from controller.journal.reader import Segment
from controller.pipeline.engine import Episode, Job, RawFile, Rows, Work
from controller.pipeline.schemas import DECODED, TICK, folder_of
from controller.pipeline.ticks import in_order
from controller.pipeline.where import INSTALL

JDK = "apt-get install openjdk-17-jre-headless"
OLDEST = 3, 5  # release of Spark
# How often a task is tried again when the worker that had it dies.
TRIES = 4
STOP_S, END_S = 30.0, 1.0
# A row of ticks may have a hundred kilobytes; a thousand of them would not fit.
ROWS = 64
# A task writes into this number of folders at once.
MOST_FOLDERS = 256
# This number of jobs waits at a cluster for a free core.
MOST_JOBS = 64
_CAUSES = 20
# A head and a tick, packed.
BEGINNING_BYTES = 2**26


@contextmanager
def spark(
    master: str, log: Path, tables: str, conf: Mapping[str, str] | None = None
) -> Iterator["SparkEngine"]:
    """Start Spark's driver, and stop it with all that it has started.

    Parameters
    ----------
    master : str
        As for ``spark-submit``.
    log : Path
        Where Spark writes its output; its event log is in the same folder.
    tables : str
        Folder of the tables, as Spark names it: ``file:``, ``hdfs:``, ``s3a:``.
    conf : mapping, optional
        More of Spark's own settings, which win.

    Raises
    ------
    TuneError
        Where pyspark or Java is missing, the master cannot be reached, or Spark has given up a job.
    """
    pyspark = loaded_pyspark()
    # It looks for pandas, which we do not use.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # The name of the workers' Python where Spark itself has no other setting.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # `local-cluster[...]` starts workers of its own.
    local = re.match(r"local(\[|$)", master) is not None
    if local:
        # Its UI, which has no login, would be open to all machines.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = pyspark.SparkConf().setMaster(_patient(master)).setAppName("nstorm tune")
    # A folder that happens to be called like a package of ours is none.
    settings.setExecutorEnv("PYTHONSAFEPATH", "1")
    for key, value in {**_settings(log, local), **(conf or {})}.items():
        settings.set(key, value)
    with log.open("wb") as file:
        gateway = _launch(settings, file, log)
        context: Any = None
        try:
            context = pyspark.SparkContext(conf=settings, gateway=gateway)
            # It would print a stack trace where the JVM dies.
            context._accumulatorServer.handle_error = lambda *about: None
            session = import_module("pyspark.sql").SparkSession(context)
            cores = context.defaultParallelism
            yield SparkEngine(session, tables, cores, cores + 1 if local else MOST_JOBS)
        except Exception as error:
            of_spark = type(error).__module__.startswith(("py4j", "pyspark"))
            if (of_spark or isinstance(error, OSError)) and (code := _ended(gateway.proc)):
                raise TuneError(
                    f"Spark's JVM has ended with code {code}; see {log}. Where memory was short: "
                    "--spark-conf spark.driver.memory=4g"
                ) from error
            if not of_spark:
                raise
            raise TuneError(f"Spark at {master} gave up: {_cause(error)}; see {log}") from error
        finally:
            _stop(context, gateway)


def _settings(log: Path, local: bool) -> dict[str, str]:
    events = log.parent / "spark-events"
    events.mkdir(exist_ok=True)
    found = {
        "spark.task.maxFailures": str(TRIES),
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": _uri(str(events)),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS),
        "spark.sql.parquet.columnarReaderBatchSize": str(ROWS),
        "spark.sql.parquet.compression.codec": "zstd",
        # Or else Spark would sort all rows by their folders first.
        "spark.sql.maxConcurrentOutputFileWriters": str(MOST_FOLDERS),
    }
    if local:
        found |= {
            # Instead of TCP to the workers' Python: half the time for a slice.
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # The cores are for the work: optimising what hands it out takes longer than it saves.
            "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
    return found


class SparkEngine:
    """Works with Spark's own file systems, below a folder of tables."""

    def __init__(self, session: Any, tables: str, cores: int, most_jobs: int) -> None:
        self.cores = cores
        self.ui = session.sparkContext.uiWebUrl
        self._session = session
        self._tables = _uri(tables)
        self._most_jobs = most_jobs

    def files(self, paths: Sequence[str]) -> list[RawFile]:
        found = []
        for path in paths:
            try:
                rows = self._binary(path, "path", "length").collect()
            except Exception as error:
                if "PATH_NOT_FOUND" not in str(error):
                    raise
                raise JournalError(f"{path}: no such file or folder") from None
            for row in sorted(rows, key=lambda row: (not row.path.endswith(".gz"), row.path)):
                segment = Segment.named(Path(row.path))
                if segment is not None:
                    found.append(RawFile(row.path, row.length, segment))
        return found

    def quarantined(self, paths: Sequence[str]) -> Counter[str]:
        columns = ", ".join(f"{name} string" for name in QUARANTINE)
        reader = self._session.read.schema(columns).option("pathGlobFilter", QUARANTINE_FILE)
        # Cells may have quotes and ends of lines.
        rows = reader.csv(
            list(map(_uri, paths)),
            header=True,
            escape='"',
            multiLine=True,
            recursiveFileLookup=True,
        )
        counts = rows.groupBy("rule").count().collect()
        return Counter({row["rule"]: row["count"] for row in counts})

    def opened(self, file: RawFile) -> IO[bytes]:
        (row,) = self._binary(file.uri, "content").collect()
        return BytesIO(row.content)

    def do(self, jobs: Sequence[Job], done: Callable[[Job], None]) -> None:
        with ThreadPoolExecutor(self._most_jobs) as pool:
            waiting = {pool.submit(self._do, job): job for job in jobs}
            try:
                for one in as_completed(waiting):
                    one.result()
                    done(waiting[one])
            except BaseException:
                for one in waiting:
                    one.cancel()
                # Or else the block would end with the jobs.
                self._session.sparkContext.cancelAllJobs()
                raise

    def rows(
        self, folders: Sequence[str], schema: pa.Schema, columns: Sequence[str] = (), **where: Any
    ) -> pa.Table:
        names = list(columns) or schema.names
        found = _collected(self._read(folders, schema, where).select(*names))
        return found.select(names).cast(pa.schema([schema.field(name) for name in names]))

    def ticks(self, episode: Episode, folders: Sequence[str]) -> Iterable[pa.RecordBatch]:
        return in_order(_collected(self._ticks(episode, folders)).to_batches())

    def _do(self, job: Job) -> None:
        folder = f"{self._tables}/{job.folder}"
        if self._is_there(f"{folder}/_SUCCESS"):
            return
        of, work = job.of, job.work
        if isinstance(of, Episode):
            rows, work = self._ticks(of, of.folders), partial(_work_in_order, work)
        elif isinstance(of, Rows):
            # Not the part, which Spark takes from the names of folders.
            rows = self._read(of.folders, of.schema, {}).select(*of.schema.names).coalesce(1)
        else:
            rows = self._raw(of, "content AS data")
            if job.after is not None:
                begins = f"substring(content, 1, {BEGINNING_BYTES}) AS data"
                rows = rows.union(self._raw(job.after, begins)).coalesce(1)
        types = import_module("pyspark.sql.pandas.types")
        made = rows.mapInArrow(work, types.from_arrow_schema(job.schema))
        made.write.mode("overwrite").partitionBy(*job.by).parquet(folder)

    def _raw(self, file: RawFile, content: str) -> Any:
        """Name a file of the workers' machine, which they open themselves, or read any other.

        The JVM would hold each file several times.
        """
        if not file.uri.startswith("file:"):
            return self._binary(file.uri, "path", content)
        lit = import_module("pyspark.sql.functions").lit
        columns = (lit(file.uri).alias("path"), lit(None).cast("binary").alias("data"))
        return self._session.range(0, 1, 1, 1).select(*columns)

    def _binary(self, path: str, *columns: str) -> Any:
        reader = self._session.read.format("binaryFile").option("recursiveFileLookup", "true")
        return reader.option("pathGlobFilter", "*.jsonl*").load(_uri(path)).selectExpr(*columns)

    def _ticks(self, episode: Episode, folders: Sequence[str]) -> Any:
        """Read folder after folder; to sort an episode here would spill it to the disk."""
        where = {"kind": TICK, "folder": folder_of(episode.topology), "day": episode.day}
        parts = [self._read([folder], DECODED, where) for folder in folders]
        return reduce(lambda rows, part: rows.union(part), parts).coalesce(1)

    def _read(self, folders: Sequence[str], schema: pa.Schema, where: Mapping[str, Any]) -> Any:
        types = import_module("pyspark.sql.pandas.types")
        table = f"{self._tables}/{folders[0].partition('/')[0]}"
        reader = self._session.read.schema(types.from_arrow_schema(schema))
        reader = reader.option("basePath", table)
        rows = reader.parquet(*(f"{self._tables}/{folder}" for folder in folders))
        for name, value in where.items():
            rows = rows.where(rows[name] == value)
        return rows

    def _is_there(self, path: str) -> bool:
        jvm, context = self._session._jvm, self._session.sparkContext
        at = jvm.org.apache.hadoop.fs.Path(path)
        return bool(at.getFileSystem(context._jsc.hadoopConfiguration()).exists(at))


def _work_in_order(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return work(in_order(batches))


def _collected(rows: Any) -> pa.Table:
    """Bring rows to the driver; Spark 3.5 has no `toArrow`."""
    if hasattr(rows, "toArrow"):
        return rows.toArrow()
    types = import_module("pyspark.sql.pandas.types")
    return pa.Table.from_batches(rows._collect_as_arrow(), types.to_arrow_schema(rows.schema))


def _uri(path: str) -> str:
    """Name a path of this machine as such; a cluster has a file system of its own."""
    return path if re.match(r"\w+:", path) else f"file:{Path(path).absolute()}"


def cores_of(master: str) -> int:
    """Return how many cores work: of a cluster at least as many as there are here."""
    here = len(os.sched_getaffinity(0))
    found = re.match(r"local(?:\[(\d+)|$)", master)
    return min(int(found[1] or 1), here) if found else here


def loaded_pyspark() -> Any:
    """Import pyspark, or name the command that installs it."""
    try:
        pyspark = import_module("pyspark")
        import_module("pyspark.java_gateway")
    except ModuleNotFoundError as error:
        raise TuneError(f"{error.name} is missing; type in nstorm's folder: {INSTALL}") from None
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < OLDEST:
        raise TuneError(f"pyspark {pyspark.__version__} is too old, 3.5 is needed: {INSTALL}")
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"in JAVA_HOME, {home}" if home else "on the path"
        raise TuneError(f"Spark needs Java 17 or later and there is none {where}; type: {JDK}")
    return pyspark


def _launch(conf: Any, file: Any, log: Path) -> Any:
    """Start the JVM of the driver, which may speak only into the log."""
    launch = import_module("pyspark.java_gateway").launch_gateway
    try:
        return launch(conf, popen_kwargs={"stdout": file, "stderr": subprocess.STDOUT})
    except Exception as error:
        if not type(error).__module__.startswith("pyspark"):
            raise
        raise TuneError(
            f"Spark did not start: {_why(log)}; it needs Java 17 or later: {JDK}; see {log}"
        ) from None


def _patient(master: str) -> str:
    """Let a local Spark try a task again, as a cluster does by default."""
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{TRIES}]", master)


def _cause(error: Exception) -> str:
    """Take the one line out of a stack trace, Python's or Java's, that has the cause."""
    java: Any = getattr(error, "java_exception", None)
    for _ in range(_CAUSES if java is not None else 0):  # the first one only names what failed
        if (below := java.getCause()) is None or not below.getMessage():
            break
        java = below
    lines = str(java.toString() if java is not None else error).splitlines() or [repr(error)]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)(: |$)", line)]
    return (raised[-1] if raised else lines[0])[:300]


def _why(log: Path) -> str:
    """Find the most useful line of a failed start."""
    lines = log.read_text(errors="replace").splitlines()
    written = [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]
    errors = (line for line in written if "Exception" in line or "Error" in line)
    return next(errors, written[0] if written else "it printed nothing")[:300]


def _ended(process: Any) -> int:
    """Return the exit code of a JVM that has ended or is about to; 0 where it runs.

    One that `spark-submit` has started is no process of ours: there is none here.
    """
    if process is None:
        return 0
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    return process.returncode or 0


def _stop(context: Any, gateway: Any) -> None:
    """End the JVM too: Spark itself would leave it until this process ends."""
    # One that has died answers nothing. The second call stops what Spark has in this process.
    for _ in range(2 if context is not None else 0):
        with suppress(Exception):
            context.stop()
    # `spark-submit` ends a JVM of its own, after this process.
    if gateway.proc is not None:
        with suppress(Exception):
            gateway.shutdown()
        # The JVM ends when its standard input does.
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(STOP_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
    kind = import_module("pyspark").SparkContext
    kind._gateway = kind._jvm = None
