"""Publishes the status of the leading controller after each of its cycles."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.config import Config
from controller.report import TopologyReport
from controller.storm.answer_records import PlanAnswer
from controller.storm.leader_status import read
from controller.storm.move_record import MoveRecord
from controller.storm.proposals import Proposals
from controller.storm.status import publish, status_of
from controller.storm.ways import Ways
from kvstore.zookeeper import Session

# How often it is tried whether all parts of the status fit again: to find out costs most of it.
_ALL_PARTS_CYCLES = 12


class Publisher:
    """Remembers the parts of a status beyond the last cycle: proposals, ways, what did not fit."""

    def __init__(
        self,
        session: Session,
        config: Config,
        name: str,
        plan_of: Callable[[TopologyReport], PlanAnswer],
    ) -> None:
        self._session = session
        self._config = config
        self._name = name
        self._ways = Ways(plan_of, config.cycle_s)
        self._proposals = Proposals()
        self._left_out = 0  # parts of the status that did not fit

    @property
    def missed_tuples(self) -> Mapping[str, float]:
        """By topology, the tuples that crossed nodes today and would not have in mode auto."""
        return self._ways.missed.tuples

    def led(self) -> None:
        """Take over what the last leader has published, now that this one leads."""
        self._ways.missed = read(self._session).missed

    def publish(
        self,
        reports: Sequence[TopologyReport],
        ended: Iterable[MoveRecord],
        *,
        epoch: int | None,
        journal_problem: str | None,
    ) -> None:
        """Publish the reports of a cycle; who does not lead, and has no epoch, publishes nothing.

        `ended` are the last moves, oldest first.
        """
        self._proposals.show(reports, reports[0].time_s)
        if epoch is None:
            return
        self._ways.update(reports)
        left_out = self._left_out if reports[0].tick % _ALL_PARTS_CYCLES else 0
        status = status_of(
            reports,
            ended,
            self._config,
            name=self._name,
            epoch=epoch,
            journal_problem=journal_problem,
            left_out=left_out,
            proposals=self._proposals.shown,
            missed=self._ways.missed,
            ways=self._ways.shown(reports),
        )
        self._left_out = publish(self._session, status, left_out)
