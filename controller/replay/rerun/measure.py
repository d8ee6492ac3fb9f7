"""Measures a placement under the recorded load of one tick."""

import numpy as np

from controller.core.classify import Limits, worker_sums
from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.replay.recording import Singles, Span

# By how far it goes, what a tuple costs each of its two ends more: inside a worker, inside a node,
# between nodes. These are the costs of the simulator's scenario of the demo, scaled to a run on a
# real cluster.
HOP_COST_S = (0.0, 0.905e-6, 1.09e-6)
WORKER, NODE = 1, 2
# The same yardstick for every configuration: a worker above the default of load.high is overloaded.
OVERLOAD_FRAC = Limits().high_frac


def measure(table: Floats, row: int, span: Span, place: Ints, recorded: Ints) -> Floats:
    """Measure a placement under the load of one tick, and give the CPU of each executor, (E,).

    The row of the table, as for `joined`, is filled in, but for time and outcome.
    """
    pairs, capacity_cores = (span.source, span.target), span.cluster.capacity_cores
    tps, cpu_cores = span.traffic_tps[row], span.cpu_cores[row]
    cores, *sums = _load(*pairs, tps, cpu_cores, place, recorded, span.cluster.node_of)
    used = worker_sums(place, cores, len(capacity_cores)) / capacity_cores
    overload_s = (used > OVERLOAD_FRAC).sum() * span.span_s[row]
    table[row, 2:7] = *sums, used.max(), overload_s
    return cores


@compiled
def _load(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    tps: Singles,
    cores: Singles,
    place: Ints,
    recorded: Ints,
    node_of: Ints,
) -> tuple[Floats, float, float, float]:
    """Compute the load of one tick in a placement: CPU (E,), and traffic.

    The CPU is the recorded one, less the hops of the recorded placement, with those of this one,
    and never below zero. The traffic is that between nodes, that between workers (those of other
    nodes too), and all, in tuples/s.
    """
    cpu_cores = cores.astype(np.float64)
    crossing = leaving = total = 0.0
    for k in range(len(source)):
        # Machine code never looks at a sign of these.
        said, one, other = float(tps[k]), np.uint64(source[k]), np.uint64(target[k])
        hops = _hops(place[one], place[other], node_of)
        total += said
        leaving += said if hops >= WORKER else 0.0
        crossing += said if hops == NODE else 0.0
        before = _hops(recorded[one], recorded[other], node_of)
        more = said * (HOP_COST_S[hops] - HOP_COST_S[before])
        cpu_cores[one] += more
        cpu_cores[other] += more
    return np.maximum(cpu_cores, 0.0), crossing, leaving, total


@compiled
def _hops(at: int, to: int, node_of: Ints) -> int:
    return int(at != to) + int(node_of[at] != node_of[to])
