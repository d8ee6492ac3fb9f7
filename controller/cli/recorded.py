"""Finds one cycle in the journal of this machine, and decides it again."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from pathlib import Path

from controller.config import Config
from controller.errors import CommandError
from controller.journal.reader import Log, Segment, Tick
from controller.output import quiet
from controller.replay.playback import recorded_config, replay
from controller.report import TopologyReport, not_written

# A segment is named once the cycle of its first tick has come to its end.
_LONGEST_CYCLE_S = 60.0


def in_journal(folders: list[Path], named: int | datetime) -> tuple[list[TopologyReport], Config]:
    """Decide a cycle again; gives how it ended, and its settings.

    A controller of these journals led in it. It is the newest one of this number, or the last one
    by the end of this second. No more is decided again than what follows the nearest head.
    """
    with quiet(logging.CRITICAL):
        log = Log.open(folders)
        places = (_place(log, segments, named) for segments in log.writers)
        found = max(filter(None, places), default=[], key=lambda ticks: ticks[-1].record.time_s)
        *_, one = [None, *replay(found)]
        if one is not None and one.identical and found[0].head is not None:
            lost, reports = one.tick.record.unwritten, one.report.topologies
            told = [not_written(r) if r.topology in lost else r for r in reports]
            return told, recorded_config(found[0].head)
        log.newest_head()  # refuses a journal that only another version reads
        if found:
            raise CommandError(
                f"cycle {found[-1].record.seq} cannot be decided again as it was: its segment of "
                "the journal is damaged, or of another version of nstorm"
            )
        where = " ".join(map(str, folders))
        raise CommandError(
            f"{where} has no cycle {named} in which its controller led. Ask on the machine of the "
            f"one that led; `nstorm replay {where}` lists the cycles of a journal"
        )


def _place(log: Log, segments: Sequence[Segment], named: int | datetime) -> list[Tick] | None:
    """Find the cycle among those of a controller process, which counts them, and records, from 1.

    Gives its tick, the last one, and those before it from the nearest head on.
    """
    until_s, number = (named.timestamp() + 1, inf) if isinstance(named, datetime) else (inf, named)
    # A controller that has lost its lead may have begun segments since.
    for segment in reversed([s for s in segments if s.begun_s < until_s + _LONGEST_CYCLE_S]):
        found, ticks = None, list[Tick]()
        for tick in replace(log, writers=((segment,),)).ticks(0):
            record = tick.record
            if record.seq > number or record.time_s >= until_s:
                break
            ticks = [tick] if tick.head is not None else [*ticks, tick]
            if record.epoch is not None and not tick.superseded and number in (record.seq, inf):
                found = ticks
        if found is not None or (ticks and number < inf):
            return found
    return None
