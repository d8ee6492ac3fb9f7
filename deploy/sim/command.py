"""``python -m deploy simulate``: a whole cluster in virtual time."""

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.output import Output, OutputOption, quiet
from deploy.sim import ScenarioError

if TYPE_CHECKING:
    from deploy.sim.report import ScenarioReport


def simulate(
    scenario: Annotated[
        Path, typer.Argument(help="File with a scenario, such as those in tests/golden/scenarios.")
    ],
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Write the results into the file, below its marker.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a whole cluster in virtual time, with the real controller.

    Exit code 1 if an expectation of the scenario fails.
    """
    # Late: no other command needs the simulator, and it takes long to load.
    from deploy.sim.report import simulate_all, text  # noqa: PLC0415
    from deploy.sim.scenario import MARKER, parse, split  # noqa: PLC0415

    try:
        given = scenario.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{scenario}: {getattr(error, 'strerror', None) or error}") from None
    # Hundreds of cycles: what they decide is in the answer.
    try:
        with quiet(logging.ERROR):
            report = simulate_all(parse(given))
    except ScenarioError as error:
        raise ScenarioError(f"{scenario}: {error}") from None
    results = text(report)
    if rewrite:
        scenario.write_text(f"{split(given)[0]}{MARKER}{results}")
    print(json.dumps(_document(report), indent=1) if output is Output.JSON else results)
    if not report.holds:
        raise typer.Exit(1)


def _document(report: "ScenarioReport") -> dict[str, object]:
    return {
        "title": report.scenario.title,
        "seed": report.scenario.seed,
        "measures": report.measures,
        "expectations": [asdict(comparison) for comparison in report.comparisons],
        "figures": [
            {
                "measure": figure.measure,
                "theirs": figure.value,
                "ours": report.measures[figure.measure],
                "source": figure.source,
            }
            for figure in report.scenario.figures
        ],
        "series": {
            result.name: {
                "throughput_tps": result.throughput_tps.tolist(),
                "inter_node_frac": result.inter_node_frac.tolist(),
                "pending": result.pending.tolist(),
                "moves": [{"at_s": at_s, **asdict(move)} for at_s, move in result.moves],
            }
            for result in report.results
        },
    }
