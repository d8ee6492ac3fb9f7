"""The versions of Storm that nstorm looks at, as migration/jvm/storm-versions.tsv has them."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from deploy.lab import LabError

REPOSITORY = Path(__file__).parents[3]
TABLE = REPOSITORY / "migration/jvm/storm-versions.tsv"


@dataclass(frozen=True, slots=True)
class StormVersion:
    """One row of the table, which explains its columns."""

    version: str
    parts: str
    metrics: str
    java: str
    level: str


def storm_versions() -> dict[str, StormVersion]:
    """Read the table, oldest version first."""
    lines = (line for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return {row["version"]: StormVersion(**row) for row in csv.DictReader(lines, delimiter="\t")}


def storm_version(version: str | None = None) -> StormVersion:
    """Find a version; without one, that which the jars are compiled against.

    Raises
    ------
    LabError
        When the table does not have it.
    """
    if version is None:
        (version,) = re.findall(
            r"-Dstorm\.version=(\S+)", (REPOSITORY / ".mvn/maven.config").read_text()
        )
    known = storm_versions()
    if version not in known:
        raise LabError(f"Storm {version} is not in {TABLE.name}, which has {', '.join(known)}")
    return known[version]
