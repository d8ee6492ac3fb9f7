"""Writes docs/measured.md from the figures in docs/measurements.

``python -m tests.measured_page > docs/measured.md``
"""

from pathlib import Path

import msgspec

FOLDER = Path(__file__).parents[1] / "docs" / "measurements"
# The subjects in the order of the page; each is a file of figures.
SUBJECTS = (
    "hooks",
    "moves",
    "state",
    "redeployment",
    "gain",
    "policies",
    "controller",
    "journal",
)
_HEAD = """# Measured

<!-- Generated: python -m tests.measured_page > docs/measured.md -->

All figures come from one machine with 2 shared cores. It carries the whole cluster: ZooKeeper,
Nimbus, two supervisors with two workers each, two agents and the controller, with Storm 2.8.3. Both
nodes are this machine, so a tuple between nodes costs little more than one between two workers. No
figure is from a large real cluster.

The *load* is the load average. The lab's own threads make 8 to 20 of it, and above that other work
ran at the same time. The *date* is the day on which the figure entered the repository. A dash means
that something was not noted.

The *command* repeats the figure in a checkout: `bench moves` stands for `.venv/bin/python -m
tests.bench moves`. `docs/measurements/` has each figure as data, with older and finer ones, and the
logs of the runs.
"""
_COLUMNS = "| | figure | load | date, commit | command |\n|---|---|---|---|---|"


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One measured fact with its conditions."""

    what: str
    figure: str
    load: str
    date: str
    commit: str = ""
    command: str = ""
    cite: str = ""  # the wording of README
    current: bool = True  # else it is here alone: a later or a broader figure is on the page


class Subject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of one heading of the page."""

    title: str
    figure: list[Figure]
    intro: str = ""
    log: str = ""  # the file that has the runs as they were noted


def subject(name: str) -> Subject:
    """Read the figures of one subject."""
    return msgspec.toml.decode((FOLDER / f"{name}.toml").read_bytes(), type=Subject)


def page() -> str:
    """Write docs/measured.md."""
    return "\n".join([_HEAD, *(_section(subject(name)) for name in SUBJECTS)])


def _section(one: Subject) -> str:
    rows = [_row(figure) for figure in one.figure if figure.current]
    log = f"[The runs]({FOLDER.name}/{one.log}), with earlier ones." if one.log else ""
    intro = "\n".join(filter(None, (one.intro.strip(), log)))
    texts = (f"## {one.title}", intro, "\n".join([_COLUMNS, *rows]))
    return "\n\n".join(filter(None, texts)) + "\n"


def _row(figure: Figure) -> str:
    when = f"{figure.date}, {figure.commit}" if figure.commit else figure.date
    cells = (figure.what, figure.figure, figure.load, when, figure.command or "–")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(), end="")
