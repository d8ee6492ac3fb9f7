"""``nstorm tune``: which settings would have done best with a recorded log."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.config import from_storm_yaml
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
from controller.tune.space import SETS, read_space
from migration import storm_yaml

if TYPE_CHECKING:
    from controller.tune.choice import SetOutcome


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found."""

    outcomes: "list[SetOutcome]"
    no_moves: "SetOutcome"
    today: dict[str, Any]  # the keys in force
    left_out: list[str]
    skipped: Sequence[str]
    about: str


def tune(
    paths: PathsArgument,
    *,
    topology: TopologyOption = None,
    space: Annotated[
        Path | None,
        typer.Option(
            help="YAML: keys of storm.yaml, each with a list of values, and `sets`, how many "
            f"parameter sets to try at most ({SETS} unless it is there). Without a file: the keys "
            "that matter most."
        ),
    ] = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = [],  # noqa: B006
    tables: TablesOption = None,
    objective: Annotated[
        str, typer.Option(help="balanced, or the weights: traffic=1,overload=5,moves=2.")
    ] = "balanced",
    conf: Annotated[
        Path | None, typer.Option(help="storm.yaml to change; else the settings in the log.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="Folder for the figures; storm.yaml.diff there is written or removed."),
    ] = Path("build/tune"),
    output: OutputOption = Output.TABLE,
) -> None:
    """Find the best settings for a recorded log.

    A parameter set is one value for each key that varies. All combinations of values are tried if
    they are few enough. Otherwise each value is tried alone, with a fixed sample of combinations.

    Each parameter set replays the log with moves of its own. Each day (UTC) begins again from the
    recorded placement, so moves of the day before are made again and counted again.

    The rank of a set is its cost in the first 70 % of the time. The best set is then tested with
    the rest. It is suggested only if it is better than today's settings there as well. The row "no
    moves" is the same replay without any move: it shows the cluster without nstorm.
    """
    asked = read_space(space) if space else None
    keys = storm_yaml.read_as(conf, from_storm_yaml)[0].keys if conf else None
    # As it is: `patch` takes no other ends of lines.
    text = conf.read_bytes().decode() if conf else None
    where = Where.of(paths, out, tables, master, spark_conf)
    # Late: a refusal needs none of it.
    from controller.tune.choice import Objective, suggest  # noqa: PLC0415
    from controller.tune.report import (  # noqa: PLC0415
        as_document,
        draw,
        page,
        print_found,
        proposed_diff,
        proposed_keys,
    )

    goal = Objective.parse(objective)
    with quiet(logging.CRITICAL):
        found = needed("controller.tune.run").run(
            where,
            topology=topology,
            asked=asked,
            keys=keys,
            goal=goal,
            console=Console(stderr=True),
        )
    suggestion = suggest(found.outcomes, goal)
    document = as_document(
        found.outcomes,
        goal,
        suggestion,
        found.no_moves,
        left_out=found.left_out,
        skipped=found.skipped,
    )
    proposed = proposed_diff(text, suggestion, found.today)
    diff = proposed or ""
    shown = proposed_keys(suggestion) if proposed is None else diff
    png, report, change = (out / name for name in ("front.png", "report.html", "storm.yaml.diff"))
    files = [str(path) for path in (png, report, *[change] * bool(diff))]
    printed = Console()
    if output is Output.JSON:
        print(json.dumps({**document, "diff": diff, "files": files}, indent=1))
    else:
        print_found(printed, document, shown)
    with writing("--out", out):
        # One of an earlier run would be taken for this one's.
        change.unlink(missing_ok=True)
        if diff:
            change.write_bytes(diff.encode())
        draw(document, png)
        report.write_text(page(document, shown, png.read_bytes(), found.about), "utf-8")
    if output is Output.TABLE:
        printed.print(f"written: {', '.join(files)}", highlight=False, soft_wrap=True)
