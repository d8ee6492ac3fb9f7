"""How a cycle ended, as records: the journal and the status of the leading controller have them."""

from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

from controller.core.figures import Effect, HopFigures

T = TypeVar("T")


class MoveRow(Struct, frozen=True, rename={"source": "from", "target": "to", "asc_tps": "asc"}):
    """A move that begins, or would, as `Move` has it."""

    executor: str
    source: str
    target: str
    asc_tps: float


class WorkerRow(Struct, frozen=True, rename={"class_": "class"}):
    """The CPU of a worker.

    `load_frac` is what is used of `capacity_cores`. Where workers share the CPU of their node, that
    is of all that runs there.
    """

    slot: str
    cpu_cores: float  # that its executors use, or would use to keep up
    capacity_cores: float
    load_frac: float | None  # None where Storm has no CPU for the node
    class_: str  # high, low or normal


class CycleRecord(Struct, frozen=True):
    """How a cycle ended for one topology; the last six are there where they are known.

    Without `inter_node_bytes_per_s` the size of some tuples is not known, and without `effect`
    there was no run of moves.
    """

    tick: int = 0
    topology: str = ""  # its id; empty if the cycle did not get as far
    time_s: float = 0.0  # Unix seconds
    outcome: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    moves: tuple[MoveRow, ...] = ()
    # As on the wire, for people: a plan of another version must not make the rest unreadable.
    plan: dict[str, Any] | None = None
    mode: str = ""
    proposal: str = ""
    inter_node_tps: float | UnsetType = UNSET
    total_tps: float | UnsetType = UNSET
    workers: tuple[WorkerRow, ...] | UnsetType = UNSET
    inter_node_bytes_per_s: float | UnsetType = UNSET
    effect: Effect | UnsetType = UNSET  # of the last run of moves
    hops: HopFigures | UnsetType = UNSET  # where workers share the CPU of their node


def rows_of(part: tuple[T, ...] | UnsetType) -> tuple[T, ...]:
    """Give the rows of a part; none where it is not there."""
    return () if part is UNSET else part
