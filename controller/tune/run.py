"""Runs all parameter sets through the stages of the pipeline, here or on Spark."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from controller.config import build
from controller.console import Console
from controller.output import counted
from controller.pipeline import stages
from controller.pipeline.engine import Engine, Episode
from controller.pipeline.fold import Fold
from controller.pipeline.spark import cores_of, spark
from controller.tune.choice import Objective, SetOutcome, ranked
from controller.tune.command import Sweep, Where
from controller.tune.searches import rehearse
from controller.tune.space import ParameterSet, Space, parameter_sets, without_moves

# Up to here one core is enough: bytes of segments to decode, and seconds of trials.
FOLD_BYTES, FOLD_S = 2**28, 600.0
HERE = "local[*]"


def run(
    where: Where,
    *,
    topology: str | None,
    asked: Space | None,
    keys: Mapping[str, Any] | None,
    goal: Objective,
    console: Console,
) -> Sweep:
    """Decode the log, and try all sets of a space; without `keys` against the settings in it.

    Raises `TuneError` where there is nothing to tune with, or Spark gives up; `JournalError` where
    the log cannot be read. What is done by then stays in the tables.
    """
    with ExitStack() as stack:
        engine: Engine = Fold(_folder(where.tables))
        here = where.master is None and _is_here(where)
        log = stages.raw(engine, where.paths) if here else None
        if log is None or sum(file.size_bytes for file in log.files) > FOLD_BYTES:
            engine = stack.enter_context(_spark(where, console))
            log = stages.raw(engine, where.paths)
        today = dict(keys or build(log.log.newest_head().config).keys)
        with _progress(console, "reading the log") as report:
            ticks = stages.ticks(engine, log, report)
        episodes = stages.episodes(ticks, topology)
        space = asked or Space().narrowed(today)
        sets = parameter_sets(space, today)
        about = _about(episodes, sets, space)
        console.print(about, highlight=False)
        for line in ticks.left_out:
            console.print(f"skipped: {line}", highlight=False)
        names = {one.topology for one in episodes}
        with console.status("timing the searches"):
            master = where.master or HERE
            searches = rehearse(stages.samples(engine, episodes), sets, cores_of(master))
        if isinstance(engine, Fold) and searches.spent_s > FOLD_S:
            engine = stack.enter_context(_spark(where, console))
        every = [*sets, without_moves(today, names)]
        *outcomes, no_moves = _swept(engine, episodes, every, console, searches.topologies)
        if searches.again:
            best = [one.parameters for one in ranked(outcomes[1:], goal)]
            again = [sets[0], *best[: searches.again - 1]]
            outcomes = _swept(engine, episodes, again, console, names)
    return Sweep(outcomes, no_moves, today, searches.left_out, ticks.left_out, about)


def _is_here(where: Where) -> bool:
    """Return whether all lies in files of this machine."""
    schemes = [re.match(r"(\w+):", path) for path in (*where.paths, where.tables)]
    return all(found is None or found[1] == "file" for found in schemes)


def _folder(tables: str) -> Path:
    return Path(tables.removeprefix("file:"))


@contextmanager
def _spark(where: Where, console: Console) -> Iterator[Engine]:
    log = where.out / "spark.log"
    with spark(where.master or HERE, log, where.tables, where.spark_conf) as engine:
        shown = f"Spark: {engine.ui}, its events stay in {where.out / 'spark-events'}"
        console.print(shown, highlight=False)
        yield engine


def _about(episodes: Sequence[Episode], sets: Sequence[ParameterSet], space: Space) -> str:
    names = sorted({one.topology for one in episodes})
    ticks = sum(one.ticks for one in episodes)
    whole_s = sum(one.span_s for one in episodes)
    held_s = stages.HELD_BACK_FRAC * sum(one.free_s for one in episodes)
    days = len({one.day for one in episodes})
    sampled = f", a sample of {space.combinations:,}" * (space.combinations > space.sets)
    return (
        f"{', '.join(names)}: {counted(ticks, 'tick')}, {whole_s:.0f} s on {counted(days, 'day')}, "
        f"the last {held_s:.0f} s held back; {counted(len(sets), 'parameter set')}{sampled}"
    )


def _swept(
    engine: Engine,
    episodes: Sequence[Episode],
    sets: Sequence[ParameterSet],
    console: Console,
    searched: Collection[str],
) -> list[SetOutcome]:
    with _progress(console, "parameter sets") as report:
        configs = [one.config for one in sets]
        folders = stages.trials(engine, episodes, configs, report, searched)
    figures = stages.answers(engine, folders, len(sets))
    return [SetOutcome(one, *both) for one, both in zip(sets, figures, strict=True)]


@contextmanager
def _progress(console: Console, what: str) -> Iterator[Callable[[float], None]]:
    columns = TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=1.0)

        def report(share: float) -> None:
            bar.update(task, completed=share)

        yield report
