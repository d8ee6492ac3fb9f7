"""Lets Spark work the trials off, on this machine or on a cluster; the only use of pyspark."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from controller.errors import TuneError
from controller.tune.sweep import Engine, SweptChunk, Trial, Wave, step

INSTALL = "pip install 'nstorm[replay]'"
JDK = "apt-get install openjdk-17-jre-headless"
# How often a task is tried again when the worker that had it dies.
TRIES = 4
LOOK_S, STOP_S = 0.25, 30.0
# Spark takes up to 0.1 s for each slice of the work; this many keep all cores busy to the end.
# The cores of a cluster are not known at first.
SLICES_PER_CORE, MOST_SLICES = 20, 4096


@contextmanager
def spark(master: str, log: Path) -> Iterator[Engine]:
    """Start Spark's driver, and stop it with all that it has started.

    The master is as for `spark-submit`; Spark writes its output into `log`. Raises `TuneError`
    where pyspark or Java is missing, the master cannot be reached, or Spark has given up a task.
    """
    pyspark = _pyspark()
    # The name of the workers' Python where Spark itself has no other setting.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = pyspark.SparkConf().setMaster(_patient(master)).setAppName("nstorm tune")
    conf.set("spark.ui.enabled", "false").set("spark.task.maxFailures", str(TRIES))
    conf.set("spark.ui.showConsoleProgress", "false")
    # A folder that happens to be called like a package of ours is none.
    conf.setExecutorEnv("PYTHONSAFEPATH", "1")
    # `local-cluster[...]` starts workers of its own.
    local = re.match(r"local(\[|$)", master) is not None
    if local:
        # Instead of TCP to the workers' Python: half the time for a slice.
        conf.set("spark.python.unix.domain.socket.enabled", "true")
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
        # The cores are for the work: optimising what hands it out takes longer than it saves.
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        conf.set("spark.driver.defaultJavaOptions", quick)
    with log.open("wb") as file:
        gateway = _launch(conf, file, log)
        context: Any = None
        try:
            context = pyspark.SparkContext(conf=conf, gateway=gateway)
            most = SLICES_PER_CORE * context.defaultParallelism if local else MOST_SLICES
            yield partial(_run, context, most)
        except Exception as error:
            if not type(error).__module__.startswith(("py4j", "pyspark")):
                raise
            raise TuneError(f"Spark at {master} gave up: {_cause(error)}; see {log}") from error
        finally:
            _stop(context, gateway)


def cores_of(master: str) -> int:
    """Return how many cores work: of a cluster at least as many as there are here."""
    here = len(os.sched_getaffinity(0))
    found = re.match(r"local(?:\[(\d+)|$)", master)
    return min(int(found[1] or 1), here) if found else here


def _pyspark() -> Any:
    """Import pyspark, or name the command that installs it."""
    try:
        pyspark = import_module("pyspark")
        import_module("pyspark.java_gateway")
    except ModuleNotFoundError as error:
        raise TuneError(f"{error.name} is missing; type: {INSTALL}") from None
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


def _run(
    context: Any, most: int, wave: Wave, trials: Sequence[Trial], done: Callable[[int], None]
) -> Sequence[SweptChunk]:
    """Hand every worker the load once, then slices of the trials, `most` of them at most."""
    load = context.broadcast(wave)
    work = context.parallelize(trials, min(len(trials), most)).map(partial(_step, load))
    slices, finished = work.getNumPartitions(), 0
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(work.collect)
        try:
            while wait([result], LOOK_S).not_done:
                # At the very end no stage is active any more.
                finished = max(finished, _finished(context))
                done(len(trials) * finished // slices)
        except BaseException:
            # Or else the block would end with the job.
            context.cancelAllJobs()
            raise
    found: list[SweptChunk] = result.result()
    load.destroy()
    done(len(trials))
    return found


def _step(load: Any, trial: Trial) -> SweptChunk:
    return step(load.value, trial)


def _finished(context: Any) -> int:
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _cause(error: Exception) -> str:
    """Take the one line out of a stack trace, Python's or Java's, that has the cause."""
    java = getattr(error, "java_exception", None)
    lines = str(java.getMessage() if java is not None else error).splitlines() or [repr(error)]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)(: |$)", line)]
    return (raised[-1] if raised else lines[0])[:300]


def _why(log: Path) -> str:
    """Find the most useful line of a failed start."""
    lines = log.read_text(errors="replace").splitlines()
    written = [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]
    errors = (line for line in written if "Exception" in line or "Error" in line)
    return next(errors, written[0] if written else "it printed nothing")[:300]


def _stop(context: Any, gateway: Any) -> None:
    """End the JVM too: Spark itself would leave it until this process ends."""
    if context is not None:
        context.stop()
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
