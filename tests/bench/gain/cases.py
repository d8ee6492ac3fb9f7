"""What the placements are compared with: a workload, and how much the links carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """A topology in a lab of two nodes."""

    workload: str
    link: str
    conf: Mapping[str, Any] = field(default_factory=dict)


# More than the machine's cores can fill: the CPU binds.
_WIDE = "1gbit"

CASES: Mapping[str, Case] = {
    "cpu": Case("wordcount", _WIDE),
    # The shuffle that looks at load keeps sentences on their node, whatever the placement.
    "network": Case(
        "wordcount",
        "20mbit",
        {"workload.sentence.bytes": 1000, "topology.disable.loadaware.messaging": True},
    ),
    # Nothing reads what the bolts have counted.
    "compute": Case("harmonic", _WIDE, {"nstorm.move": {"count": "live"}}),
    "page-views": Case("page-views", "5mbit", {"nstorm.move": {"views": "live"}}),
}
