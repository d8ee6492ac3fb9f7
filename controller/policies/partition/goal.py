"""Names that outlive a cycle: of a placement to go to, of placements and loads that were seen."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.policies.partition.route import Route


@dataclass(frozen=True, slots=True)
class Target:
    """A placement under way; by ids, since the next snapshot may hold other executors.

    Attributes
    ----------
    executors, origins, goals : tuple of str
        Who goes from which worker to which, in this order.
    gain_tps : float
        What it promised, weighted, when it was adopted.
    """

    executors: tuple[str, ...]
    origins: tuple[str, ...]
    goals: tuple[str, ...]
    gain_tps: float

    def on(self, cluster: Cluster, snapshot: LoadSnapshot) -> Route | None:
        """Look the names up.

        Returns
        -------
        Route or None
            None if an executor or a worker is gone.
        """
        executors = {name: e for e, name in enumerate(snapshot.executors)}
        workers = {name: w for w, name in enumerate(cluster.workers)}
        if not (executors.keys() >= set(self.executors) and workers.keys() >= set(self.goals)):
            return None
        # An origin may be gone: then nobody is on it any more.
        return Route(
            np.array([executors[name] for name in self.executors], dtype=np.int64),
            np.array([workers.get(name, -1) for name in self.origins], dtype=np.int64),
            np.array([workers[name] for name in self.goals], dtype=np.int64),
        )


def digest(*parts: Ints | Floats | NDArray[np.bool_] | tuple[str, ...]) -> int:
    """Tell placements of one snapshot, or loads, apart.

    Parameters
    ----------
    *parts : array or tuple of str
        What makes the difference.

    Returns
    -------
    int
        64 bits with a sign; the same for the same parts in every process, since it is written down.
    """
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.tobytes() if isinstance(part, np.ndarray) else "\n".join(part).encode()
        found.update(b"%d:" % len(data))
        found.update(data)
    return int.from_bytes(found.digest(), signed=True)
