"""``nstorm report``: what a log of weeks shows."""

import logging
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from controller.console import Console
from controller.output import Output, OutputOption, quiet, writing
from controller.pipeline.where import (
    MasterOption,
    PathsArgument,
    SparkConfOption,
    TablesOption,
    TopologyOption,
    Where,
    needed,
)


def report(
    paths: PathsArgument,
    *,
    topology: TopologyOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = [],  # noqa: B006
    tables: TablesOption = None,
    out: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("build/report"),
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a log of weeks means for the next month.

    It answers five questions, in lines and as a page with pictures. What would each topology need
    next month? Which topologies disturb each other? What would a host less mean? What would mode
    auto have gained and risked? Which moves paid? Where the log is too short for an answer, it
    names what is missing. For mode auto each day begins again from the recorded placement.

    `nstorm assess` answers another question: whether nstorm would help, before it is installed.
    """
    where = Where.of(paths, out, tables, master, spark_conf)
    with quiet(logging.CRITICAL):
        run = needed("controller.weeks.run").run
        found = run(where, topology=topology, console=Console(stderr=True))
    page = needed("controller.weeks.page")
    html = out / "report.html"
    if output is Output.JSON:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        print("\n".join(page.lines(found)))
    with writing("--out", html):
        html.write_text(page.page(found), "utf-8")
    if output is Output.TABLE:
        print(f"written: {html}")
