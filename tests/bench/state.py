"""Moves counters with more and more state, and measures for how long none of them works."""

import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from controller.config import Config
from controller.storm.move_record import HISTORY, MoveRecord, stored_moves
from deploy.lab.cluster import Lab
from deploy.lab.figures import gc_pause_s
from deploy.lab.ledger import WRITE_DELAY_S, Ledger, latency_ms, longest_gap_s, throughput_tps
from deploy.lab.operator import Operator, beside
from deploy.lab.workloads import configure, heap_max, judge
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Phase
from tests.bench.frame import load_average

TOPOLOGY = "state"
RATE_TPS = 500.0
CONTROL_S = 20.0
# JVMs that have just started compile their code for as long, and share two cores.
WARM_UP_S = 60.0
TICK_S = 1
# Between two moves, as a controller that decides once in a cycle.
REST_S = Config().cycle_s
FILL_LIMIT_S = 180.0
# A restart, and the lab's message timeout, after which what was in flight has failed.
REBALANCE_S = 60.0
MOVE_LIMIT_S = 120.0
# By what counters keep. What is larger than a sixteenth of its worker's heap does not travel. A map
# takes four times as much of the heap as in an object stream, and chance may bring all to a worker.
HEAP_MB = {"arrays": 2048, "map": 4096}
COUNTERS = {"arrays": 8, "map": 4}

# As StateTransfer and ExecutorCopy log it.
_SENT = re.compile(r"^(\S+ \S+) .* state_sent move=(\w+) executor=.* ms=(\d+)$", re.MULTILINE)
_BEGUN = re.compile(r"^(\S+ \S+) .* state_begun move=(\w+) ", re.MULTILINE)


def run_state(
    lab: Lab, size_mb: int, moves: int, seed: int, progress: Callable[[str], None], *, kind: str
) -> dict[str, Any]:
    """Move counters that keep `size_mb` each, at random, and then let Storm rebalance them.

    Returns
    -------
    dict
        Ready for JSON. A pause is the time for which no copy of a counter works. CARRY is longer,
        by the way of the plan to the workers and that of their answer.
    """
    sizes = {"workload.heap.mb": size_mb, "workload.counts": COUNTERS[kind]}
    conf = {"workload.heap.kind": kind, **sizes, "workload.tick.secs": TICK_S, **_grown(kind)}
    lab.submit(TOPOLOGY, conf, RATE_TPS, "heap")
    lab.wait_ready(TOPOLOGY)
    ledger = lab.ledger(TOPOLOGY)
    with beside(lab, TOPOLOGY) as operator, Session(lab.storm_zookeeper) as session:
        session.connect()
        filled_s = _fill(lab, ledger, heap_max(configure("heap", conf)))
        time.sleep(max(0.0, WARM_UP_S - filled_s))
        progress(f"{kind}, {size_mb} MB, filled in {filled_s:.0f} s: {judge(ledger)}")
        began_s = time.time()
        time.sleep(CONTROL_S)
        control = felt(ledger, began_s)
        began_s = time.time()
        chosen = random.Random(seed)
        collected_s = _collected_s(lab)
        refused = [reason for _ in range(moves) if (reason := _move(lab, operator, chosen))]
        moving = felt(ledger, began_s)
        lab.wait_until("every move has ended", lambda: operator.entries() == 0, MOVE_LIMIT_S)
        stored = session.read(HISTORY)
        collected_s = _collected_s(lab) - collected_s
    paused_s = _paused_s(lab)
    ended = stored_moves(stored)[-moves:]
    moved = {
        "collected_s": round(collected_s, 2),
        "verdict": str(judge(ledger)),
        "failed": ledger.totals().failed,
    }
    pids, began_s = lab.worker_pids(), time.time()
    lab.rebalance(TOPOLOGY)
    time.sleep(REBALANCE_S)
    restarts = sum(lab.worker_pids().get(slot) != pid for slot, pid in pids.items())
    rebalanced = {**felt(ledger, began_s), "restarts": restarts, "verdict": str(judge(ledger))}
    lab.kill_topology(TOPOLOGY)
    return {
        "kind": kind,
        "size_mb": size_mb,
        "outcomes": dict(Counter(move.outcome for move in ended)),
        "refused": refused,
        **_pauses(ended, paused_s),
        "without_moves": control,
        "with_moves": {**moving, **moved},
        "rebalanced": rebalanced,
        "load_average": load_average(),
    }


