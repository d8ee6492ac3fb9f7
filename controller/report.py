"""How a cycle ended, topology by topology."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controller.config import Mode
from controller.core.capacity import Spare
from controller.core.case import TopologyCase
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.cold import cold_s
from controller.core.decision import Move, Outcome, Vetoes, proposal_id
from controller.core.distance import inter_node_tps
from controller.core.figures import NOT_KNOWN, Effect, GuardRow, Headroom, SpoutFigures
from controller.core.fit import Fit
from controller.core.headroom import headroom
from controller.core.moved import applied
from controller.core.picture import Picture
from controller.core.policy import Question
from controller.core.slow_host import slow_hosts
from migration.model import ExecutorId, Plan

# But no part of a name, such as of an executor, a host or a slot.
_FIGURE = re.compile(r"(?<![\w.:])(?<!\w-)\d++(?:,\d++)*+(?:\.\d++)?+(?![\w-]|[.:]\w)")


@dataclass(frozen=True, slots=True)
class Felt:
    """What users feel of a topology, and what runs of moves have changed of it."""

    spouts: SpoutFigures = NOT_KNOWN
    effects: tuple[Effect, ...] = ()  # of the last runs, the oldest first; the last may change
    guards: tuple[GuardRow, ...] = ()
    pause: str = ""  # why a guard lets the topology pause; empty where it need not

    @property
    def effect(self) -> Effect | None:
        """Of the last run; None without one."""
        return self.effects[-1] if self.effects else None


NOTHING_FELT = Felt()


@dataclass(frozen=True, slots=True)
class TopologyReport:
    tick: int
    topology: str  # its id; empty if the cycle did not get as far
    time_s: float  # Unix seconds
    outcome: Outcome
    reason: str
    moves: tuple[Move, ...] = ()  # the moves that begin, or would
    plan: Plan | None = None  # the plan to write, or that would be
    warnings: tuple[str, ...] = ()  # what placement cannot repair
    picture: Picture | None = None  # what the decision looked at
    vetoes: Vetoes | None = None  # and what was in its way; None if it did not get as far
    mode: Mode = Mode.ADVISE
    drains: bool = False  # the moves take executors away from drained hosts
    goes_back: bool = False  # the moves take a run back that was for the worse
    felt: Felt = NOTHING_FELT

    @property
    def proposal(self) -> str:
        """The id by which an operator may approve the moves; empty if they wait for no approval."""
        waits = self.outcome is Outcome.AWAITING_APPROVAL
        return proposal_id(self.topology, self.moves) if waits else ""

    @property
    def news(self) -> tuple[object, ...]:
        """The decision without its figures, which jitter: where it is the same, so is the log."""
        reason, *warnings = (_FIGURE.sub("#", text) for text in (self.reason, *self.warnings))
        moves = ((one.executor, one.target) for one in self.moves)
        return (self.outcome, *moves, reason, *sorted(warnings))

    @property
    def _after(self) -> tuple[Cluster, LoadSnapshot] | None:
        """The load after the moves; None without moves, or where it is not known."""
        if self.picture is None or not self.moves:
            return None
        cluster = self.picture.cluster
        if isinstance(cluster.spare, Spare):
            cluster = cluster.with_opened(cluster.spare)
        if any(move.target not in cluster.workers for move in self.moves):
            return None  # a drain, or a way back, opens other slots
        return cluster, applied(self.moves, cluster, self.picture.snapshot)

    @property
    def predicted_cpu(self) -> float | None:
        """By what factor the moves change the CPU of the topology; None where it is not known."""
        if self.picture is None or (end := self._after) is None:
            return None
        cluster, after = end
        # With what executors that lag would use, as the prediction has it.
        used = float(Fit.of(cluster, self.picture.snapshot).demand.sum())
        return float(after.cpu_cores.sum()) / used if used else None

    @property
    def headroom(self) -> Headroom:
        """How much is left, before the moves."""
        if self.picture is None:
            return Headroom()
        return headroom(self.picture.cluster, self.picture.snapshot)

    @property
    def headroom_after(self) -> Headroom | None:
        """How much is left after the moves; None without moves, or where it is not known."""
        return None if (end := self._after) is None else headroom(*end)

    @property
    def inter_node_frac(self) -> float | None:
        """Share of the traffic that crosses between nodes, before the moves; None if unknown."""
        if self.picture is None or not self.picture.snapshot.traffic.total_tps:
            return None
        cluster, snapshot = self.picture.cluster, self.picture.snapshot
        return round(inter_node_tps(cluster, snapshot) / snapshot.traffic.total_tps, 4)


@dataclass(frozen=True, slots=True)
class Report:
    topologies: tuple[TopologyReport, ...]  # a nameless one if none could be looked at
    questions: tuple[Question, ...] = ()  # searches to begin, for answers in a later `CycleInput`
    error: Exception | None = None  # the surprise that ended the cycle

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans to write with a compare-and-set, by topology."""
        return {
            one.topology: one.plan
            for one in self.topologies
            if one.outcome is Outcome.MOVED and one.plan is not None
        }


def report_each(
    cases: Iterable[TopologyCase],
    modes: Mapping[str, Mode],
    felt: Mapping[str, Felt],
    *,
    tick: int,
    time_s: float,
) -> tuple[TopologyReport, ...]:
    """Return how the cycle ended for each topology; a plan is to be written if it is MOVED."""
    return tuple(
        TopologyReport(
            tick,
            case.id,
            time_s,
            _outcome(case, modes[case.id]),
            case.decision.reason,
            case.decision.moves,
            case.plan,
            _warnings(case, time_s),
            case.picture,
            case.vetoes,
            modes[case.id],
            drains=case.drain is not None,
            goes_back=case.drain is None and case.back is not None,
            felt=felt[case.id],
        )
        for case in cases
    )


def _warnings(case: TopologyCase, time_s: float) -> tuple[str, ...]:
    """List what no placement can repair."""
    picture, restarted = case.picture, case.restarted.workers.values()
    # Code that is not compiled yet makes each host slow.
    warm = picture if cold_s(case.view.publication, time_s) == 0 else None
    slow = slow_hosts(warm.cluster, warm.snapshot) if warm else []
    return (*case.decision.warnings, *(veto.reason for veto in restarted), *slow)


def _outcome(case: TopologyCase, mode: Mode) -> Outcome:
    if case.plan is None:
        return case.decision.outcome
    if mode is Mode.AUTO or case.drain is not None:
        return Outcome.MOVED
    return Outcome.AWAITING_APPROVAL if mode is Mode.APPROVE else case.decision.outcome


def not_written(report: TopologyReport) -> TopologyReport:
    """Note that the plan of a report was not written, because another one came first."""
    reason = "another controller changed the plan in the meantime"
    return replace(report, outcome=Outcome.STAND_BACK, reason=reason, moves=(), plan=None)


def begun_by(reports: Iterable[TopologyReport]) -> set[tuple[str, ExecutorId]]:
    """Name the executors, with their topology, whose moves begin."""
    return {
        (report.topology, ExecutorId.parse(move.executor))
        for report in reports
        if report.outcome is Outcome.MOVED
        for move in report.moves
    }


def surprised(tick: int, time_s: float, error: Exception) -> Report:
    """Report STAND_BACK for a cycle that an unexpected error has ended."""
    reason = f"unexpected error: {error!r}"
    return Report((TopologyReport(tick, "", time_s, Outcome.STAND_BACK, reason),), error=error)
