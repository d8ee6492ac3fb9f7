"""Names that outlive a cycle: of a placement to go to, of placements and loads that were seen."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.policies.gather.route import Route


@dataclass(frozen=True, slots=True)
class Target:
    """A placement under way; by ids, since the next snapshot may hold other executors.

    Each of `executors` goes to its worker in `goals`, in this order. `gain_tps` is what it
    promised, weighted, when it was found. `full` are the workers that were high then, and up to how
    many cores they may be filled on the way. `input_tps` is up to where all traffic could grow
    before the way, and can at its end. None where workers have CPU of their own.
    """

    executors: tuple[str, ...]
    goals: tuple[str, ...]
    gain_tps: float
    full: tuple[tuple[str, float], ...] = ()
    input_tps: float | None = None

    def on(self, cluster: Cluster, snapshot: LoadSnapshot) -> Route | None:
        """Look the names up; None if an executor or the worker it goes to is gone."""
        executors = {name: e for e, name in enumerate(snapshot.executors)}
        workers = {name: w for w, name in enumerate(cluster.workers)}
        if not (executors.keys() >= set(self.executors) and workers.keys() >= set(self.goals)):
            return None
        return Route(
            np.array([executors[name] for name in self.executors], dtype=np.int64),
            np.array([workers[name] for name in self.goals], dtype=np.int64),
        )

    def full_on(self, cluster: Cluster, limit: Floats) -> Floats:
        """Compute up to where an exchange may fill each worker, (W,)."""
        full = dict(self.full)
        rows = zip(cluster.workers, limit.tolist(), strict=True)
        return np.array([full.get(name, most) for name, most in rows])


@dataclass(frozen=True, slots=True)
class Answer:
    """That a search has ended, and what it found.

    `beyond` names a better placement that is out of reach, and what would reach it; it is empty
    where none is known. `at_best` is `Fit.growth_at_best` of what was searched; 0 where none has
    searched.
    """

    target: Target | None
    beyond: str = ""
    at_best: float = 0.0


def digest(*parts: Ints | Floats | NDArray[np.bool_] | tuple[str, ...]) -> int:
    """Distinguish placements of one snapshot, or loads, by 64 bits with a sign.

    They are written down, so the same parts give the same bits in every process.
    """
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = (
            np.ascontiguousarray(part).data.cast("B")
            if isinstance(part, np.ndarray)
            else "\n".join(part).encode()
        )
        found.update(b"%d:" % len(data))
        found.update(data)
    return int.from_bytes(found.digest(), signed=True)
