"""``python -m tests.papers``: the papers' figures and ours."""

import json
import logging
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from controller.cli.running import new_app
from controller.output import Output, OutputOption, example, quiet
from tests.papers.table import Paper, as_document, print_summary, print_table

app = new_app()
SEEDS = ("000", "001", "002", "003", "004")


def _papers(seeds: Sequence[str]) -> list[Paper]:
    # Late: no other command needs the simulator and the solvers, and they take long to load.
    from tests.papers import seed000, seed001, seed002, seed003  # noqa: PLC0415
    from tests.papers.seed004 import deciding, deploying, simulated  # noqa: PLC0415

    def seed004() -> Paper:
        paper = Paper("004")
        deciding.compare(paper)
        simulated.compare(paper)
        deploying.compare(paper)
        return paper

    made = (
        seed000.reproduce,
        seed001.reproduce,
        seed002.reproduce,
        seed003.reproduce,
        seed004,
    )
    return [make() for name, make in zip(SEEDS, made, strict=True) if name in seeds]


def _known_seed(seed: str | None) -> str | None:
    if seed is not None and seed not in SEEDS:
        raise typer.BadParameter(f"{seed!r} is not one of {', '.join(SEEDS)}")
    return seed


@app.command(epilog=example("python -m tests.papers 004"))
def reproduce(
    seed: Annotated[
        str | None,
        typer.Argument(
            callback=_known_seed, help=f"Which paper: one of {', '.join(SEEDS)}; by default all."
        ),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show every figure; with one paper they always are.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the papers' figures and ours, and why they differ.

    The simulated figures of 004 take most of the time, about two minutes.
    """
    # Hundreds of simulated cycles: what they decide is in the figures.
    with quiet(logging.ERROR):
        papers = _papers(SEEDS if seed is None else [seed])
    if output is Output.JSON:
        print(json.dumps(as_document(papers), indent=1))
        return
    console = Console()
    if details or seed is not None:
        print_table(papers, console)
    else:
        print_summary(papers, console)
        console.print("every figure: --details, or name the paper", highlight=False)
