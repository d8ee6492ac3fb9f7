"""Moves executors at random on a live cluster and accounts for every tuple."""

import random
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from controller.storm.commands import Command
from deploy.bench.operator import Operator, Placement
from deploy.lab.cluster import Lab
from deploy.lab.ledger import SATURATE, Ledger, Totals, Window, latency_ms
from migration.model import ExecutorId, Slot

BLOCK_S = 30.0
KILL_METERS = (
    "supervisor:num-workers-killed-assignment-changed",
    "supervisor:num-worker-transitions-into-kill-and-relaunch",
    "nimbus:num-rebalance-calls",
)


class Variant(StrEnum):
    """What makes a run of moves hard."""

    PLAIN = "plain"
    TICKS = "ticks"
    BATCH = "batch"
    BACK_PRESSURE = "back-pressure"
    SATURATED = "saturated"


CONF_OF: Mapping[Variant, Mapping[str, Any]] = {
    Variant.PLAIN: {},
    Variant.TICKS: {"workload.tick.secs": 1},
    Variant.BATCH: {"topology.producer.batch.size": 100},
    # Count bolts that are too slow, with queues that are soon full.
    Variant.BACK_PRESSURE: {
        "workload.count.work.ns": 1_000_000,
        "topology.executor.receive.buffer.size": 256,
        "topology.max.spout.pending": 1000,
    },
    Variant.SATURATED: {"topology.max.spout.pending": 1000},
}
FED_TO_THE_FULL = frozenset({Variant.BACK_PRESSURE, Variant.SATURATED})


@dataclass(frozen=True, slots=True)
class Moved:
    """One asked-for move: what came of it, and how long the application could notice it."""

    executor: str
    target: str
    state: str
    reason: str
    stopped_after_s: float | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """The one-second windows of all blocks of one kind."""

    windows: tuple[Window, ...]

    def half_rate_share(self, rate_tps: float) -> float:
        """Give the share of windows under half a rate.

        Parameters
        ----------
        rate_tps : float
            The rate.

        Returns
        -------
        float
            Between 0 and 1; nan without windows.
        """
        if not self.windows:
            return float("nan")
        return sum(w.acked < rate_tps / 2 for w in self.windows) / len(self.windows)


def run_moves(
    lab: Lab, operator: Operator, topology: str, *, moves: int, seed: int, interleave: bool = True
) -> dict[str, Any]:
    """Move executors at random, blocks of 30 s with moves and without in turn, then drain.

    Parameters
    ----------
    lab : Lab
        The cluster.
    operator : Operator
        Asks for the moves.
    topology : str
        Name of a topology that is being fed.
    moves : int
        How many.
    seed : int
        Of the choice of executors and targets.
    interleave : bool
        False: all moves in one go, after one control block.

    Returns
    -------
    dict
        The report, ready for JSON.
    """
    chosen = random.Random(seed)
    ledger = lab.ledger(topology)
    pids, meters = lab.worker_pids(), kill_meters(lab)
    asked: list[str] = []
    moving: list[Window] = []
    control: list[Window] = []
    while len(asked) < moves:
        control += _rest(ledger)
        began_s = time.time()
        while len(asked) < moves and (not interleave or time.time() - began_s < BLOCK_S):
            asked += _one(operator, chosen)
        moving += _windows(ledger, began_s)
    lab.wait_until("every move has come to its end", lambda: operator.entries() == 0, 180)
    ended = [_moved(operator.follow(path, lambda now: now.ended)) for path in asked]
    # A tuple that was lost fails only after up to two message timeouts.
    time.sleep(2 * message_timeout_s(lab) if interleave else message_timeout_s(lab))
    totals = ledger.drain()
    return {
        "seed": seed,
        **_durations(ended),
        **_fates(totals),
        **_felt(Stretch(tuple(moving)), Stretch(tuple(control))),
        "worker_restarts": sum(lab.worker_pids().get(slot) != pid for slot, pid in pids.items()),
        "kill_meters_risen": {
            name: now - meters[name] for name, now in kill_meters(lab).items() if now > meters[name]
        },
        "moves": [asdict(move) for move in ended],
    }


