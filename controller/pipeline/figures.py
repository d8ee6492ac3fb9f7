"""What a parameter set is judged by."""

from dataclasses import dataclass, fields

from controller.replay.rerun import Series


@dataclass(frozen=True, slots=True)
class Figures:
    """How a parameter set did; figures of several topologies and days add up."""

    ticks: int = 0
    moves: int = 0
    span_s: float = 0.0
    total: float = 0.0  # tuples sent
    inter_node: float = 0.0  # those to other nodes
    inter_worker: float = 0.0  # those to other workers (of other nodes too)
    unserved_core_s: float = 0.0  # core-seconds that executors needed beyond what there was

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def inter_node_frac(self) -> float:
        """Share of the tuples that crossed between nodes; 0 without tuples."""
        return self.inter_node / self.total if self.total else 0.0

    @classmethod
    def of(cls, series: Series) -> "Figures":
        span_s = series.span_s
        return cls(
            ticks=len(span_s),
            moves=len(series.moves),
            span_s=float(span_s.sum()),
            total=float((series.total_tps * span_s).sum()),
            inter_node=float((series.inter_node_tps * span_s).sum()),
            inter_worker=float((series.inter_worker_tps * span_s).sum()),
            unserved_core_s=float(series.unserved_core_s.sum()),
        )