def _collected_s(lab: Lab) -> float:
    """Sum up for how long the workers have stood still for their collectors."""
    return sum(gc_pause_s(pid) or 0.0 for pid in lab.worker_pids().values())


def _fill(lab: Lab, ledger: Ledger, pieces: int) -> float:
    """Wait until every counter holds this number of pieces; the seconds that it took."""
    began_s = time.monotonic()

    def full() -> bool:
        row = f"kept-{ledger.ask()}"
        time.sleep(2 * TICK_S + WRITE_DELAY_S)
        held = {told["task"]: told["held"] for told in ledger.rows() if told["row"] == row}
        return held.keys() == ledger.keepers() and {*held.values()} == {pieces}

    lab.wait_until("the counters are full", full, FILL_LIMIT_S)
    return time.monotonic() - began_s


def _grown(kind: str) -> dict[str, str]:
    """As the heap of a worker that has run for days, all of which has been in use already."""
    return {"topology.worker.childopts": f"-Xms{HEAP_MB[kind]}m -XX:+AlwaysPreTouch"}


def _move(lab: Lab, operator: Operator, chosen: random.Random) -> str | None:
    """Rest, move a counter, and wait until it has; the reason, if it has not moved."""
    time.sleep(REST_S)
    counts = {ExecutorId(*e.executor) for e in lab.assignment(TOPOLOGY) if e.component == "count"}
    placement = operator.placement()

    def some() -> bool:
        nonlocal placement
        placement = operator.placement()
        return bool(counts & {*placement.handed_over})

    lab.wait_until("a counter may move", some, MOVE_LIMIT_S)
    executor = chosen.choice(sorted(counts & {*placement.handed_over}))
    others = set(placement.slot_of.values()) - {placement.slot_of[executor]}
    path = operator.ask(executor, chosen.choice(sorted(others)))
    ended = operator.follow(path, lambda now: now.state == "SETTLE", MOVE_LIMIT_S)
    return None if ended.state in ("SETTLE", "MOVED") else f"{ended.state}: {ended.reason}"


def felt(ledger: Ledger, began_s: float) -> dict[str, float]:
    """Measure what the sources have felt since a moment."""
    ended_s = time.time()
    time.sleep(2 * WRITE_DELAY_S)  # a busy machine writes late
    seconds = ledger.windows(began_s, ended_s)
    return {
        "acked_tps": throughput_tps(seconds),
        "seconds_under_half": sum(second.acked < RATE_TPS / 2 for second in seconds),
        "longest_gap_s": longest_gap_s(ledger.acked_10ms(began_s, ended_s)),
        "ack_p99_ms": latency_ms(seconds, 0.99),
    }


def _paused_s(lab: Lab) -> dict[str, float]:
    """Measure for how long no copy of an executor worked, by the id of its move.

    From when the source's copy held still until the target's began, as in their workers' logs;
    these are of one machine's clock.
    """
    logs = [
        log.read_text("utf-8")
        for node in lab.layout.nodes
        for log in node.root.glob("logs/workers-artifacts/*/*/worker.log")
    ]
    still_s = {
        move: _unix_s(time) - int(ms) / 1000
        for log in logs
        for time, move, ms in _SENT.findall(log)
    }
    begun_s = {move: _unix_s(time) for log in logs for time, move in _BEGUN.findall(log)}
    return {move: begun_s[move] - still_s[move] for move in begun_s}


def _unix_s(time: str) -> float:
    return datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()


def _pauses(ended: Sequence[MoveRecord], paused_s: Mapping[str, float]) -> dict[str, Any]:
    """Give the pauses and phases of all moves in their order, and what sums them up."""
    moved = [move for move in ended if move.id in paused_s]
    if not moved:
        return {}
    pauses = [paused_s[move.id] for move in moved]
    phases = {phase: [m.phase_s[phase] for m in moved if phase in m.phase_s] for phase in Phase}
    medians = {f"{p.lower()}_s_median": statistics.median(s) for p, s in phases.items() if s}
    each = [
        {
            "pause": round(paused_s[move.id], 3),
            **{phase.lower(): round(s, 3) for phase, s in move.phase_s.items()},
        }
        for move in moved
    ]
    return {
        "pause_s_median": round(statistics.median(pauses), 4),
        "pause_s_p99": round(float(np.quantile(pauses, 0.99)), 4),
        "pause_s_max": round(max(pauses), 4),
        **medians,
        "each_s": each,
    }
