"""Moves executors on a live cluster and accounts for every tuple."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deploy.lab.cluster import Lab
from deploy.lab.ledger import SATURATE, Ledger, LedgerWindow, Totals, latency_ms
from deploy.lab.operator import kill_meters
from deploy.lab.workloads import judge
from migration.protocol import MoveOutcome
from tests.bench import Variant
from tests.bench.frame import load_average
from tests.bench.movers import Moved, Mover

BLOCK_S = 30.0


CONF_OF: Mapping[Variant, Mapping[str, Any]] = {
    Variant.PLAIN: {},
    Variant.TICKS: {"workload.tick.secs": 1},
    Variant.BATCH: {"topology.producer.batch.size": 100},
    # Count bolts that wait, with queues that are soon full. Storm empties a task's overflow, where
    # remote tuples wait, only once its queue, which local ones fill, is empty. So a split bolt next
    # to a hot count bolt starves all others for ever, moves or not, if it gets all the sentences.
    # So all words are equally often, and the shuffle does not prefer a split that is not held back.
    Variant.BACK_PRESSURE: {
        "workload.count.wait.ns": 2_000_000,
        "workload.zipf.exponent": 0,
        "topology.executor.receive.buffer.size": 64,
        "topology.max.spout.pending": 250,
        "topology.disable.loadaware.messaging": True,
    },
    Variant.SATURATED: {
        "topology.max.spout.pending": 1000,
        # The optimising compiler works for minutes: the rate would rise by half in that time.
        "topology.worker.childopts": "-XX:TieredStopAtLevel=1",
    },
}
FED_TO_THE_FULL = frozenset({Variant.BACK_PRESSURE, Variant.SATURATED})
# Until what is fed to the full has come to its rate.
WARM_UP_S = 30.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """The one-second windows of all blocks of one kind."""

    windows: tuple[LedgerWindow, ...]

    def half_rate_share(self, rate_tps: float) -> float:
        """Give the share of windows under half a rate.

        Returns
        -------
        float
            Between 0 and 1; nan without windows.
        """
        if not self.windows:
            return float("nan")
        return sum(w.acked < rate_tps / 2 for w in self.windows) / len(self.windows)


def run_moves(
    lab: Lab,
    mover: Mover,
    topology: str,
    *,
    moves: int,
    interleave: bool = True,
    block_s: float = BLOCK_S,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Move executors, blocks with moves and without in turn, then drain.

    Parameters
    ----------
    moves : int
        How many at least.
    interleave : bool
        False: all moves in one go, after one control block.
    """
    ledger = lab.ledger(topology)
    pids, meters = lab.worker_pids(), kill_meters(lab)
    moving: list[LedgerWindow] = []
    control: list[LedgerWindow] = []
    while mover.begun < moves:
        mover.rest()
        control += _rest(ledger, block_s)
        began_s = time.time()
        while mover.begun < moves and (not interleave or time.time() - began_s < block_s):
            mover.move()
        moving += _windows(ledger, began_s)
        tell(f"{mover.begun} of {moves} moves")
    ended = mover.ended()
    # A tuple that was lost is pending for up to two message timeouts, and then it has failed. It is
    # judged first: what open windows hold fails two minutes after the last line.
    verdict = judge(ledger, 2 * message_timeout_s(lab) + 10)
    totals = ledger.drain(2 * message_timeout_s(lab))
    component = components(lab, topology)
    return {
        "verdict": str(verdict),
        **_durations(ended),
        **_not_moved(component, ended),
        **_by_component(component, ended),
        **_fates(totals),
        **_felt(Stretch(tuple(moving)), Stretch(tuple(control))),
        "killed": mover.killed,
        "shaken": mover.shaken,
        "worker_restarts": sum(lab.worker_pids().get(slot) != pid for slot, pid in pids.items()),
        "kill_meters_risen": {
            name: now - meters[name] for name, now in kill_meters(lab).items() if now > meters[name]
        },
        "load_average": load_average(),
        "moves": [asdict(move) for move in ended],
    }


def submit(
    lab: Lab, topology: str, variant: Variant, rate_tps: float, workload: str = "wordcount"
) -> None:
    """Submit the WordCount of a variant and wait until it runs.

    Parameters
    ----------
    rate_tps : float
        Sentences per second, where the variant leaves that open.
    """
    rate_tps = SATURATE if variant in FED_TO_THE_FULL else rate_tps
    lab.submit(topology, CONF_OF[variant], rate_tps, workload)
    lab.wait_ready(topology)
    if variant in FED_TO_THE_FULL:
        time.sleep(WARM_UP_S)


def message_timeout_s(lab: Lab) -> float:
    """Give the lab's message timeout.

    Returns
    -------
    float
        Seconds; Storm's default if the lab sets none.
    """
    return float(lab.layout.conf.get("topology.message.timeout.secs", 30))


def _rest(ledger: Ledger, block_s: float) -> list[LedgerWindow]:
    began_s = time.time()
    time.sleep(block_s)
    return _windows(ledger, began_s)


def _windows(ledger: Ledger, began_s: float) -> list[LedgerWindow]:
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


def components(lab: Lab, topology: str) -> dict[str, str]:
    """Find by executor which component it belongs to."""
    return {f"{a}-{b}": e.component for e in lab.assignment(topology) for a, b in [e.executor]}


def _not_moved(component: Mapping[str, str], ended: Sequence[Moved]) -> dict[str, Any]:
    """List what has not moved, and why."""
    found = Counter(
        f"{component[move.executor]}: {move.state}: {move.reason}"
        for move in ended
        if move.state != MoveOutcome.MOVED
    )
    return {"not_moved": dict(sorted(found.items()))}


def _by_component(component: Mapping[str, str], ended: Sequence[Moved]) -> dict[str, Any]:
    """Give the times of the components' moves, until the source has stopped."""
    spent: dict[str, list[float]] = {}
    for move in ended:
        if move.stopped_after_s is not None:
            spent.setdefault(component[move.executor], []).append(move.stopped_after_s)
    return {
        "move_s_by_component": {
            name: {
                "moves": len(all_s),
                "median": round(statistics.median(all_s), 2),
                "max": round(max(all_s), 2),
            }
            for name, all_s in sorted(spent.items())
        }
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
