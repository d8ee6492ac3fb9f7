"""How long a JVM is cold: code is still compiled, and a tuple costs several times as much."""

from migration.model import Publication

COLD_S = 120.0


def cold_s(publication: Publication, time_s: float) -> float:
    """Compute for how long executors of a topology are still cold, in seconds."""
    started_s = max((placed.start_secs or 0 for placed in publication.executors), default=0)
    return min(max(started_s + COLD_S - time_s, 0.0), COLD_S)
