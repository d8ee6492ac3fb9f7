"""``nstorm pipeline``: one stage from a log to an answer, and what it leaves."""

import json
import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from controller.console import Console
from controller.output import Output, OutputOption, quiet
from controller.pipeline.where import (
    MasterOption,
    PathsArgument,
    SparkConfOption,
    TablesOption,
    TopologyOption,
    Where,
    needed,
)
from controller.tune.space import read_space


class Stage(StrEnum):
    RAW = "raw"
    TICKS = "ticks"
    EPISODES = "episodes"
    TRIALS = "trials"
    ANSWERS = "answers"


def pipeline(
    stage: Annotated[Stage, typer.Argument(help="The last stage to make, and the one to print.")],
    paths: PathsArgument,
    *,
    topology: TopologyOption = None,
    space: Annotated[
        Path | None,
        typer.Option(help="YAML: keys of storm.yaml, each with a list of values, as for tune."),
    ] = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = [],  # noqa: B006
    tables: TablesOption = None,
    out: Annotated[Path, typer.Option(help="Folder for what Spark writes.")] = Path("build/tune"),
    output: OutputOption = Output.TABLE,
) -> None:
    """Make one stage between a log and an answer, and print it.

    `raw` lists the segments of a log. `ticks` are what was measured, by topology and day.
    `episodes` are the days that settings are tried on. `trials` are the figures of each set on each
    of them, with the load held back apart. `answers` have what each of them costs. Sets are tried
    without searches.

    The stages before it are made as well. What is whole in the folder of tables stays as it is.
    """
    asked = read_space(space) if space else None
    where = Where.of(paths, out, tables, master, spark_conf)
    console = Console(stderr=True)
    with quiet(logging.CRITICAL):
        rows, left_out = needed("controller.tune.stage").made(
            stage, where, topology=topology, asked=asked, console=console
        )
    if output is Output.JSON:
        document = {"stage": stage, "rows": rows, "left_out": list(left_out)}
        print(json.dumps(document, indent=1, allow_nan=False))
        return
    printed = Console(soft_wrap=True)
    for row in rows:
        cells = (f"{name}={value}" for name, value in row.items())
        printed.print("  ".join(cells), highlight=False)
    for line in left_out:
        printed.print(f"skipped: {line}", highlight=False)