def submit(lab: Lab, topology: str, variant: Variant, rate_tps: float) -> None:
    """Submit the WordCount of a variant and wait until it runs.

    Parameters
    ----------
    lab : Lab
        The cluster.
    topology : str
        Name for it.
    variant : Variant
        Which.
    rate_tps : float
        Sentences per second, where the variant leaves that open.
    """
    rate_tps = SATURATE if variant in FED_TO_THE_FULL else rate_tps
    lab.submit(topology, CONF_OF[variant], rate_tps)
    lab.wait_ready(topology)


def kill_meters(lab: Lab) -> Counter[str]:
    """Read those of Storm's own meters that must not rise across a move.

    Parameters
    ----------
    lab : Lab
        The cluster.

    Returns
    -------
    Counter[str]
        By name.
    """
    meters = lab.storm_meters()
    return Counter({name: meters[name] for name in KILL_METERS})


def message_timeout_s(lab: Lab) -> float:
    """Give the lab's message timeout.

    Parameters
    ----------
    lab : Lab
        The cluster.

    Returns
    -------
    float
        Seconds; Storm's default if the lab sets none.
    """
    return float(lab.layout.conf.get("topology.message.timeout.secs", 30))


def choose(placement: Placement, chosen: random.Random) -> tuple[ExecutorId, Slot] | None:
    """Choose an executor and a target, uniform over all that may be.

    Parameters
    ----------
    placement : Placement
        Where executors are.
    chosen : Random
        The source of chance.

    Returns
    -------
    tuple of (ExecutorId, Slot) or None
        None if nothing may move now.
    """
    held = Counter(placement.slot_of.values())
    free = [e for e in placement.free if held[placement.slot_of[e]] > 1]
    if not free:
        return None
    executor = chosen.choice(free)
    others = sorted(set(placement.slot_of.values()) - {placement.slot_of[executor]})
    return executor, chosen.choice(others)


def _one(operator: Operator, chosen: random.Random) -> list[str]:
    """Ask for one move and wait until it no longer keeps another from beginning."""
    pair = choose(operator.placement(), chosen)
    if pair is None:
        time.sleep(0.2)
        return []
    path = operator.ask(*pair)
    operator.follow(path, lambda now: now.state == "SETTLE")
    return [path]


def _moved(command: Command) -> Moved:
    return Moved(
        command.executor, command.slot, command.state, command.reason, command.stopped_after_s
    )


def _rest(ledger: Ledger) -> list[Window]:
    began_s = time.time()
    time.sleep(BLOCK_S)
    return _windows(ledger, began_s)


def _windows(ledger: Ledger, began_s: float) -> list[Window]:
    ended_s = time.time()
    # The ledger writes a second's window within a second of its end.
    time.sleep(1.0)
    return ledger.windows(began_s, ended_s)


def _durations(ended: Sequence[Moved]) -> dict[str, Any]:
    spent = sorted(m.stopped_after_s for m in ended if m.stopped_after_s is not None)
    return {
        "asked": len(ended),
        "states": dict(Counter(move.state for move in ended)),
        "move_s_median": statistics.median(spent) if spent else None,
        "move_s_max": spent[-1] if spent else None,
    }


def _fates(totals: Totals) -> dict[str, Any]:
    return {
        "emitted": totals.emitted,
        "acked": totals.acked,
        "failed": totals.failed,
        "double_acked": totals.double_acked,
        "pending": totals.pending,
        "words_emitted": totals.words_emitted,
        "words_counted": totals.words_counted,
    }


def _felt(moving: Stretch, control: Stretch) -> dict[str, Any]:
    rate_tps = statistics.median(w.acked for w in control.windows)
    return {
        "rate_tps": rate_tps,
        "half_rate_share_moves": moving.half_rate_share(rate_tps),
        "half_rate_share_control": control.half_rate_share(rate_tps),
        "ack_p99_ms_moves": latency_ms(moving.windows, 0.99),
        "ack_p99_ms_control": latency_ms(control.windows, 0.99),
        "zero_windows_moves": sum(w.acked == 0 for w in moving.windows),
        "zero_windows_control": sum(w.acked == 0 for w in control.windows),
    }
