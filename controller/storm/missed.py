"""Adds up what topologies that only advise would have kept off the network today."""

from collections.abc import Mapping

import msgspec

from controller.core.times import DAY_S


class Missed(msgspec.Struct):
    """Tuples that crossed nodes, and would not have where mode auto would have gone.

    Since midnight, UTC. `last_s` is when they were last added to, in Unix seconds.
    """

    tuples: dict[str, float] = {}  # by topology
    last_s: float | None = None

    def add(self, saved_tps: Mapping[str, float], time_s: float, longest_s: float) -> None:
        """Count the time since the last call, if that is not longer than `longest_s`.

        `time_s` are Unix seconds.
        """
        last_s, self.last_s = self.last_s, time_s
        if last_s is None or last_s // DAY_S != time_s // DAY_S:
            self.tuples = {}
            last_s = time_s
        since_s = time_s - last_s
        for topology, tps in saved_tps.items():
            more = tps * since_s if 0 <= since_s <= longest_s else 0.0
            self.tuples[topology] = self.tuples.get(topology, 0.0) + more
