"""Finds a log and what reads it: this process, or Spark where the log is large."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from controller.console import Console
from controller.pipeline import stages
from controller.pipeline.engine import Engine
from controller.pipeline.fold import Fold
from controller.pipeline.spark import loaded_pyspark, spark
from controller.pipeline.where import Where

# Up to here one core is enough: bytes of segments to decode.
FOLD_BYTES = 2**28
HERE = "local[*]"


@contextmanager
def opened(where: Where, console: Console) -> Iterator[tuple[Engine, stages.Raw]]:
    """Find the log, with what reads it: Spark where it is asked for or large, else this process.

    Raises `JournalError` where there is none, and `TuneError` where Spark gives up.
    """
    with ExitStack() as stack:
        engine: Engine = Fold(_folder(where.tables))
        here = where.master is None and _is_here(where)
        log = stages.raw(engine, where.paths) if here else None
        if log is None or sum(file.size_bytes for file in log.files) > FOLD_BYTES:
            engine = stack.enter_context(started(where, console))
            log = stages.raw(engine, where.paths)
        where.make()  # and nothing before, where there is no log
        yield engine, log


@contextmanager
def started(where: Where, console: Console) -> Iterator[Engine]:
    """Start Spark, and print where it can be watched."""
    loaded_pyspark()  # or no folder is made
    where.make()
    log = where.out / "spark.log"
    with spark(where.master or HERE, log, where.tables, where.spark_conf) as engine:
        shown = f"Spark: {engine.ui}, its events stay in {where.out / 'spark-events'}"
        console.print(shown, highlight=False)
        yield engine


@contextmanager
def progress(console: Console, what: str) -> Iterator[Callable[[float], None]]:
    """Show how far a stage is, and the time to go."""
    columns = TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=1.0)

        def report(share: float) -> None:
            bar.update(task, completed=share)

        yield report


def _is_here(where: Where) -> bool:
    """Return whether all lies in files of this machine."""
    schemes = [re.match(r"(\w+):", path) for path in (*where.paths, where.tables)]
    return all(found is None or found[1] == "file" for found in schemes)


def _folder(tables: str) -> Path:
    return Path(tables.removeprefix("file:"))
