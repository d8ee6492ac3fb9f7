"""What was gathered and had to leave again: for a day it is not gathered once more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.reserve import Reserve

STAYS_S = 86_400.0
# A heap shows what has left it once it was collected. One that is nearly full is, all the time.
COLLECTED_S = 120.0
# But not each collection changes the reading. So more leaves only once it has fallen by this share
# of what has left, which is an estimate, or after so long.
SHOWS_FRAC, SHOWS_S = 0.5, 1800.0
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Executors of a topology that moves for traffic have brought somewhere, or others away.

    `gathered` has the worker that each was brought to. `left_s` has the Unix seconds at which one
    had to leave such a worker, since it was too full, or any worker, for more room. `asked` is the
    executor that is to leave for room, and its worker: it may never begin, as in advice.
    `frees` is the space that is too full there, and what that holds once it shows the move.
    `settles_s` has the workers at both ends of such a move, and the Unix seconds at which it was
    seen. `shows` has what sources have to show, as `frees`, as long as they do not.
    """

    gathered: Mapping[str, str] = field(default_factory=dict)
    left_s: Mapping[str, float] = field(default_factory=dict)
    asked: tuple[str, str] | None = None
    frees: tuple[str, float] | None = None
    settles_s: Mapping[str, float] = field(default_factory=dict)
    shows: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def seen(self, cluster: Cluster, snapshot: LoadSnapshot) -> "Unpacked":
        """Note that what was to leave for room has left, and what heaps have come to show."""
        shows = {w: what for w, what in self.shows.items() if _is_above(cluster, w, *what)}
        seen = replace(self, shows=shows)
        executor, source = self.asked or ("", "")
        if executor not in snapshot.executors:
            return seen
        target = cluster.workers[snapshot.place[snapshot.executors.index(executor)]]
        if target == source:
            return seen
        gathered = {name: at for name, at in self.gathered.items() if name != executor}
        left_s = {**self.left_s, executor: snapshot.time_s}
        settles_s = seen._settling(snapshot)
        if self.frees is not None:
            settles_s |= dict.fromkeys((source, target), snapshot.time_s)
            shows[source] = self.frees
        return Unpacked(gathered, left_s, settles_s=settles_s, shows=shows)

    def _settling(self, snapshot: LoadSnapshot) -> dict[str, float]:
        now_s = snapshot.time_s
        most_s = {w: SHOWS_S if w in self.shows else COLLECTED_S for w in self.settles_s}
        return {w: s for w, s in self.settles_s.items() if abs(now_s - s) < most_s[w]}

    def settling(self, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Cluster:
        """Let no more come to or leave spaces at both ends of such a move until they settle."""
        settles = np.isin(cluster.workers, list(self._settling(snapshot)))
        if not settles.any():
            return cluster
        high, known = Fit.of(cluster, snapshot, limits).high_share(), cluster.spaces
        spaces = {name: level.filled(settles, high) for name, level in known.items()}
        return replace(cluster, spaces=spaces)

    def stay(self, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> LoadSnapshot:
        """Let what had to leave within the last day stay, but where its CPU is too full again."""
        if not self.left_s:
            return snapshot
        high, time_s = Fit.of(cluster, snapshot, limits).is_high, snapshot.time_s
        return snapshot.holding(
            {
                e: "it had to leave where it was, for there was too little room"
                for e, name in enumerate(snapshot.executors)
                if name in self.left_s
                and abs(time_s - self.left_s[name]) < STAYS_S
                and not high[snapshot.place[e]]
            }
        )

    def after(
        self,
        decision: Decision,
        cluster: Cluster,
        snapshot: LoadSnapshot,
        limits: Limits,
    ) -> "Unpacked":
        """Note the moves of a decision that begin: off a worker without room, or for traffic."""
        if not decision.moves:
            return self
        reserve = Reserve.of(cluster, snapshot, limits)
        if decision.for_room:
            (move,) = decision.moves
            e, source = snapshot.executors.index(move.executor), move.source
            full = [one for one, w in reserve.full(reserve.fit) if cluster.workers[w] == source]
            frees = None
            if full:
                held = full[0].level.held[snapshot.place[e]]
                frees = full[0].space.name, float(held - SHOWS_FRAC * full[0].held[e])
            return replace(self, asked=(move.executor, source), frees=frees)
        time_s, gathered = snapshot.time_s, dict(self.gathered)
        left_s = {name: s for name, s in self.left_s.items() if abs(time_s - s) < STAYS_S}
        hot = {cluster.workers[w] for w in reserve.hot(reserve.fit)}
        for move in decision.moves:
            if move.source not in hot:
                gathered[move.executor] = move.target
            elif gathered.pop(move.executor, None) == move.source:
                left_s[move.executor] = time_s
        is_other = self.asked and all(move.executor != self.asked[0] for move in decision.moves)
        if not is_other:
            return Unpacked(gathered, left_s, settles_s=self.settles_s, shows=self.shows)
        return replace(self, gathered=gathered, left_s=left_s)

    @staticmethod
    def explained(names: Sequence[str]) -> str:
        """Name the executors that stay for that reason."""
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return (
            f"{', '.join(names[:_SHOWN])}{more} stay for a day: they had to leave a worker that "
            "had too little room"
        )


def _is_above(cluster: Cluster, worker: str, space: str, most: float) -> bool:
    """Check whether a space of a worker is known to hold more than this."""
    if worker not in cluster.workers or space not in cluster.spaces:
        return False
    return bool(cluster.spaces[space].held[cluster.workers.index(worker)] > most)
