"""Every resource in one table: what executors use, of what there is only so much.

Amounts of a space come by two meters of the worker (`migration/meters.py`). A row here is all that
limits a placement by another space: snapshot, fit, refusals, searches and status read this table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """What load uses, and what is relieved where there is too much of it."""

    name: str
    shown: str  # in a sentence
    unit: str  # of capacity and load
    # Keys in `settings.py`: the share of its capacity that may be used, and below which it is low.
    limit: str
    low: str


@dataclass(frozen=True, slots=True)
class WorkerSpace:
    """What executors fill in their worker and take along; above `load.high` of it some leave."""

    name: str
    shown: str  # in a sentence
    # Meters: how much a worker has filled, and up to where it may. The keys of a snapshot as well.
    held: str
    most: str
    bare: float  # what a worker fills without executors, at least
    # By what factor it may still be filled for more room not to be asked for.
    enough: float
    has_state: bool = False  # whether the state of its executors is in it


CPU = Resource(name="cpu", shown="CPU", unit="cores", limit="load.high", low="load.low")
RESOURCES = (CPU,)
HEAP = WorkerSpace(
    name="heap",
    shown="a heap",
    held="heap_live_bytes",
    most="heap_max_bytes",
    bare=15e6,  # workers of WordCount in the lab have 18 to 28 MB
    enough=4.0,  # what lives grows with state, and hardly with the input
    has_state=True,
)
SPACES: tuple[WorkerSpace, ...] = (HEAP,)
