"""How high the input of each topology was by hour, and by what factor that is more than now."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from controller.core.cluster import LoadSnapshot, Traffic
from controller.core.figures import Peak
from controller.core.times import DAY_S, HOUR_S, MINUTE_S
from migration.model import Component, topology_name

HOURS_OF_DAY, HOURS_OF_WEEK = 24, 168


class Hour(Struct, frozen=True, array_like=True):
    """An hour: its number since 1970, and the tuples per second of its two busiest minutes."""

    number: int
    busiest_tps: float
    next_tps: float = 0.0

    @property
    def peak_tps(self) -> float:
        """The busiest minute but one, which is the 98th percentile of a whole hour's minutes."""
        return self.next_tps or self.busiest_tps

    def with_minute(self, tps: float) -> "Hour":
        busiest, other = max(self.busiest_tps, tps), min(self.busiest_tps, tps)
        return structs.replace(self, busiest_tps=busiest, next_tps=max(self.next_tps, other))


class Peaks(Struct, frozen=True):
    """The input of a topology in the last hours of a week in which it was measured.

    They are in the order in which they were measured. So a clock that jumps makes none of them
    older, and a gap costs no more than what nobody has measured.
    """

    hours: tuple[Hour, ...] = ()
    minute: int = 0  # the one that has begun, since 1970
    sum_tps: float = 0.0  # over the looks within it
    looks: int = 0
    seen_s: float = 0.0  # Unix seconds of the last look

    def with_look(self, tps: float, time_s: float) -> "Peaks":
        """Take in the input of one moment."""
        minute = int(time_s // MINUTE_S)
        if minute == self.minute:
            more = self.sum_tps + tps
            return structs.replace(self, sum_tps=more, looks=self.looks + 1, seen_s=time_s)
        return Peaks(self._with_minute(), minute, tps, 1, time_s)

    def _with_minute(self) -> tuple[Hour, ...]:
        if not self.looks:
            return self.hours
        number, tps = int(self.minute * MINUTE_S // HOUR_S), self.sum_tps / self.looks
        for at, hour in enumerate(self.hours):
            if hour.number == number:
                return (*self.hours[:at], hour.with_minute(tps), *self.hours[at + 1 :])
        return (*self.hours, Hour(number, tps))[-HOURS_OF_WEEK:]

    def peak_tps(self, time_s: float) -> float:
        """Give the highest hour of the last day, and of the next one as it was a week ago."""
        now = int(time_s // HOUR_S)
        to_come = [h for h in self.hours if 0 < (h.number - now) % HOURS_OF_WEEK <= HOURS_OF_DAY]
        counted = (*self.hours[-HOURS_OF_DAY:], *to_come)
        return max((hour.peak_tps for hour in counted), default=0.0)


NO_PEAKS = Peaks()


def input_tps(snapshot: LoadSnapshot) -> float:
    """Add up what the spouts of a topology emit, to all that they emit it to."""
    return emitted_tps(snapshot.components, snapshot.component_of, snapshot.traffic)


def emitted_tps(
    components: tuple[Component, ...], component_of: tuple[str, ...], traffic: Traffic
) -> float:
    """Add up what spouts emit; `component_of` is of each executor."""
    return float(traffic.tps[_is_spout(components, component_of)[traffic.source]].sum())


def spouts_of(snapshot: LoadSnapshot) -> NDArray[np.bool_]:
    """Mark the executors of spouts, (E,)."""
    return _is_spout(snapshot.components, snapshot.component_of)


@lru_cache(maxsize=16)
def _is_spout(
    components: tuple[Component, ...], component_of: tuple[str, ...]
) -> NDArray[np.bool_]:
    spouts = {one.id for one in components if one.kind == "spout"}
    return np.array([name in spouts for name in component_of], np.bool_)


def peak_of(peaks: Mapping[str, Peaks], snapshot: LoadSnapshot) -> Peak:
    """Look up the peak of a topology; `peaks` are by name."""
    found = peaks.get(topology_name(snapshot.topology), NO_PEAKS)
    return Peak(input_tps(snapshot), found.peak_tps(snapshot.time_s), len(found.hours))


def peaks_each(
    peaks: Mapping[str, Peaks], inputs_tps: Mapping[str, float | None], time_s: float
) -> dict[str, Peaks]:
    """Take in the input of topologies, by id, None where it could not be measured.

    Gives the peaks by name. One that is not there is forgotten after a day: a release brings it
    back under another id.
    """
    kept = {name: one for name, one in peaks.items() if abs(time_s - one.seen_s) < DAY_S}
    for topology, tps in inputs_tps.items():
        name = topology_name(topology)
        before = peaks.get(name, NO_PEAKS)
        kept[name] = before if tps is None else before.with_look(tps, time_s)
    return kept
