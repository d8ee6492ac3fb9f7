"""Asks all questions of a log, through the stages of the pipeline."""

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa

from controller.config import build
from controller.console import Console
from controller.core.times import utc
from controller.output import counted
from controller.pipeline import stages
from controller.pipeline.opened import opened, progress
from controller.pipeline.schemas import CONCLUDED, HOURS
from controller.pipeline.ticks import Batches
from controller.pipeline.where import Where
from controller.tune.searches import timed
from controller.tune.space import ParameterSet, without_moves
from controller.weeks import auto, disturbed, hosts, paid
from controller.weeks.hours import Hours
from controller.weeks.log_report import LogReport, OfHours
from controller.weeks.need import needs
from migration.model import topology_name


def run(where: Where, *, topology: str | None, console: Console) -> LogReport:
    """Add the log up by hour, replay it with the settings at its end, and answer.

    What is asked of one topology alone counts its neighbours as well. Raises `TuneError` where
    there is nothing to report on, or Spark gives up; `JournalError` where the log cannot be read.
    """
    with ExitStack() as stack:
        engine, log = stack.enter_context(opened(where, console))
        today = log.keys()
        with progress(console, "reading the log") as report:
            ticks = stages.ticks(engine, log, report)
        of = stages.episodes(ticks, topology)
        every = stages.episodes(ticks)
        with progress(console, "adding up by hour") as report:
            folders = stages.hours(engine, every, report)
        names = {one.topology for one in of}
        sets = [ParameterSet((), build(today)), without_moves(today, names)]
        shown = sorted({topology_name(name) for name in names})
        high_frac = sets[0].config.limits.high_frac
        work = partial(answered, shown=shown, high_frac=high_frac)
        packed = stages.concluded(engine, folders, work)
        hours = msgspec.msgpack.decode(packed, type=OfHours)
        # The other set moves nothing, so it searches nothing.
        engine, searches = timed(stack, engine, of, sets[:1], where=where, console=console)
        with progress(console, "mode auto") as report:
            configs = [one.config for one in sets]
            tried = stages.trials(engine, of, configs, report, searches.topologies)
        by_set = stages.answers_by_day(engine, tried, len(sets))
        runs = [row for row in stages.runs(engine, ticks) if row["topology"] in names]
    judged = paid.runs(runs)
    days = len({one.day for one in of})
    return LogReport(
        about=f"{', '.join(shown)}: {counted(days, 'day')}, {utc(hours.begun_s)} to "
        f"{utc(hours.ended_s)}",
        left_out=tuple(ticks.left_out),
        needs=hours.needs,
        disturbed=hours.disturbed,
        full=hours.full,
        disturbed_lines=tuple(disturbed.lines(hours.disturbed, hours.full, high_frac)),
        hosts=hours.hosts,
        host_line=hosts.line(hours.hosts, high_frac),
        slow_hosts=hours.slow_hosts,
        slow_lines=tuple(map(hosts.slow_line, hours.slow_hosts)),
        gained=tuple(auto.gained(by_set)),
        searches=tuple(searches.left_out),
        runs=tuple(judged),
        run_line=paid.line(judged),
    )


def answered(
    batches: Iterable[pa.RecordBatch], shown: Collection[str], high_frac: float
) -> Batches:
    """Answer what the hours of all topologies answer, for those that are shown, by name.

    Yields
    ------
    pyarrow.RecordBatch
        A row of `CONCLUDED`: `OfHours`.
    """
    hours = Hours.of(pa.Table.from_batches(batches, HOURS))
    every = disturbed.disturbed(hours)
    seen_s = [one.seen_s for one in hours.topologies if one.name in shown]
    seen = np.flatnonzero(~np.isnan(seen_s).all(axis=0))
    found = OfHours(
        begun_s=hours.time_s(int(seen[0])),
        ended_s=hours.time_s(int(seen[-1]) + 1),
        needs=tuple(one for one in needs(hours) if one.topology in shown),
        disturbed=tuple(one for one in every if {one.topology, one.by} & set(shown)),
        full=tuple(disturbed.full(hours, high_frac)),
        hosts=tuple(hosts.without_each(hours)),
        slow_hosts=tuple(hosts.slow(hours)),
    )
    yield pa.RecordBatch.from_pylist([{"found": msgspec.msgpack.encode(found)}], CONCLUDED)
