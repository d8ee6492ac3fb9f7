"""How one configuration did over recorded load."""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.decision import Outcome

OUTCOMES = tuple(Outcome)
NO_CYCLE = -1
# Of a table of which each row is a tick; the outcome is the last.
COLUMNS, OUTCOME = 8, 7


@dataclass(frozen=True, slots=True)
class ReplayedMove:
    """A move that a replay made."""

    time_s: float
    topology: str
    executor: str
    source: str
    target: str
    asc_tps: float


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """How one configuration did, one row a tick.

    Attributes
    ----------
    time_s, span_s : Floats, shape (T,)
        When, and for how long.
    outcome : Ints, shape (T,)
        Index into `OUTCOMES`, `NO_CYCLE` between two cycles.
    inter_node_tps, inter_worker_tps, total_tps : Floats, shape (T,)
        Traffic between nodes, between workers (those of other nodes too), and all of it, as sent
        in the tick.
    max_load_frac : Floats, shape (T,)
        Load of the fullest worker.
    overload_s : Floats, shape (T,)
        Seconds that workers were above the yardstick, added over the workers.
    """

    time_s: Floats
    span_s: Floats
    outcome: Ints
    inter_node_tps: Floats
    inter_worker_tps: Floats
    total_tps: Floats
    max_load_frac: Floats
    overload_s: Floats
    moves: tuple[ReplayedMove, ...]

    @property
    def inter_node_frac(self) -> float:
        """Share of all tuples that crossed between nodes; 0 without tuples."""
        total = float(self.total_tps @ self.span_s)
        return float(self.inter_node_tps @ self.span_s) / total if total else 0.0


def joined(parts: list[Floats], moves: list[ReplayedMove]) -> Series:
    """Put a score together.

    Parameters
    ----------
    parts : list of Floats, each of shape (T, 8)
        Columns in the order of `Series`, the outcome last.

    Returns
    -------
    Series
        One row a tick.
    """
    table = np.concatenate([np.zeros((0, COLUMNS)), *parts])
    return Series(
        time_s=table[:, 0],
        span_s=table[:, 1],
        inter_node_tps=table[:, 2],
        inter_worker_tps=table[:, 3],
        total_tps=table[:, 4],
        max_load_frac=table[:, 5],
        overload_s=table[:, 6],
        outcome=table[:, OUTCOME].astype(np.int64),
        moves=tuple(moves),
    )
