"""Every resource in one table: what executors use, of what there is only so much."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A row of the table."""

    name: str
    shown: str  # in a sentence
    unit: str  # of capacity and load
    # Keys in `settings.py`: the share of its capacity that may be used, and below which it is low.
    limit: str
    low: str


CPU = Resource(name="cpu", shown="CPU", unit="cores", limit="load.high", low="load.low")
RESOURCES = (CPU,)
