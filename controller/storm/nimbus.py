"""Notices when Storm is doing something of its own, so that nothing is moved on an old picture."""

from collections.abc import Callable
from dataclasses import dataclass

from controller.storm.mirror import Mirror
from migration import wire
from migration.model import NimbusReport, Plan, Publication

SILENCE_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class StoredReport:
    """The newest report of the hooks in Nimbus, and ZooKeeper's number of that write."""

    report: NimbusReport
    mzxid: int


class NimbusWatch:
    """Compares what the hooks in Nimbus published with what Storm has written since.

    ZooKeeper numbers all writes in one row (zxid). So a node of Storm's that was written after the
    last report is known to be newer without comparing clocks. The report is written after its
    publications.
    """

    def __init__(self, mirror: Mirror, now_s: Callable[[], float]) -> None:
        self._mirror = mirror
        self._now_s = now_s
        self._last: tuple[int, float | None] | None = None

    def led(self) -> None:
        """Note that this controller has just written the epoch.

        That shows how old the last report is: ZooKeeper has dated both by one clock.
        """
        stored, epoch = self._mirror.node(wire.NIMBUS), self._mirror.stat(wire.EPOCH)
        if self._last is None and stored is not None and epoch is not None:
            age_s = max(epoch.mtime_ms - stored.mtime_ms, 0) / 1000
            self._last = (stored.mzxid, self._now_s() - age_s)

    def newest(self) -> StoredReport | None:
        """Return the newest report, None if there never was one.

        A caller that compares it with a publication reads it first: a publication that is read
        later is at least as new.
        """
        stored = self._mirror.node(wire.NIMBUS)
        report = self._mirror.message(NimbusReport, wire.NIMBUS)
        return None if stored is None or report is None else StoredReport(report, stored.mzxid)

    def stand_back(
        self, publication: Publication, plan: Plan, newest: StoredReport | None
    ) -> str | None:
        """Return why nothing may be moved now; None if the publication is complete and current."""
        if newest is None:
            return "the hooks in Nimbus have never reported"
        return (
            _later_version(plan)
            or self._silent(newest.mzxid)
            or (newest.report.error and f"Nimbus moves nothing: {newest.report.error}")
            or _not_ours(publication.topology, newest.report)
            or self._changed(publication, plan, newest.mzxid)
        )

    def _silent(self, mzxid: int) -> str | None:
        silence_s = self._silence_s(mzxid)
        if silence_s is None:
            return "waiting for the first report of Nimbus since this controller started"
        if silence_s > SILENCE_LIMIT_S:
            return f"no report from Nimbus for {silence_s:.0f} s"
        return None

    def _changed(self, publication: Publication, plan: Plan, mzxid: int) -> str | None:
        if self._written_since("storms", publication.topology, mzxid):
            return "Storm has changed the topology since the last publication"
        if not _asks_to_absorb(plan, publication) and self._written_since(
            "assignments", publication.topology, mzxid
        ):
            return "Storm has changed the assignment since the last publication"
        return None

    def knows(self, topology: str) -> bool:
        """Return whether Storm still has the topology; False once it has been killed."""
        return topology in self._mirror.children("/storms")

    def _silence_s(self, mzxid: int) -> float | None:
        """Measure the age of the last report; None while its age is unknown."""
        now_s = self._now_s()
        if self._last is None:
            # It may be old: only the next one is known to be new.
            self._last = (mzxid, None)
        last, since_s = self._last
        if last != mzxid:
            since_s = now_s
            self._last = (mzxid, since_s)
        return None if since_s is None else now_s - since_s

    def _written_since(self, folder: str, topology: str, mzxid: int) -> bool:
        stored = self._mirror.stat(f"/{folder}/{topology}")
        return stored is not None and stored.mzxid > mzxid


def _later_version(plan: Plan) -> str | None:
    if all(entry.understood for entry in plan.entries):
        return None
    return (
        "a later version of nstorm has written the plan: a controller of that version has to end "
        "its moves"
    )


def _not_ours(topology: str, report: NimbusReport) -> str | None:
    published = report.find(topology)
    if published is None:
        return "Nimbus has not published the topology recently"
    if published.problem is not None:
        return f"Nimbus cannot publish the topology: {published.problem}"
    if published.undoes is not None:
        return f"Storm would undo what is moved: {published.undoes}"
    return None


def _asks_to_absorb(plan: Plan, publication: Publication) -> bool:
    """Return whether Storm is about to change the assignment because the plan wants it."""
    for entry in plan.entries:
        placed = publication.find(entry.executor)
        there = placed is not None and placed.slot == entry.target
        if entry.absorbable and entry.void is None and not there:
            return True
    return False
