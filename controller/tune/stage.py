"""Makes one stage of the pipeline, with those before it, and gives what it holds as rows."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from controller.console import Console
from controller.pipeline import stages
from controller.pipeline.opened import opened, progress
from controller.pipeline.schemas import EPISODES, TRIALS
from controller.pipeline.where import Where
from controller.tune.choice import Objective
from controller.tune.space import Space, parameter_sets


def made(
    stage: str, where: Where, *, topology: str | None, asked: Space | None, console: Console
) -> tuple[list[dict[str, Any]], Sequence[str]]:
    """Make a stage, by its name; gives its rows, and lines on what was left out.

    Raises `TuneError` and `JournalError` as the stages do.
    """
    with opened(where, console) as (engine, log):
        if stage == "raw":
            return list(_raw(log)), log.lacks
        with progress(console, "reading the log") as report:
            ticks = stages.ticks(engine, log, report)
        if stage == "ticks":
            return [asdict(part) for part in ticks.parts], ticks.left_out
        episodes = stages.episodes(ticks, topology)
        if stage == "episodes":
            table = pa.Table.from_pylist([asdict(one) for one in episodes], EPISODES)
            return table.to_pylist(), ticks.left_out
        today = log.keys()
        sets = parameter_sets(asked or Space().narrowed(today), today)
        with progress(console, "parameter sets") as report:
            folders = stages.trials(engine, episodes, [one.config for one in sets], report)
        names = [one.name for one in sets]
        if stage == "trials":
            rows = engine.rows(folders, TRIALS).sort_by("set").to_pylist()
            return [{"settings": names[row["set"]], **row} for row in rows], ticks.left_out
        answers = stages.costs(engine, folders, names, Objective().cost)
        return answers.to_pylist(), ticks.left_out


def _raw(log: stages.Raw) -> Iterator[dict[str, Any]]:
    for file in log.files:
        one = file.segment
        where = {"uri": file.uri, "size_bytes": file.size_bytes, "begun": one.begun}
        yield {**where, "writer": one.writer, "number": one.number}
