"""What the leading controller answers to ``nstorm plan`` and ``nstorm explain``, as records.

A reader passes over what a newer leader has added; what an older one lacks has defaults.
"""

from msgspec import UNSET, Struct, UnsetType


class AnswerHead(Struct, frozen=True):
    """How the last cycle ended for a topology."""

    topology: str = ""
    cycle: int = 0
    time: str = ""
    mode: str = ""
    outcome: str = ""
    reason: str = ""
    what_to_do: str = ""
    hosts: dict[str, str] = {}  # by id of the supervisor


class PlanStep(Struct, frozen=True):
    """The moves of one cycle, and the share of the traffic between nodes after them."""

    outcome: str = ""
    inter_node_frac: float = 0.0
    moves: tuple[tuple[str, str, str], ...] = ()  # executor, source, target
    reason: str = ""


class PlanPlace(Struct, frozen=True):
    """A node or a worker before all moves and after them; `tps` is its traffic with others."""

    place: str = ""
    cpu_frac_now: float = 0.0
    headroom_now: float | None = None
    tps_now: float = 0.0
    cpu_frac_then: float = 0.0
    headroom_then: float | None = None
    tps_then: float = 0.0


class PlanAnswer(AnswerHead, frozen=True):
    """All steps that mode auto would take from here; pairs are before them and after."""

    steps: tuple[PlanStep, ...] = ()
    places: tuple[PlanPlace, ...] = ()
    more: str = ""  # that there are more steps
    detour: str = ""  # that after most steps more crosses than now
    inter_node_frac: tuple[float, float] = (0.0, 0.0)
    headroom_factor: tuple[float | None, float | None] = (None, None)
    missed_tuples_today: float | None = None


class ExplainedWorker(Struct, frozen=True, rename={"class_": "class"}):
    """A worker, and why nothing may move there."""

    worker: str
    node: str
    load_frac: float
    class_: str  # high, low or normal
    closed: str | None


class ExplainedExecutor(Struct, frozen=True):
    """An executor, and why it stays."""

    executor: str
    component: str
    worker: str
    cpu_cores: float  # that it uses, or would use to keep up
    queue: float
    stays: str | None


class ExplainedTarget(Struct, frozen=True):
    """A worker that an executor might move to."""

    worker: str
    asc_tps: float
    score: float
    why_not: str | None


class ExplainAnswer(AnswerHead, frozen=True):
    """Why a cycle ended so, or why something stays; a part that was not asked for is unset."""

    headroom: str | UnsetType = UNSET  # and after the moves of the decision
    peaks: str | UnsetType = UNSET  # of the input, and in how many hours it was measured
    warnings: tuple[str, ...] | UnsetType = UNSET
    workers: tuple[ExplainedWorker, ...] | UnsetType = UNSET
    executors: tuple[ExplainedExecutor, ...] | UnsetType = UNSET
    candidates: tuple[ExplainedTarget, ...] | UnsetType = UNSET
