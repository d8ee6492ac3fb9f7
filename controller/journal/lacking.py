"""Reads what a journal that was made of tables lacks of them, in a file next to its segments."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from controller.journal.lines import QUARANTINE_FILE, JournalError


def lacking(folders: Iterable[Path]) -> Counter[str]:
    """Count by rule what was left out; raises `JournalError` where a list cannot be read."""
    files = sorted({one for folder in folders for one in folder.rglob(QUARANTINE_FILE)})
    return Counter(rule for file in files for rule in _rules(file))


def lacking_texts(counts: Mapping[str, int]) -> list[str]:
    """Return one line a rule."""
    return [f"{count} in {QUARANTINE_FILE}: {rule}" for rule, count in sorted(counts.items())]


def _rules(file: Path) -> list[str]:
    try:
        with file.open(newline="", encoding="utf-8") as rows:
            return [row["rule"] for row in csv.DictReader(rows)]
    except (OSError, UnicodeDecodeError, csv.Error, KeyError) as error:
        raise JournalError(f"{file}: no list of rows that were left out: {error}") from None
