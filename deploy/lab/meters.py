"""Reads the meters that Storm's daemons write with their CSV reporter."""

import csv
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

PERIOD_S = 2


def read_meters(directories: Iterable[Path]) -> Counter[str]:
    """Add up the meters and counters of several daemons.

    A daemon that restarts counts from zero again; what it had counted before stays in the sum.

    Parameters
    ----------
    directories : Iterable[Path]
        A reporter's directory for each daemon. What is reported is up to `PERIOD_S` old.

    Returns
    -------
    Counter[str]
        Count by name, such as "nimbus:num-rebalance-calls".
    """
    totals: Counter[str] = Counter()
    for directory in directories:
        for file in directory.glob("*.csv"):
            totals[file.stem] += _count(file)
    return totals


def _count(file: Path) -> int:
    """Give the newest count of one file plus all that restarts have set back; 0 for a gauge."""
    whole_lines = file.read_text().rpartition("\n")[0]
    counts = [
        int(row["count"]) for row in csv.DictReader(whole_lines.split("\n")) if "count" in row
    ]
    restarts = (before for before, after in pairwise(counts) if after < before)
    return sum(restarts) + (counts[-1] if counts else 0)
