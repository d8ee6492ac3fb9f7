"""Notices when Storm is doing something of its own, so that nothing is moved on an old picture."""

from collections.abc import Callable

from controller.storm.message_cache import Mirror
from migration import wire
from migration.model import ABSORBED, Plan, Publication

SILENCE_LIMIT_S = 30.0


class NimbusWatch:
    """Compares what the hooks in Nimbus published with what Storm has written since.

    Parameters
    ----------
    now_s : callable
        Tells monotonic seconds.

    Notes
    -----
    ZooKeeper numbers all writes in one row (zxid), so a node of Storm's that was written after the
    publication is known to be newer without comparing clocks.
    """

    def __init__(self, mirror: Mirror, now_s: Callable[[], float]) -> None:
        self._mirror = mirror
        self._now_s = now_s
        self._came: dict[str, tuple[int, float | None]] = {}

    def stand_back(self, publication: Publication, plan: Plan) -> str | None:
        """Say why nothing may be moved now.

        Parameters
        ----------
        plan : Plan
            The plan as it is written.

        Returns
        -------
        str or None
            None if the publication is the whole truth.
        """
        topology = publication.topology
        stored = self._mirror.node(wire.topology_path(topology))
        if stored is None:
            return "Nimbus has just taken its publication back"
        silence_s = self._silence_s(topology, stored.mzxid)
        if silence_s is None:
            return "waiting for the first publication of Nimbus since this controller looks"
        if silence_s > SILENCE_LIMIT_S:
            return f"Nimbus has published nothing for {silence_s:.0f} s"
        if self._written_since("storms", topology, stored.mzxid):
            return "Storm has changed the topology since the last publication"
        if not _asks_to_absorb(plan, publication) and self._written_since(
            "assignments", topology, stored.mzxid
        ):
            return "Storm has changed the assignment since the last publication"
        return None

    def knows(self, topology: str) -> bool:
        """Tell whether Storm still has the topology.

        Returns
        -------
        bool
            False once it has been killed.
        """
        return self._mirror.stat(f"/storms/{topology}") is not None

    def _silence_s(self, topology: str, mzxid: int) -> float | None:
        """Measure the age of a publication; None while its age is unknown."""
        now_s = self._now_s()
        if topology not in self._came:
            # It may have lain there for long: only the next one is known to be new.
            self._came[topology] = (mzxid, None)
        last, since_s = self._came[topology]
        if last != mzxid:
            since_s = now_s
            self._came[topology] = (mzxid, since_s)
        return None if since_s is None else now_s - since_s

    def _written_since(self, folder: str, topology: str, mzxid: int) -> bool:
        stored = self._mirror.stat(f"/{folder}/{topology}")
        return stored is not None and stored.mzxid > mzxid


def _asks_to_absorb(plan: Plan, publication: Publication) -> bool:
    """Tell whether Storm is about to change the assignment because the plan wants it."""
    for entry in plan.entries:
        placed = publication.find(entry.executor)
        there = placed is not None and placed.slot == entry.target
        if entry.phase in ABSORBED and entry.void is None and not there:
            return True
    return False
