"""How one configuration did over recorded load."""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.decision import Move, Outcome

OUTCOMES = tuple(Outcome)
NO_CYCLE = -1
# Of a table of which each row is a tick; the outcome is the last.
COLUMNS, OUTCOME = 8, 7


@dataclass(frozen=True, slots=True)
class ReplayedMove(Move):
    time_s: float  # Unix seconds of its tick


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """How one configuration did, one row a tick."""

    time_s: Floats  # (T,), Unix seconds
    span_s: Floats  # (T,), for how long the tick's load stands
    outcome: Ints  # (T,), index into `OUTCOMES`, `NO_CYCLE` between two cycles
    inter_node_tps: Floats  # (T,), traffic as sent in the tick
    inter_worker_tps: Floats  # (T,), with that to workers of other nodes
    total_tps: Floats  # (T,)
    max_load_frac: Floats  # (T,), load of the fullest worker
    # (T,), seconds that workers were above the yardstick, added over the workers
    overload_s: Floats
    moves: tuple[ReplayedMove, ...]

    @property
    def inter_node_frac(self) -> float:
        """Share of all tuples that crossed between nodes; 0 without tuples."""
        total = float(self.total_tps @ self.span_s)
        return float(self.inter_node_tps @ self.span_s) / total if total else 0.0


def joined(parts: list[Floats], moves: list[ReplayedMove]) -> Series:
    """Put a score together of tables, (T, 8): columns as in `Series`, the outcome last."""
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
