"""Asks all questions of a log, through the stages of the pipeline."""

from typing import Any

from controller.config import build
from controller.console import Console
from controller.core.times import utc
from controller.output import counted
from controller.pipeline import stages
from controller.pipeline.opened import HERE, opened, progress
from controller.pipeline.schemas import HOURS
from controller.pipeline.spark import cores_of
from controller.pipeline.where import Where
from controller.tune.searches import rehearse
from controller.tune.space import ParameterSet, without_moves
from controller.weeks import auto, disturbed, hosts, paid
from controller.weeks.hours import Hours
from controller.weeks.log_report import LogReport
from controller.weeks.need import needs
from migration.model import topology_name


def run(where: Where, *, topology: str | None, console: Console) -> LogReport:
    """Add the log up by hour, replay it with the settings at its end, and answer.

    What is asked of one topology alone counts its neighbours as well. Raises `TuneError` where
    there is nothing to report on, or Spark gives up; `JournalError` where the log cannot be read.
    """
    with opened(where, console) as (engine, log):
        today: dict[str, Any] = dict(build(log.log.newest_head().config).keys)
        with progress(console, "reading the log") as report:
            ticks = stages.ticks(engine, log, report)
        of = stages.episodes(ticks, topology)
        every = stages.episodes(ticks)
        with progress(console, "adding up by hour") as report:
            folders = stages.hours(engine, every, report)
        hours = Hours.of(engine.rows(folders, HOURS))
        names = {one.topology for one in of}
        sets = [ParameterSet((), build(today)), without_moves(today, names)]
        with console.status("timing the searches"):
            samples = stages.samples(engine, of)
            searches = rehearse(samples, sets, cores_of(where.master or HERE))
        with progress(console, "mode auto") as report:
            configs = [one.config for one in sets]
            tried = stages.trials(engine, of, configs, report, searches.topologies)
        by_set = stages.answers_by_day(engine, tried, len(sets))
        runs = [row for row in stages.runs(engine, ticks) if row["topology"] in names]
    shown = {topology_name(name) for name in names}
    high_frac = sets[0].config.limits.high_frac
    neighbours = [one for one in disturbed.disturbed(hours) if {one.topology, one.by} & shown]
    nodes, less = disturbed.full(hours, high_frac), hosts.without_each(hours)
    slower = hosts.slow(hours)
    judged = paid.runs(runs)
    days = len({one.day for one in of})
    return LogReport(
        about=f"{', '.join(sorted(shown))}: {counted(days, 'day')}, {utc(hours.time_s(0))} to "
        f"{utc(hours.time_s(hours.count))}",
        left_out=tuple(ticks.left_out),
        needs=tuple(one for one in needs(hours) if one.topology in shown),
        disturbed=tuple(neighbours),
        full=tuple(nodes),
        disturbed_lines=tuple(disturbed.lines(neighbours, nodes, high_frac)),
        hosts=tuple(less),
        host_line=hosts.line(less, high_frac),
        slow_hosts=tuple(slower),
        slow_lines=tuple(map(hosts.slow_line, slower)),
        gained=tuple(auto.gained(by_set)),
        searches=tuple(searches.left_out),
        runs=tuple(judged),
        run_line=paid.line(judged),
    )
