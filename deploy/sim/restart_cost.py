"""What a move costs by Storm's own ways and by N-Storm's: which worker or thread is down, and when.

The moves of nstorm itself are not here: they follow the shipped protocol (`deploy.sim.storm`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from controller.core.quantities import MOST, Quantity


class System(StrEnum):
    """Who makes the moves."""

    NONE = "none"
    """No system: nothing moves."""
    STORM = "storm"
    """`rebalance`: the whole topology stops and starts anew."""
    STORM_STAR = "storm-star"
    """The touched workers alone are restarted, as by T-Storm (004, section 5.1)."""
    N_STORM = "n-storm"
    """Threads move as nodes and workers read the plan (004, section 3)."""
    NSTORM = "nstorm"
    """This project: make before break."""


class Delays(Struct, frozen=True, forbid_unknown_fields=True):
    """How long things take, each with its source."""

    # Silence of a rebalance: 30 in 004, section 5.2.1; 13 to 16 measured on Storm 2.8.3.
    rebalance_s: Quantity = 30.0
    # From a worker's end to its successor's first tuple: 10 in 004, section 5.2.1.
    worker_start_s: Quantity = 10.0
    supervisor_s: Annotated[float, Meta(ge=0.001, le=MOST)] = 10.0  # TS of 004, section 5.2
    worker_s: Annotated[float, Meta(ge=0.001, le=MOST)] = 3.0  # TW of 004, section 5.2
    # DK of 004, how long a thread works on that N-Storm is to stop; 0: no lazy kill.
    kill_s: Quantity = 0.0
    # Of nstorm: from the write of a phase to the workers' answer. Four of them make the median of a
    # move, 0.98 s as measured (docs/measured.md).
    answer_s: Quantity = 0.25
    # Of nstorm: how long the executor rests when routes switch. Median of the longest ack latency
    # during a move less the same without one, 0.37 - 0.19 s (docs/measured.md).
    pause_s: Quantity = 0.18
    # Between two rounds of Nimbus (nimbus.monitor.freq.secs).
    nimbus_s: Annotated[float, Meta(ge=0.1, le=MOST)] = 10.0


class Act(StrEnum):
    """What can happen to a worker or an executor."""

    KILL = "kill"
    START = "start"
    STOP = "stop"
    MOVE = "move"
    RUN = "run"
    DONE = "done"


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Something that happens at a moment; those of one moment happen in the order given.

    `who` is a worker (kill, start) or an executor, `to` the worker it moves to (move).
    """

    at_s: float
    act: Act = field(compare=False)
    who: int = field(compare=False)
    to: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class SimulatedMove:
    """A move as numbers."""

    executor: int
    source: int
    target: int


def changes(
    system: System,
    shifts: Sequence[SimulatedMove],
    now_s: float,
    *,
    delays: Delays,
    node_of: Sequence[int],
    random: np.random.Generator,
) -> list[Change]:
    """Compute what a set of moves, ordered together, does to the cluster.

    `system` is one that restarts something; `random` draws how long it is to each next poll.
    """
    if system is System.STORM:
        found = _rebalance(shifts, now_s, delays, len(node_of))
    elif system is System.STORM_STAR:
        found = _restart_touched(shifts, now_s, delays, node_of, random)
    else:
        found = _threads(shifts, now_s, delays, node_of, random)
    return sorted(found)


def restart(worker: int, at_s: float, delays: Delays) -> list[Change]:
    """End a worker; its supervisor starts it again."""
    up_s = at_s + delays.worker_start_s
    return [Change(at_s, Act.KILL, worker), Change(up_s, Act.START, worker)]


def _rebalance(
    shifts: Sequence[SimulatedMove], now_s: float, delays: Delays, workers: int
) -> list[Change]:
    up_s = now_s + delays.rebalance_s
    kills = [Change(now_s, Act.KILL, worker) for worker in range(workers)]
    moves = [Change(now_s, Act.MOVE, s.executor, s.target) for s in shifts]
    starts = [Change(up_s, Act.START, worker) for worker in range(workers)]
    return kills + moves + starts + [Change(up_s, Act.DONE, s.executor) for s in shifts]


def _restart_touched(
    shifts: Sequence[SimulatedMove],
    now_s: float,
    delays: Delays,
    node_of: Sequence[int],
    random: np.random.Generator,
) -> list[Change]:
    """Restart each touched worker once its supervisor has read the assignment, every TW."""
    polls_s = now_s + random.uniform(0, delays.worker_s, max(node_of) + 1)
    touched = sorted({worker for s in shifts for worker in (s.source, s.target)})
    down_s = {worker: float(polls_s[node_of[worker]]) for worker in touched}
    found = []
    for worker, at_s in down_s.items():
        found += restart(worker, at_s, delays)
    for s in shifts:
        both_up_s = max(down_s[s.source], down_s[s.target]) + delays.worker_start_s
        found += [Change(down_s[s.source], Act.MOVE, s.executor, s.target)]
        found += [Change(both_up_s, Act.DONE, s.executor)]
    return found


def _threads(
    shifts: Sequence[SimulatedMove],
    now_s: float,
    delays: Delays,
    node_of: Sequence[int],
    random: np.random.Generator,
) -> list[Change]:
    """Stop the old thread and start the new one when supervisor (TS) and worker (TW) have read."""
    node_s = now_s + random.uniform(0, delays.supervisor_s, max(node_of) + 1)
    worker_s = random.uniform(0, delays.worker_s, len(node_of))
    found = []
    for s in shifts:
        stops_s = float(node_s[node_of[s.source]] + worker_s[s.source]) + delays.kill_s
        starts_s = float(node_s[node_of[s.target]] + worker_s[s.target])
        if stops_s < starts_s:
            found += [Change(stops_s, Act.STOP, s.executor)]
        found += [Change(starts_s, Act.MOVE, s.executor, s.target)]
        found += [Change(starts_s, Act.RUN, s.executor)]
        found += [Change(max(starts_s, stops_s), Act.DONE, s.executor)]
    return found
