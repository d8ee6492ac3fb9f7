"""Runs every measurement of the journal and of replays, and shows what was found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from tests.bench.frame import table
from tests.bench.replay.cost import cost
from tests.bench.replay.spark import against_no_spark


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    cost : sequence of int
        Executors whose cycle and journal are timed.
    executors : int
        In the log that is swept.
    swept : int
        Ticks of that log: enough that its sweep takes more than a minute.
    parameter_sets, rounds : int
        Of the sweep on Spark, and how often; no rounds leave it out.
    """

    cost: Sequence[int] = (1_000, 10_000)
    ticks: int = 20
    executors: int = 1_000
    swept: int = 1_000
    parameter_sets: int = 200
    rounds: int = 5


def bench(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure everything, ready for JSON; one row of figures a key, but for the cost."""
    found: dict[str, Any] = {"cost": []}
    with TemporaryDirectory(prefix="nstorm-bench-") as name:
        folder = Path(name)
        for executors in sizes.cost:
            tell(f"a cycle and its journal at {executors} executors")
            found["cost"].append(cost(executors, sizes.ticks, folder / f"cost-{executors}"))
        if sizes.rounds:
            tell("a sweep without Spark, and on one core and two")
            found["spark"] = against_no_spark(
                sizes.executors, sizes.swept, sizes.parameter_sets, sizes.rounds, folder
            )
    return found


def as_tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make tables for people."""
    yield table("a cycle, its journal and its replay, a tick", found["cost"])
    if "spark" in found:
        yield table("the same sweep without Spark and with it", [found["spark"]])
