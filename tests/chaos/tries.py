"""The table of the tries: which fault strikes in which phase, when it is lifted, what is expected.

A try whose phase is None strikes after a move that has ended. Every try ends with a clean window
and a plain move, which has to be MOVED without a restart.
"""

from collections.abc import Callable
from dataclasses import dataclass

from migration.model import Phase
from tests.chaos.faults import Faults
from tests.chaos.judge import MOVED, UNDONE, UNTOLD, VOID, Expected
from tests.chaos.stand import Move

Step = Callable[[Faults, Move], object]

# What Storm itself needs on a busy machine: a worker's start takes up to 30 s, Nimbus' and a new
# topology's more. The plan's own part of it is seconds.
WORKER_BACK_S = 90.0
STORM_BACK_S = 180.0

EITHER = frozenset({MOVED, UNDONE})
# The move may have been absorbed before Storm began to decide otherwise.
STORM_WINS = frozenset({VOID, MOVED})
UNHARMED = Expected()
KILLED_EARLY = Expected(EITHER, WORKER_BACK_S, tuples_fail=True)
KILLED_LATE = Expected(frozenset({MOVED}), WORKER_BACK_S, tuples_fail=True)
UNHEARD = Expected(EITHER, services_end=True, undo_while_held=False)
REBALANCED = Expected(STORM_WINS, STORM_BACK_S, tuples_fail=True, storm_restarts=True)


@dataclass(frozen=True, slots=True)
class Try:
    """One row: the fault strikes in a phase of a move, is held, and lifted."""

    name: str
    phase: Phase | None
    strike: Step
    expected: Expected = UNHARMED
    hold_s: float = 0.0
    lift: Step = lambda faults, move: None


TRIES = (
    Try("none@PREPARE", Phase.PREPARE, lambda f, m: None),
    Try(
        "source-killed@PREPARE",
        Phase.PREPARE,
        lambda f, m: f.kill_worker(m.source),
        KILLED_EARLY,
    ),
    Try(
        "source-killed@DRAIN",
        Phase.DRAIN,
        lambda f, m: f.kill_worker(m.source),
        KILLED_LATE,
    ),
    Try(
        "target-killed@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.kill_worker(m.target),
        KILLED_EARLY,
    ),
    Try(
        "target-killed@DRAIN",
        Phase.DRAIN,
        lambda f, m: f.kill_worker(m.target),
        KILLED_EARLY,
    ),
    Try(
        "target-killed@STOP",
        Phase.STOP,
        lambda f, m: f.kill_worker(m.target),
        KILLED_LATE,
    ),
    Try(
        "target-killed@SETTLE",
        Phase.SETTLE,
        lambda f, m: f.kill_worker(m.target),
        KILLED_LATE,
    ),
    Try(
        "target-agent-killed@STOP",
        Phase.STOP,
        lambda f, m: f.kill_agent(m.target),
        hold_s=10,
        lift=lambda f, m: f.start_agent(m.target),
    ),
    Try(
        "source-agent-stopped@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.stop_process(f.agent(m.source)),
        UNHEARD,
        hold_s=20,
        lift=lambda f, m: f.continue_process(f.agent(m.source)),
    ),
    Try(
        "target-agent-stopped@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.stop_process(f.agent(m.target)),
        UNHEARD,
        hold_s=20,
        lift=lambda f, m: f.continue_process(f.agent(m.target)),
    ),
    Try(
        "leader-killed@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.kill_leader(),
        Expected(EITHER),
    ),
    Try(
        "leader-stopped@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.stop_leader(),
        Expected(EITHER, services_end=True),
        hold_s=30,
        lift=lambda f, m: f.continue_leader(),
    ),
    Try(
        "zookeeper-killed@STOP",
        Phase.STOP,
        lambda f, m: f.stop_daemon("zookeeper"),
        Expected(frozenset({MOVED, "AT_TARGET"}), WORKER_BACK_S, services_end=True),
        hold_s=5,
        lift=lambda f, m: f.start_daemon("zookeeper"),
    ),
    Try(
        "zookeeper-stopped@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.stop_process("zookeeper"),
        Expected(EITHER | UNTOLD, WORKER_BACK_S, services_end=True),
        hold_s=25,
        lift=lambda f, m: f.continue_process("zookeeper"),
    ),
    Try(
        "nimbus-killed@STOP",
        Phase.STOP,
        lambda f, m: f.stop_daemon("nimbus"),
        Expected(within_s=WORKER_BACK_S),
        hold_s=8,
        lift=lambda f, m: f.start_daemon("nimbus"),
    ),
    Try(
        "deactivated@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.deactivate(),
        Expected(EITHER),
        hold_s=12,
        lift=lambda f, m: f.activate(),
    ),
    Try("plan-garbled@DRAIN", Phase.DRAIN, lambda f, m: f.garble_plan(), Expected(EITHER)),
    Try("plan-garbled@SETTLE", Phase.SETTLE, lambda f, m: f.garble_plan()),
    Try("plan-deleted@DRAIN", Phase.DRAIN, lambda f, m: f.delete_plan(), Expected(EITHER)),
    Try(
        "plan-store-truncated@SWITCH",
        Phase.SWITCH,
        lambda f, m: f.truncate(f.plan_store(m.target)),
        Expected(EITHER),
    ),
    Try(
        "sample-store-truncated@STOP",
        Phase.STOP,
        lambda f, m: f.truncate(f.sample_store(m.source)),
    ),
    Try("rebalanced@SWITCH", Phase.SWITCH, lambda f, m: f.rebalance(), REBALANCED),
    Try(
        "rebalanced-executors@DRAIN",
        Phase.DRAIN,
        lambda f, m: f.rebalance(counts=6),
        REBALANCED,
    ),
    Try("rebalanced-workers@STOP", Phase.STOP, lambda f, m: f.rebalance(workers=3), REBALANCED),
    Try(
        "topology-killed@DRAIN",
        Phase.DRAIN,
        lambda f, m: f.kill_topology(),
        Expected(frozenset({VOID}), STORM_BACK_S, tuples_fail=True, storm_restarts=True),
        lift=lambda f, m: f.submit(),
    ),
    Try(
        "zookeeper-rebuilt",
        None,
        lambda f, m: f.rebuild_zookeeper(),
        Expected(within_s=STORM_BACK_S, tuples_fail=True, storm_restarts=True, services_end=True),
    ),
)
