"""What a table had to be read without: each row with its file, the rule and the value."""

import csv
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from controller.ingest.signs import IngestError, Sign
from controller.journal.lines import QUARANTINE, QUARANTINE_FILE
from controller.output import counted


@dataclass(slots=True)
class Quarantine:
    """Rows and files that were left out.

    Parameters
    ----------
    most_frac : float
        Share of a file's rows, 0 to 1, above which the file is refused.
    """

    most_frac: float
    count: int = 0  # rows that were left out, all of them where a file was
    rows: list[tuple[str, Sign]] = field(default_factory=list)

    def take(self, path: Path, found: Collection[Sign], count: int) -> list[str]:
        """Leave out what was found in a file of `count` rows; gives a line for each rule.

        A sign that is of the whole file leaves out all of its rows. Raises `IngestError` where more
        than `most_frac` of the rows would be left out.
        """
        whole = [one for one in found if one.row is None]
        out = count if whole else len({one.row for one in found})
        if out > self.most_frac * count:
            first = (whole or sorted(found, key=lambda one: one.row or 0))[0]
            raise IngestError(
                f"{_where(path, first)}: {first.why}; that leaves out {out} of "
                f"{counted(count, 'row')}, and --left-out-max allows a share of {self.most_frac:g}"
            )
        self.count += out
        self.rows += [(str(path), one) for one in found]
        said = []
        for rule, rows in Counter(one.rule for one in found).items():
            first = next(one for one in found if one.rule == rule)
            what = f"{rows} of {counted(count, 'row')}" if first.row else "the whole file"
            said.append(f"{_where(path, first)}: {first.why}; {rule}: {what} left out")
        return said

    def write(self, folder: Path) -> Path | None:
        """Write the table next to the journal, if anything was left out.

        Raises `IngestError` where the folder cannot be written.
        """
        if not self.rows:
            return None
        path = folder / QUARANTINE_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # No encoding has the surrogates of a file's name.
            with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as table:
                rows = csv.writer(table)
                rows.writerow(QUARANTINE)
                rows.writerows((path, one.row, one.rule, one.value) for path, one in self.rows)
        except OSError as error:
            raise IngestError(f"{folder}: {error.strerror or error}") from error
        return path


def _where(path: Path, found: Sign) -> str:
    return f"{path}: row {found.row}" if found.row else str(path)
