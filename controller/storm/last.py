"""What the last cycle decided, for all that is asked between two cycles."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from controller.config import Config
from controller.core.decision import Move
from controller.cycle import Memory
from controller.report import TopologyReport
from controller.storm.answer_records import PlanAnswer
from controller.storm.answers import misfit, of_topology, plan_of
from controller.storm.command_record import Command
from controller.storm.commands import answered
from controller.storm.move_record import Figures


@dataclass(frozen=True, slots=True)
class LastCycle:
    """A cycle: its settings, its monotonic seconds, its reports and its memory."""

    config: Config
    now_s: float = 0.0
    reports: tuple[TopologyReport, ...] = ()
    memory: Memory = field(default_factory=Memory)

    def measured(self, topology: str) -> list[TopologyReport]:
        """Choose the reports of a topology that could be measured, or of all without a name."""
        return [one for one in of_topology(self.reports, topology) if one.picture]

    def figures(self, topology: str) -> Figures | None:
        """Give the figures of a topology; None if it was not there."""
        return next(map(figures, of_topology(self.reports, topology)), None)

    def misfit(self, topology: str, moves: tuple[Move, ...]) -> str | None:
        """Return why moves that were shown do not fit any more, by the load of the cycle."""
        reports = of_topology(self.reports, topology)
        if not reports or reports[0].picture is None:
            why = reports[0].reason if reports else "there was no cycle yet"
            return f"the load of {topology} is not known now: {why}"
        return misfit(reports[0].picture, moves, self.config)

    def plan_of(self, report: TopologyReport, drained: Iterable[str]) -> PlanAnswer:
        """Follow the policy from a report that has a picture; nothing goes to `drained` hosts."""
        assert report.picture is not None
        excluded = replace(self.config.excluded, drained=frozenset(drained))
        config = replace(self.config, excluded=excluded)
        return plan_of(report, report.picture, self.memory, config, self.now_s)

    def planned(
        self, command: Command, drained: Iterable[str], missed_tuples: Mapping[str, float]
    ) -> Command:
        """Answer ``nstorm plan``; `missed_tuples` are those of today, by topology."""
        ways = [
            structs.replace(
                self.plan_of(one, drained), missed_tuples_today=missed_tuples.get(one.topology)
            )
            for one in self.measured(command.topology)
        ]
        return answered(command, ways, "topology can be measured")


def asked_by(report: TopologyReport, config: Config) -> dict[str, Any]:
    """Return who asks for the moves of a report, why, and what each gains."""
    policy = "measured effect" if report.goes_back else f"policy {config.policy}"
    return {
        "asked_by": "drain" if report.drains else policy,
        "why": report.reason,
        "headroom": report.headroom.and_after(report.headroom_after),
        "asc_tps": {move.executor: move.asc_tps for move in report.moves},
    }


def figures(report: TopologyReport) -> Figures:
    loads = report.picture.fit.frac.tolist() if report.picture else []
    return {
        "inter_node_frac": report.inter_node_frac,
        "most_load_frac": max(loads, default=None),
        "total_tps": report.picture.snapshot.traffic.total_tps if report.picture else None,
    }
