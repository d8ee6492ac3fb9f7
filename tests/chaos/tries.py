"""The tables of the tries: which fault strikes in which phase, when it is lifted, what is expected.

CELLS is the matrix of processes, harms and phases; EXTRAS are other faults. A try whose phase is
None strikes while nothing moves. Every try ends with a plain move under load, which has to be MOVED
without a restart and without a tuple that fails.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from migration.model import Phase, Way
from tests.chaos.faults import Faults
from tests.chaos.judge import MOVED, NO_MOVE, UNDONE, UNTOLD, VOID, Expected
from tests.chaos.stand import Move

Step = Callable[[Faults, Move], object]

# What is expected of nstorm alone.
OURS_BACK_S = 30.0
# What Storm itself needs on a busy machine: a worker's start takes up to 30 s, Nimbus' and a new
# topology's more. The plan's own part of it is seconds.
WORKER_BACK_S = 90.0
STORM_BACK_S = 180.0
# Until what is killed is started again, if Storm does not do so itself.
DOWN_S = 5.0
STOPPED_S = 20.0

EITHER = frozenset({MOVED, UNDONE})
# The move may have been absorbed before Storm began to decide otherwise.
STORM_WINS = frozenset({VOID, MOVED})
UNHARMED = Expected()
REBALANCED = Expected(
    STORM_WINS, STORM_BACK_S, tuples_fail=True, spouts_end=True, storm_restarts=True
)
# The start of a worker, and of the one that follows if it is killed.
OPENED = Expected(EITHER, WORKER_BACK_S)


@dataclass(frozen=True, slots=True)
class Try:
    """One row: the fault strikes in a phase of a move of one way, is held, and lifted.

    It is timed if what is whole again afterwards is not what the fault itself has rebuilt. It
    has a cluster of its own if it also needs keys of Storm (`conf`).
    """

    name: str
    phase: Phase | None
    strike: Step
    expected: Expected = UNHARMED
    hold_s: float = 0.0
    lift: Step = lambda faults, move: None
    timed: bool = True
    way: Way = Way.LIVE
    conf: Mapping[str, Any] = field(default_factory=dict)


class Harm(Enum):
    """What happens to a process; the value is its part of the name of a cell."""

    KILLED = "killed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Victim:
    """A process that the matrix strikes.

    Attributes
    ----------
    find : callable
        Gives its name, as `Faults` takes it.
    worker : bool
        Whether tuples and perhaps a spout are in it.
    storms : bool
        Whether it is Storm's or ZooKeeper's, whose start or new session takes its time.
    """

    name: str
    find: Callable[[Faults, Move], str]
    worker: bool = False
    storms: bool = False


ZOOKEEPER = "zookeeper"
VICTIMS = (
    Victim("leader", lambda f, m: f.leader()),
    Victim("source-agent", lambda f, m: f.agent(m.source)),
    Victim("target-agent", lambda f, m: f.agent(m.target)),
    Victim("source", lambda f, m: str(m.source), worker=True, storms=True),
    Victim("target", lambda f, m: str(m.target), worker=True, storms=True),
    Victim("bystander", lambda f, m: str(m.bystander), worker=True, storms=True),
    Victim("nimbus", lambda f, m: "nimbus", storms=True),
    Victim(ZOOKEEPER, lambda f, m: ZOOKEEPER, storms=True),
    # The last one: its successor is not the parent of its workers, and notices the death of one by
    # the heartbeats alone, after 30 s.
    Victim("supervisor", lambda f, m: f.supervisor(m.source), storms=True),
)


class Moment(NamedTuple):
    """A phase of a move, of one way; without a phase nothing moves, for comparison."""

    phase: Phase | None
    way: Way = Way.LIVE

    def __str__(self) -> str:
        if self.phase is None:
            return "none"
        return f"{self.phase}-of-acker" if self.way is Way.ACKER else self.phase


# From STOP on only forward, and from UNDO only back.
ENDS = {
    Moment(None): frozenset({NO_MOVE}),
    Moment(Phase.PREPARE): EITHER,
    Moment(Phase.SWITCH): EITHER,
    Moment(Phase.DRAIN): EITHER,
    Moment(Phase.STOP): frozenset({MOVED}),
    Moment(Phase.SETTLE): frozenset({MOVED}),
    Moment(Phase.UNDO): frozenset({UNDONE}),
    Moment(Phase.QUIET, Way.SPOUT): EITHER,
    Moment(Phase.DRAIN, Way.ACKER): EITHER,
    Moment(Phase.CARRY, Way.CARRY): EITHER,
}
MOMENTS = tuple(ENDS)


def cell_name(victim: str, harm: Harm, moment: Moment) -> str:
    """Name a cell of the matrix."""
    return f"{victim}-{harm.value}@{moment}"


def _cell(victim: Victim, harm: Harm, moment: Moment) -> Try:
    name, expected = cell_name(victim.name, harm, moment), _expected(victim, harm, moment)
    if harm is Harm.STOPPED:
        return Try(
            name,
            moment.phase,
            lambda f, m: f.stop(victim.find(f, m)),
            expected,
            STOPPED_S,
            lambda f, m: f.go_on(),
            way=moment.way,
        )
    return Try(
        name,
        moment.phase,
        lambda f, m: f.kill(victim.find(f, m)),
        expected,
        0.0 if victim.worker else DOWN_S,
        lambda f, m: f.start_again(),
        way=moment.way,
    )


def _expected(victim: Victim, harm: Harm, moment: Moment) -> Expected:
    phase, ends, killed = moment.phase, ENDS[moment], harm is Harm.KILLED
    if victim.name == "source" and killed and phase is Phase.DRAIN:
        ends = frozenset({MOVED})  # the only copy is the target's
    agent = victim.name.endswith("agent")
    if victim.name == ZOOKEEPER:
        ends |= {UNTOLD[end] for end in ends & UNTOLD.keys()}
    storms_time = victim.name == ZOOKEEPER or (victim.storms and killed)
    return Expected(
        ends,
        within_s=WORKER_BACK_S if storms_time else OURS_BACK_S,
        # In CARRY no copy works until both ends have read of it.
        tuples_fail=victim.worker or (phase is Phase.CARRY and (agent or victim.name == ZOOKEEPER)),
        spouts_end=victim.worker and killed,
        # A session that is lost ends a service, which its manager starts again.
        services_end=victim.name == ZOOKEEPER or (not killed and not victim.storms),
        undo_while_held=not (
            agent and not killed and phase in (Phase.SWITCH, Phase.DRAIN, Phase.CARRY)
        ),
    )


CELLS = tuple(
    _cell(victim, harm, moment) for harm in Harm for victim in VICTIMS for moment in MOMENTS
)
_CELL = {cell.name: cell for cell in CELLS}


def _sessions_lost(phase: Phase | None) -> Try:
    """Keep ZooKeeper down until Storm has lost its sessions: its supervisors and workers halt."""
    cell = _CELL[cell_name(ZOOKEEPER, Harm.KILLED, Moment(phase))]
    harmed = replace(cell.expected, tuples_fail=True, spouts_end=True, storm_restarts=True)
    name = cell.name.replace("killed", "killed-30s")
    return replace(cell, name=name, expected=harmed, hold_s=30)


# A worker that stands still for long and is not given up by Storm, as where pauses for garbage are
# long. Storm's own time-outs, and the ends of its sessions with ZooKeeper, are beyond that.
STANDS_S, PATIENT_S = 90.0, 120
PATIENT = {
    "supervisor.worker.timeout.secs": PATIENT_S,
    "topology.worker.timeout.secs": PATIENT_S,
    "nimbus.task.timeout.secs": PATIENT_S,
}
HOUR_S = 3600.0


def _stands(victim: str, moment: Moment) -> Try:
    """Stop a worker for longer than the minute after which it counts as silent.

    What it has read of the plan when it goes on is 90 s old. Its session with ZooKeeper, of 20 s,
    has ended by then, so Storm may start it again.
    """
    cell = _CELL[cell_name(victim, Harm.STOPPED, moment)]
    harmed = replace(
        cell.expected,
        within_s=WORKER_BACK_S,
        tuples_fail=True,
        spouts_end=True,
        storm_restarts=True,
        # A silent end is never undone without its knowledge, but from where the source owns.
        undo_while_held=moment.phase not in (Phase.SWITCH, Phase.DRAIN, Phase.CARRY),
    )
    name = cell.name.replace("stopped", "stopped-90s")
    return replace(cell, name=name, expected=harmed, hold_s=STANDS_S, conf=PATIENT)


def _clock(whose: str, find: Callable[[Faults, Move], str], ahead_s: float, phase: Phase) -> Try:
    """Set the clock of a service by an hour in mid-move: it must not even be noticed."""
    name = f"{whose}-clock-{'ahead' if ahead_s > 0 else 'back'}@{phase}"
    return Try(
        name,
        phase,
        lambda f, m: f.set_clock(find(f, m), ahead_s),
        Expected(ENDS[Moment(phase)] - {UNDONE}, OURS_BACK_S),
        STOPPED_S,
        lambda f, m: f.set_clock_right(),
    )


EXTRAS = (
    Try("none@PREPARE", Phase.PREPARE, lambda f, m: None),
    Try(
        "leader-killed@OPEN",
        Phase.OPEN,
        lambda f, m: f.kill(f.leader()),
        OPENED,
        DOWN_S,
        lambda f, m: f.start_again(),
    ),
    Try("opening-worker-killed@OPEN", Phase.OPEN, lambda f, m: f.kill_opening(m.target), OPENED),
    Try(
        "opening-supervisor-killed@OPEN",
        Phase.OPEN,
        lambda f, m: f.kill(f.supervisor(m.target)),
        OPENED,
        DOWN_S,
        lambda f, m: f.start_again(),
    ),
    # As in the matrix, for longer: Storm's sessions with ZooKeeper last 20 s.
    replace(_CELL["target-agent-killed@STOP"], name="target-agent-killed-10s@STOP", hold_s=10),
    replace(_CELL["leader-stopped@SWITCH"], name="leader-stopped-30s@SWITCH", hold_s=30),
    replace(_CELL["zookeeper-stopped@SWITCH"], name="zookeeper-stopped-25s@SWITCH", hold_s=25),
    _sessions_lost(None),
    _sessions_lost(Phase.STOP),
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
        replace(REBALANCED, outcomes=frozenset({VOID})),
        lift=lambda f, m: f.submit(),
        timed=False,
    ),
    *(
        _clock(whose, find, ahead_s, phase)
        for whose, find in (
            ("target-agent", lambda f, m: f.agent(m.target)),
            ("leader", lambda f, m: f.leader()),
        )
        for ahead_s in (HOUR_S, -HOUR_S)
        for phase in (Phase.PREPARE, Phase.SWITCH, Phase.DRAIN)
    ),
    *(
        _stands(victim, Moment(phase, way))
        for victim in ("source", "target")
        for phase, way in (
            (Phase.PREPARE, Way.LIVE),
            (Phase.SWITCH, Way.LIVE),
            (Phase.DRAIN, Way.LIVE),
            (Phase.CARRY, Way.CARRY),
        )
    ),
    Try(
        "zookeeper-rebuilt",
        None,
        lambda f, m: f.rebuild_zookeeper(),
        replace(REBALANCED, outcomes=ENDS[Moment(None)], services_end=True),
        timed=False,
    ),
)
