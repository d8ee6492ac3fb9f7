"""Runs every measurement of decisions, and shows what was found."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from tests.bench.decide.fresh import fresh, summary
from tests.bench.decide.quality import quality
from tests.bench.decide.speed import against_plain_python, speed

SIZES = (1_000, 10_000)


def bench(
    seeds: int,
    repeats: int,
    tell: Callable[[str], None],
    *,
    worlds: int = 0,
    world_sizes: Sequence[int | None] = (),
    file: Path = Path("build/bench/worlds.jsonl"),
    sizes: Sequence[int] = SIZES,
) -> dict[str, Any]:
    """Measure everything.

    Parameters
    ----------
    seeds : int
        How many starts a case of the comparison; 0 leaves it out.
    repeats : int
        How often each decision is timed.
    tell : callable
        Told what comes next.
    worlds : int
        How many fresh worlds of each kind; 0 leaves them out.
    world_sizes : sequence of int or None
        Their numbers of executors; None: small ones.
    file : Path
        Where worlds that are done are kept; it goes on after those.
    sizes : sequence of int
        Numbers of executors.

    Returns
    -------
    dict
        Ready for JSON.
    """
    times = []
    for executors in sizes:
        tell(f"speed at {executors} executors")
        times.append(speed(executors, repeats))
    tell("against plain Python")
    plain = against_plain_python(repeats)
    return {
        "speed": times,
        "against_plain_python": plain,
        "quality": quality(seeds, tell) if seeds else [],
        "worlds": list(summary(fresh(worlds, world_sizes, file, tell))) if worlds else [],
    }


def as_tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make tables for people.

    Parameters
    ----------
    found : dict
        From `bench`.

    Yields
    ------
    Table
        For rich.
    """
    yield table("a cycle at rest", found["speed"])
    yield table("against OTD in plain Python", [found["against_plain_python"]])
    if found["quality"]:
        yield table("quality, medians over the seeds", found["quality"])
    if found["worlds"]:
        yield table("gather in fresh worlds, above the best known", found["worlds"])


def tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make a table of each list of rows, named by its key."""
    for title, rows in found.items():
        yield table(title, rows)


def table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    """Make a table of figures.

    Parameters
    ----------
    title : str
        What they are of.
    rows : sequence of dict
        All with the keys of the first.

    Returns
    -------
    Table
        One column a key.
    """
    made = Table(*rows[0], title=title)
    for row in rows:
        made.add_row(*(_cell(value) for value in row.values()))
    return made


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} {_cell(part)}" for key, part in value.items())
    return "-" if value is None else str(value)
