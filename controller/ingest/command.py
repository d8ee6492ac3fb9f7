"""``nstorm ingest``: a journal of what another program has measured."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from controller.ingest import MOST_FRAC
from controller.output import Output, OutputOption, quiet, tell


def ingest(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="CSV, Parquet or JSON tables, or metrics logs."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the journal to write.")],
    topology: Annotated[str, typer.Option(help="Id to give to the topology.")] = "ingested",
    left_out_max: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of a file's rows that may be wrong and left out; above it is refused.",
        ),
    ] = MOST_FRAC,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a journal of what another program has measured.

    `nstorm assess`, `tune` and `replay` read it as a journal of a controller.

    A table is known by its columns. Edges: time_s, source, target, tuples. Placement: executor,
    worker, and node, component, capacity_cores, kind if known. CPU: time_s, executor, cpu_cores.
    JSON is what Prometheus answers to a range query, with labels as columns.

    Any other file is read as a log of Storm's LoggingMetricsConsumer or as Graphite's plain text.
    What is missing is assumed, and listed. Rows with a sure sign that they are wrong are left out.
    quarantine.csv in the folder of the journal lists them, with file, row, rule and value.
    """
    # Late: the help needs no numpy.
    from controller.ingest import tables  # noqa: PLC0415

    with quiet(logging.CRITICAL):
        notes = tables.ingest(files, out, topology, left_out_max)
    tell(output, {"journal": str(out), "notes": notes}, *notes)
