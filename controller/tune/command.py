"""``nstorm tune``: which settings would have done best with a recorded log."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from controller.config import build, from_storm_yaml
from controller.console import Console
from controller.errors import TuneError
from controller.journal.reader import Log
from controller.output import Output, OutputOption, counted, quiet
from controller.replay.recording import Span, spans
from controller.tune.choice import Objective, ranked, suggest
from controller.tune.chunks import Chunk, unpack
from controller.tune.report import as_document, draw, page, print_found, proposed_diff
from controller.tune.searches import rehearse
from controller.tune.space import (
    SETS,
    ParameterSet,
    Space,
    parameter_sets,
    read_space,
    without_moves,
)
from controller.tune.spark import cores_of, spark
from controller.tune.sweep import Engine, SetOutcome, sweep
from migration import storm_yaml


def tune(
    paths: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Folders or segments of a journal.")
    ],
    *,
    topology: Annotated[
        str | None, typer.Option(metavar="T", help="Only this topology, by id or name.")
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(
            help="YAML: keys of storm.yaml, each with a list of values, and `sets`, how many "
            f"parameter sets to try at most ({SETS} unless it is there). Without a file: the keys "
            "that matter most."
        ),
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs, as for spark-submit.")
    ] = "local[*]",
    objective: Annotated[
        str, typer.Option(help="balanced, or the weights: traffic=1,overload=5,moves=2.")
    ] = "balanced",
    conf: Annotated[
        Path | None, typer.Option(help="storm.yaml to change; else the settings in the log.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("build/tune"),
    output: OutputOption = Output.TABLE,
) -> None:
    """Find the best settings for a recorded log.

    A parameter set is one value for each key that varies. All combinations of values are tried if
    they are few enough. Otherwise each value is tried alone, with a fixed sample of combinations.

    Each parameter set replays the log from its beginning with moves of its own. Its rank is the
    cost of the first 70 % of the time. The best set is then tested with the rest. It is suggested
    only if it is better than today's settings there as well. The row "no moves" is the same replay
    without any move: it shows the cluster without nstorm.
    """
    goal = Objective.parse(objective)
    asked = read_space(space) if space else None
    log = Log.open(paths)
    today = _today(log, conf)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TuneError(f"--out {out}: {error.strerror}") from None
    console = Console(stderr=True)
    with TemporaryDirectory(prefix="nstorm-tune-") as folder, quiet(logging.CRITICAL):
        chunks = unpack(_shown(spans(log), console), Path(folder), topology)
        fitted = asked or Space().narrowed(today)
        sets = parameter_sets(fitted, today)
        about = _about(chunks, sets, fitted)
        console.print(about, highlight=False)
        for line in log.said():
            console.print(f"skipped: {line}", highlight=False)
        idle = without_moves(today, (chunk.topology for chunk in chunks))
        with console.status("timing the searches"):
            searches = rehearse(chunks, sets, cores_of(master))
        with spark(master, out / "spark.log") as engine:
            *outcomes, no_moves = _swept(
                chunks, [*sets, idle], engine, console, searches.topologies
            )
            if searches.again:
                best = [one.parameters for one in ranked(outcomes[1:], goal)]
                again = [sets[0], *best[: searches.again - 1]]
                every = {chunk.topology for chunk in chunks}
                outcomes = _swept(chunks, again, engine, console, every)
    suggestion = suggest(outcomes, goal)
    document = as_document(outcomes, goal, suggestion, no_moves, searches.left_out)
    diff = proposed_diff(conf.read_text() if conf else None, suggestion, today)
    files = _write(out, document, diff, about)
    if output is Output.JSON:
        print(
            json.dumps({**document, "diff": diff, "skipped": log.said(), "files": files}, indent=1)
        )
        return
    printed = Console()
    print_found(printed, document, diff)
    printed.print(f"written: {', '.join(files)}", highlight=False, soft_wrap=True)


def _today(log: Log, conf: Path | None) -> dict[str, Any]:
    """Give the keys in force: those of the file, else those the log was last written with."""
    if conf is not None:
        return dict(storm_yaml.read_as(conf, from_storm_yaml)[0].keys)
    return dict(build(log.newest_head().config).keys)


def _shown(spans: Iterable[Span], console: Console) -> Iterator[Span]:
    """Show how far the log is read: a day of many executors takes minutes."""
    ticks = 0
    with console.status("reading the log") as shown:
        for span in spans:
            ticks += len(span.time_s)
            shown.update(f"reading the log: {counted(ticks, 'tick')} so far")
            yield span


def _about(chunks: list[Chunk], sets: list[ParameterSet], space: Space) -> str:
    names = sorted({chunk.topology for chunk in chunks})
    ticks = sum(chunk.ticks for chunk in chunks)
    held_s = sum(chunk.span_s for chunk in chunks if chunk.held_back)
    whole_s = sum(chunk.span_s for chunk in chunks)
    days = len({chunk.day for chunk in chunks})
    sampled = f", a sample of {space.combinations:,}" * (space.combinations > space.sets)
    return (
        f"{', '.join(names)}: {counted(ticks, 'tick')}, {whole_s:.0f} s on {counted(days, 'day')}, "
        f"the last {held_s:.0f} s held back; {counted(len(sets), 'parameter set')}{sampled}"
    )


def _swept(
    chunks: list[Chunk],
    sets: list[ParameterSet],
    engine: Engine,
    console: Console,
    searched: Collection[str],
) -> list[SetOutcome]:
    with _progress(console, len(sets)) as report:
        return sweep(chunks, sets, engine, report, searched)


def _write(out: Path, document: dict[str, Any], diff: str, about: str) -> list[str]:
    """Write what people look at, and the change if there is one."""
    png, report, change = out / "front.png", out / "report.html", out / "storm.yaml.diff"
    draw(document, png)
    report.write_text(page(document, diff, png.read_bytes(), about))
    # One of an earlier run would be taken for this one's.
    change.unlink(missing_ok=True)
    if diff:
        change.write_text(diff)
    return [str(path) for path in (png, report, change) if path.exists()]


@contextmanager
def _progress(console: Console, sets: int) -> Iterator[Callable[[float], None]]:
    columns = TextColumn("parameter sets"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=sets)

        def report(share: float) -> None:
            bar.update(task, completed=round(share * sets))

        yield report
