"""Finds one cycle in the journal of this machine, and decides it again."""

import logging
from bisect import bisect_right
from contextlib import suppress
from datetime import datetime
from math import inf
from pathlib import Path

from controller.config import Config
from controller.errors import CommandError
from controller.journal.reader import Log, moment
from controller.output import quiet
from controller.replay.playback import recorded_config, replay
from controller.report import TopologyReport, not_written


def cycle_named(text: str) -> int | datetime | None:
    """Read a number or a time, UTC if it has no zone; None if it is neither."""
    if text.isdecimal():
        return int(text)
    with suppress(ValueError):
        return moment(text)
    return None


def in_journal(folder: Path, named: int | datetime) -> tuple[list[TopologyReport], Config]:
    """Decide a cycle again; gives how it ended, and its settings.

    It is the newest one of this number, or the last one by the end of this second, in which a
    controller of this journal led. No more of the journal is decided again than its segment.
    """
    with quiet(logging.CRITICAL):
        log, config = Log.open([folder]), Config()
        places = (_place(log, writer, named) for writer in range(len(log.writers)))
        found = max(filter(None, places), default=None)
        if found is None:
            log.newest_head()  # refuses a journal that only another version reads
            raise CommandError(
                f"{folder} has no cycle {named} in which its controller led: ask where the one is "
                f"that did; `nstorm replay {folder}` lists what a journal has"
            )
        _, writer, since_s, number = found
        for one in replay(log, writer, since_s):
            if one.tick.head is not None:
                config = recorded_config(one.tick.head)
            record = one.tick.record
            if record.seq == number and one.identical:
                lost, reports = record.unwritten, one.report.topologies
                return [not_written(r) if r.topology in lost else r for r in reports], config
            if record.seq >= number:
                break
        raise CommandError(
            f"cycle {number} cannot be decided again as it was: its segment of the journal is "
            "damaged, or of another version of nstorm"
        )


def _place(log: Log, writer: int, named: int | datetime) -> tuple[float, int, float, int] | None:
    """Find the cycle among those of a controller process, which counts them, and records, from 1.

    Gives its time, the process, from when on to read, and the number.
    """
    number, until_s = inf, inf
    if isinstance(named, datetime):
        since_s = named.timestamp()
        until_s = since_s + 1
    else:
        segments = log.writers[writer]
        row = bisect_right(segments, float(named), key=lambda s: _number(log, writer, s.begun_s))
        number, since_s = named, segments[max(row - 1, 0)].begun_s
    found = None
    for tick in log.ticks(writer, since_s):
        record = tick.record
        if record.seq > number or record.time_s >= until_s:
            break
        if record.epoch is not None and not tick.superseded and number in (record.seq, inf):
            found = record.time_s, writer, since_s, record.seq
    return found


def _number(log: Log, writer: int, since_s: float) -> float:
    return next((tick.record.seq for tick in log.ticks(writer, since_s)), inf)
