"""Figures of a window for tests, in which single ones are then others."""

from deploy.lab.figures import Figures
from tests.messages import replace

FIGURES = Figures(
    acked_tps=1000.0,
    cpu_us_per_sentence=200.0,
    link_bytes_per_sentence=None,
    fullest_link_bytes_per_sentence=None,
    ack_p50_ms=20.0,
    ack_p99_ms=80.0,
    inter_node_tuple_frac=0.5,
    inter_node_byte_frac=None,
    gc_frac=0.01,
    fullest_link_frac=None,
    fullest_link=None,
    worker_cores_mean=0.4,
    worker_cores_max=0.5,
    fullest_worker="s1:1",
    machine_busy_frac=0.99,
)


def side(acked_tps: float) -> Figures:
    return replace(FIGURES, acked_tps=acked_tps)
