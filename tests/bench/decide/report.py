"""Runs every measurement of decisions, and shows what was found."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from tests.bench.decide.fresh import fresh, measured, summary
from tests.bench.decide.speed import speed
from tests.bench.frame import table

SIZES = (1_000, 10_000)


def bench(
    repeats: int,
    worlds: int,
    world_sizes: Sequence[int | None],
    file: Path,
    tell: Callable[[str], None],
    *,
    sizes: Sequence[int] = SIZES,
) -> dict[str, Any]:
    """Time each size's decisions, and follow `gather` in a number of fresh worlds of each kind.

    A world of size None has 8 to 40 executors; the file keeps worlds that are done.
    """
    times = []
    for executors in sizes if repeats else ():
        tell(f"speed at {executors} executors")
        times.append(speed(executors, repeats))
    found = list(summary(fresh(worlds, world_sizes, file, tell, measured))) if worlds else []
    return {"speed": times, "worlds": found}


def as_tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make tables for people."""
    if found["speed"]:
        yield table("a cycle at rest", found["speed"])
    if found["worlds"]:
        yield table("gather in fresh worlds, above the best known", found["worlds"])
