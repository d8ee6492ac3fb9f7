"""Runs every measurement of the journal and of replays, and shows what was found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from controller.journal.reader import Log
from controller.replay.recording import spans
from tests.bench.decide.report import table
from tests.bench.replay.cases import record
from tests.bench.replay.cost import cost
from tests.bench.replay.growth import by_executors, by_length
from tests.bench.replay.plain import against_plain_python
from tests.bench.replay.spark import against_no_spark, day

# Of an hour; so much is recorded, for a whole day would take hours to record.
QUARTERS_OF_A_DAY = 96


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    cost : sequence of int
        Executors whose cycle and journal are timed.
    ticks : int
        For how many ticks, and in the logs of growing width.
    executors : int
        In the log of growing length, against plain Python and on Spark.
    length : int
        Ticks of the longest log.
    widths : sequence of int
        Numbers of executors to compare.
    swept : int
        Ticks of the log of the sweep: enough that it takes more than a minute.
    parameter_sets, rounds : int
        Of the sweep on Spark, and how often; no rounds leave it out.
    recorded, times : int
        Ticks of the log that makes up a day, and how often it comes; none leaves it out.
    """

    cost: Sequence[int] = (1_000, 10_000)
    ticks: int = 20
    executors: int = 1_000
    length: int = 4_000
    widths: Sequence[int] = (250, 500, 1_000, 2_000, 4_000)
    swept: int = 1_000
    parameter_sets: int = 200
    rounds: int = 5
    recorded: int = 180
    times: int = 0


def bench(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure everything.

    Parameters
    ----------
    sizes : Sizes
        How much.
    tell : callable
        Told what comes next.

    Returns
    -------
    dict
        Ready for JSON.
    """
    found: dict[str, Any] = {"cost": []}
    with TemporaryDirectory(prefix="nstorm-bench-") as name:
        folder = Path(name)
        for executors in sizes.cost:
            tell(f"a cycle and its journal at {executors} executors")
            found["cost"].append(cost(executors, sizes.ticks, folder / f"cost-{executors}"))
        tell("against plain Python")
        log = Log.open(record(sizes.executors, sizes.ticks, folder / "plain"))
        found["against_plain_python"] = against_plain_python(next(spans(log)), 5)
        tell("logs of more and more executors")
        found["by_executors"] = by_executors(sizes.widths, sizes.ticks, folder / "wide")
        tell(f"a log of {sizes.length} ticks")
        found["by_length"] = by_length(sizes.executors, sizes.length, folder / "long")
        if sizes.rounds:
            tell("a sweep without Spark, and on one core and two")
            found["spark"] = against_no_spark(
                sizes.executors, sizes.swept, sizes.parameter_sets, sizes.rounds, folder
            )
        if sizes.times:
            tell("a day on two cores")
            found["day"] = day(
                sizes.executors, sizes.recorded, sizes.times, sizes.parameter_sets, folder
            )
    return found


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
    yield table("a cycle, its journal and its replay, a tick", found["cost"])
    yield table("OTD replayed, against plain Python", [found["against_plain_python"]])
    for key, title in (("by_executors", "more executors"), ("by_length", "a longer log")):
        growth = {name: value for name, value in found[key].items() if name != "rows"}
        shown = ", ".join(f"{name} {value}" for name, value in growth.items())
        yield table(f"{title}: {shown}", found[key]["rows"])
    if "spark" in found:
        yield table("the same sweep without Spark and with it", [found["spark"]])
    if "day" in found:
        yield table("a recorded time over and over, swept on two cores", [found["day"]])
