"""The last cycle of the leading controller, as its status in ZooKeeper has it."""

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from controller.core.capacity import room_at
from controller.core.figures import GuardRow, Headroom, Peak, SpoutFigures
from controller.core.limits import Limits
from controller.journal.rows import CycleRecord, rows_of
from controller.storm.missed import Missed
from controller.storm.move_record import MoveRecord
from kvstore.zookeeper import Session
from migration import wire

STATUS = f"{wire.ROOT}/status"


class WaySum(Struct, frozen=True):
    """What all moves of a way change."""

    moves: int = 0
    # Share of the traffic that crosses between nodes, before and after.
    inter_node_frac: tuple[float, float] = (0.0, 0.0)
    missed_tuples_today: float = 0.0  # that would not have crossed


class Proposal(Struct, frozen=True):
    """Moves that an operator may approve."""

    topology: str
    moves: tuple[tuple[str, str, str], ...]  # executor, source, target
    reason: str
    shown_s: float  # Unix seconds


class LinkRow(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """The traffic from one node to another."""

    source: str
    target: str
    tps: float
    bytes_per_s: float | UnsetType = UNSET  # where the sizes of the tuples are known


class ExecutorRow(Struct, frozen=True):
    """The load of an executor."""

    executor: str
    cpu_cores: float = 0.0  # that it uses, or would use to keep up
    queue: int = 0
    meters: dict[str, float] | UnsetType = UNSET  # what its meters show, by column
    in_tps: float | UnsetType = UNSET  # tuples per second that it gets; so is what it sends
    out_tps: float | UnsetType = UNSET


class CycleStatus(CycleRecord, frozen=True):
    """How the last cycle ended for one topology; what was not measured or did not fit is unset."""

    headroom: Headroom | UnsetType = UNSET
    headroom_after: Headroom | UnsetType = UNSET  # the moves that begin, or would
    links: tuple[LinkRow, ...] | UnsetType = UNSET
    executors: tuple[ExecutorRow, ...] | UnsetType = UNSET
    way: WaySum | None = None
    # What the meters of each worker show, by column.
    meters: dict[str, dict[str, float]] | UnsetType = UNSET
    spouts: SpoutFigures | UnsetType = UNSET
    peak: Peak | UnsetType = UNSET
    guards: tuple[GuardRow, ...] | UnsetType = UNSET


class LeaderStatus(Struct, frozen=True):
    """The last cycle of the leading controller.

    A reader passes over what a newer leader has added; what an older one lacks has defaults.
    """

    controller: str | None = None
    epoch: int | None = None
    mode: str = ""
    policy: str = ""
    cycle_s: float = 0.0
    journal_problem: str | None = None  # why ticks are not written down, if they should be
    proposals: dict[str, Proposal] = {}  # by id, those that operators may approve
    missed: Missed = field(default_factory=Missed)
    cycles: tuple[CycleStatus, ...] = ()
    ended_moves: tuple[MoveRecord, ...] = ()  # the oldest first
    left_out: tuple[str, ...] = ()  # the parts that did not fit
    nodes: dict[str, dict[str, float]] = {}  # what the meters of each node show, by column
    mode_max: str = ""  # the limit of the modes that topologies' own configurations name

    @property
    def cycle_of(self) -> dict[str, CycleStatus]:
        """The cycles by topology."""
        return {cycle.topology: cycle for cycle in self.cycles}


_DECODER = msgspec.json.Decoder(LeaderStatus)


def read(session: Session) -> LeaderStatus:
    """Read what the leading controller last wrote; of nobody if there is nothing, or garbage."""
    stored = session.read(STATUS)
    try:
        return _DECODER.decode(wire.unpacked(stored.data)) if stored else LeaderStatus()
    except (ValueError, msgspec.DecodeError, RecursionError):
        return LeaderStatus()


def loads_of(
    status: LeaderStatus, limits: Limits
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Give what executors use and what fits on workers, by topology and id."""
    demand, room = {}, {}
    for cycle in status.cycles:
        for executor in rows_of(cycle.executors):
            demand[cycle.topology, executor.executor] = executor.cpu_cores
        for worker in rows_of(cycle.workers):
            fits = room_at(worker.load_frac, worker.capacity_cores, limits)
            room[cycle.topology, worker.slot] = fits
    return demand, room
