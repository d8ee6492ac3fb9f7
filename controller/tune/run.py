"""Runs all parameter sets through the stages of the pipeline, here or on Spark."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from controller.console import Console
from controller.output import counted
from controller.pipeline import stages
from controller.pipeline.engine import Engine, Episode
from controller.pipeline.opened import opened, progress
from controller.pipeline.where import Where
from controller.tune.choice import Objective, SetOutcome, ranked
from controller.tune.command import Sweep
from controller.tune.searches import timed
from controller.tune.space import ParameterSet, Space, parameter_sets, without_moves


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
        engine, log = stack.enter_context(opened(where, console))
        today = dict(keys or log.keys())
        with progress(console, "reading the log") as report:
            ticks = stages.ticks(engine, log, report)
        episodes = stages.episodes(ticks, topology)
        space = asked or Space().narrowed(today)
        sets = parameter_sets(space, today)
        about = _about(episodes, sets, space)
        console.print(about, highlight=False)
        names = {one.topology for one in episodes}
        engine, searches = timed(stack, engine, episodes, sets, where=where, console=console)
        every = [*sets, without_moves(today, names)]
        *outcomes, no_moves = _swept(engine, episodes, every, console, searches.topologies)
        if searches.again:
            best = [one.parameters for one in ranked(outcomes, goal)]
            again = [sets[0], *[one for one in best if one != sets[0]][: searches.again - 1]]
            outcomes = _swept(engine, episodes, again, console, names)
    return Sweep(outcomes, no_moves, today, searches.left_out, ticks.left_out, about)


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
    with progress(console, "parameter sets") as report:
        configs = [one.config for one in sets]
        folders = stages.trials(engine, episodes, configs, report, searched)
    figures = stages.answers(engine, folders, len(sets))
    return [SetOutcome(one, *both) for one, both in zip(sets, figures, strict=True)]
