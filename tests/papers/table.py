"""Compares what a paper prints with what the shipped code gives, and prints it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

Value = float | str | tuple[float, ...]

NOT_IN_TEXT = "figure not in the text"
UNEXPLAINED = "not explained"
AGREE = ("equal", "holds")
YES_NO = ("no", "yes")
# How a row is counted. A sentence of the text that is so here too is no figure that agrees. Neither
# is a second row of one figure, by another reading of the text.
VERDICTS = ("agrees", "differs", "read otherwise", "said, and so", "said, not so", "not printed")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes
    ----------
    seed, where, what : str
        Number of the paper, its section or table, and what the figure shows.
    paper : float, str, tuple of float, or None
        As printed; None if our copy has no such figure.
    lab : float, str, or None
        As measured on a Storm cluster of the lab; None where it was not.
    otherwise : bool
        Whether the same printed figure has a row already, by a first reading of the text.
    """

    seed: str
    where: str
    what: str
    paper: Value | None
    ours: Value
    why: str
    lab: float | str | None = None
    otherwise: bool = False

    @property
    def verdict(self) -> str:
        """Whether the figure agrees with the printed one, if there is one: one of `VERDICTS`."""
        if self.paper is None:
            return "not printed"
        if self.otherwise:
            return "read otherwise"
        is_so = self.why.partition(";")[0] in AGREE
        if self.paper in YES_NO:
            return "said, and so" if is_so else "said, not so"
        return "agrees" if is_so else "differs"


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """A printed figure that needs what neither arithmetic nor the simulator has."""

    seed: str
    where: str
    what: str
    paper: str
    why: str


@dataclass(slots=True)
class Paper:
    """All that is printed of one paper."""

    seed: str
    rows: list[Row] = field(default_factory=list)
    out_of_reach: list[OutOfReach] = field(default_factory=list)

    def row(
        self,
        where: str,
        what: str,
        paper: Value | None,
        ours: Value,
        *,
        differs: str = UNEXPLAINED,
        note: str = "",
        within: float = 0.0,
        holds: bool | None = None,
        lab: float | str | None = None,
        otherwise: bool = False,
    ) -> None:
        """Compare a figure, and add why the two differ only if they do.

        Parameters
        ----------
        note : str
            What to know even if they are equal.
        within : float
            Half of the last printed digit.
        holds : bool or None
            Whether what is printed, such as "< 1", is true of ours; None: compare.
        """
        if paper is None:
            why = note or NOT_IN_TEXT
        else:
            agrees = _equal(paper, ours, within) if holds is None else holds
            verdict = AGREE[holds is not None] if agrees else differs
            why = f"{verdict}; {note}" if note else verdict
        self.rows.append(Row(self.seed, where, what, paper, ours, why, lab, otherwise))

    def claim(self, where: str, what: str, holds: bool, *, differs: str = UNEXPLAINED) -> None:
        """Compare what the text has in words, without a figure."""
        self.row(where, what, "yes", YES_NO[holds], differs=differs)

    def beyond(self, where: str, what: str, paper: str, why: str) -> None:
        """Name a figure that cannot be computed here."""
        self.out_of_reach.append(OutOfReach(self.seed, where, what, paper, why))


def _equal(paper: Value, ours: Value, within: float) -> bool:
    if isinstance(paper, str) or isinstance(ours, str):
        return paper == ours
    one = paper if isinstance(paper, tuple) else (paper,)
    other = ours if isinstance(ours, tuple) else (ours,)
    # Rounding errors are no difference.
    most = within + 1e-9
    return len(one) == len(other) and all(
        abs(a - b) <= most for a, b in zip(one, other, strict=True)
    )


def as_document(papers: Sequence[Paper]) -> dict[str, Any]:
    """Put papers into the stable output format."""
    return {
        "rows": [asdict(row) for paper in papers for row in paper.rows],
        "out_of_reach": [asdict(one) for paper in papers for one in paper.out_of_reach],
    }


def print_summary(papers: Sequence[Paper], console: Console) -> None:
    """Print how many figures of each paper agree, and why the others do not."""
    counts = Table("paper", "figures", *VERDICTS, "out of reach here")
    reasons, unlike = Table("paper", "figures", "why they differ"), ("differs", "said, not so")
    for paper in papers:
        found = Counter(row.verdict for row in paper.rows)
        numbers = (len(paper.rows), *(found[v] for v in VERDICTS), len(paper.out_of_reach))
        counts.add_row(paper.seed, *map(str, numbers))
        differing = Counter(row.why for row in paper.rows if row.verdict in unlike)
        for why, number in differing.most_common():
            reasons.add_row(paper.seed, str(number), why)
    console.print(counts)
    if reasons.rows:
        console.print(reasons)


def print_table(papers: Sequence[Paper], console: Console) -> None:
    """Print papers for a reader."""
    for paper in papers:
        labs = ("lab",) if any(row.lab is not None for row in paper.rows) else ()
        table = Table("where", "what", "paper", "ours", *labs, "why they differ", title=paper.seed)
        for row in paper.rows:
            figures = [row.paper, row.ours, *(row.lab for _ in labs)]
            cells = ("–" if figure is None else _short(figure) for figure in figures)
            table.add_row(row.where, row.what, *cells, row.why)
        console.print(table)
        if paper.out_of_reach:
            rest = Table("where", "what", "paper", "why not here", title=f"{paper.seed}, not here")
            for one in paper.out_of_reach:
                rest.add_row(one.where, one.what, one.paper, one.why)
            console.print(rest)


def _short(value: Value) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{item:.6g}" for item in value)
    return value if isinstance(value, str) else f"{value:.6g}"
