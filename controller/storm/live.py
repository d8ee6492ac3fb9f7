"""Runs the controller against a live Storm: elects, looks, decides, and drives the moves."""

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace

import structlog

from controller.config import Config
from controller.core.decision import Outcome
from controller.cycle import Memory, Report, Seen, TopologyReport, cycle, failed
from controller.journal.recorder import Recorder
from controller.journal.writer import Writer
from controller.policies.partition.search import SubprocessSearches
from controller.storm.apply import Applier, MoveRecord
from controller.storm.collect import LiveCluster
from controller.storm.commands import Command, CommandQueue
from controller.storm.leader import Leader
from controller.storm.message_cache import Mirror
from controller.storm.status import document, publish
from controller.storm.telemetry import Telemetry
from kvstore.errors import StoreError
from kvstore.pulse import Pulse
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Timing

log = structlog.get_logger()

# How often moves under way are looked at, and how long changes are gathered before that.
STEP_S = 0.1
GATHER_S = 0.01
# How often all is looked at while nothing moves.
LOOK_S = 5.0
# How often a new leader looks until it knows all it needs, but no longer than one cycle.
NEW_LEADER_S = 0.5
_NOT_YET = frozenset({Outcome.STALE_METRICS, Outcome.STAND_BACK})
# How often the queue of candidates and the operators' commands are looked at.
IDLE_S = 0.5


class LiveController:
    """One controller process; `name` says who it is, for people who look."""

    def __init__(
        self,
        session: Session,
        config: Config,
        *,
        name: str,
        pulse: Pulse | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._session = session
        self._config = config
        self._name = name
        self._pulse = pulse or Pulse({})
        self._telemetry = telemetry
        self._untold: list[MoveRecord] = []  # moves that have ended in this cycle
        self._wake = threading.Event()
        timing = replace(Timing(), lazy_kill_ms=config.lazy_kill_ms)
        mirror = Mirror(session, self._wake)
        self._leader = Leader(session, name)
        self._view = LiveCluster(mirror, timing)
        self._applier = Applier(session, mirror=mirror, leader=self._leader, timing=timing)
        self._searches = SubprocessSearches()
        self._memory = Memory()
        self._not_begun: tuple[tuple[str, ExecutorId], ...] = ()
        self._recorder = Recorder(config, Writer.of(config.journal), mirror.data_of)
        self._commands = CommandQueue(session, mirror, self._applier.begin, config.max_moves)
        self._asked: dict[str, Command] = {}
        self._knows_too_little = False

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop; a move under way stays in the plan for the next leader.

        A `SessionLostError` if ZooKeeper ended the session: begin anew in another one.
        """
        if self._config.journal.dir is None:
            log.info(
                "journal_off",
                reason="neither nstorm.journal.dir nor an absolute storm.local.dir is set",
            )
        try:
            self._work(stop)
        finally:
            self._searches.close()
            self._recorder.close()

    def _work(self, stop: threading.Event) -> None:
        cycle_at_s, led_s = time.monotonic(), -math.inf
        away = moving = False
        looked_s, looked_epoch = -math.inf, None
        while not stop.is_set():
            now_s = time.monotonic()
            try:
                self._leader.refresh()
                epoch = self._leader.epoch
                if epoch not in (None, looked_epoch):
                    self._view.led()
                    cycle_at_s = led_s = now_s
                # A new leader may find a plan that was lost; no plan tells of that.
                look = moving or epoch != looked_epoch or now_s - looked_s >= LOOK_S
                moving = epoch is not None and self._drive(look=look)
                if look:
                    looked_s, looked_epoch = now_s, epoch
                if now_s >= cycle_at_s:
                    cycle_at_s = max(cycle_at_s + self._config.cycle_s, time.monotonic())
                    moving = self._cycle() or moving
                    if self._knows_too_little and now_s - led_s < self._config.cycle_s:
                        cycle_at_s = time.monotonic() + NEW_LEADER_S
                away = False
                self._pulse.beat()
            except StoreError as error:
                if self._session.lost:
                    raise
                if not away:
                    log.warning("zookeeper_away", zookeeper=self._session.hosts, reason=str(error))
                away = True
                self._pulse.beat("ZooKeeper")
                stop.wait(IDLE_S)
            self._sleep(stop, cycle_at_s, moving=moving)
        if self._session.connected:
            self._leader.resign()

    def _drive(self, *, look: bool) -> bool:
        """Look at the moves under way and the commands; return whether moves are under way.

        A look at a large cluster costs: without moves there is none but for `look`.
        """
        moving = False
        if look or self._view.has_moves():
            moving = self._applier.step(self._view.topologies())
        epoch = self._leader.epoch
        asked = self._commands.read().values()
        if epoch is not None and not all(command.ended for command in asked):
            drained = tuple(self._view.drained())
            self._commands.work(self._view.topologies(), self._applier.ended, epoch, drained)
        self._note_commands()
        return moving

    def _note_commands(self) -> None:
        """Put what operators ask for, and what becomes of it, into the journal."""
        asked = self._commands.read()
        for path, command in asked.items():
            if self._asked.get(path) != command:
                self._recorder.note("commands", {"path": path, **asdict(command)})
        self._asked = asked

    def _cycle(self) -> bool:
        """Look, decide and act; return whether moves have begun."""
        self._applier.sweep(self._view.orphans())
        before, time_s, began_s = self._memory, time.time(), time.monotonic()
        seen: Seen | None = None
        try:
            seen = self._look(time_s)
            self._memory, report = cycle(before, seen, self._config)
        except StoreError:
            raise
        except Exception as error:  # a surprise ends the cycle and changes nothing
            self._memory, report = failed(before, time_s, error)
        self._knows_too_little = any(r.outcome in _NOT_YET for r in report.topologies)
        unwritten = set(report.plans)
        try:
            for topology in self._written(seen, report):
                unwritten.discard(topology)
        finally:  # a tick that decided is in the journal, also if ZooKeeper has gone meanwhile
            self._recorder.record(before, seen, report, sorted(unwritten))
            self._not_begun = tuple(
                (one.topology, ExecutorId.parse(move.executor))
                for one in report.topologies
                if one.topology in unwritten
                for move in one.moves
            )
        try:
            self._searches.begin(report.questions)
        except OSError as error:  # the policy asks again in the next cycle
            log.warning("search_not_begun", reason=str(error))
        reports = tuple(_unwritten(r) if r.topology in unwritten else r for r in report.topologies)
        self._log(replace(report, topologies=reports))
        self._publish(reports)
        self._tell(seen, reports, time.monotonic() - began_s)
        return len(unwritten) < len(report.plans)

    def _tell(self, seen: Seen | None, reports: tuple[TopologyReport, ...], took_s: float) -> None:
        ended, self._untold = self._untold, []
        if self._telemetry is None:
            return
        try:
            for move in ended:
                self._telemetry.ended(move)
            self._telemetry.cycle(seen, self._memory, reports, took_s)
        except Exception:  # the cycle is over and done, whatever can be told of it
            log.exception("metrics_failed")

    def _look(self, time_s: float) -> Seen:
        now_s, epoch = time.monotonic(), self._leader.epoch
        seen = Seen(now_s, time_s, epoch)
        if epoch is not None:
            seen = replace(
                seen,
                paused=self._view.paused(),
                drained=tuple(self._view.drained()),
                topologies=tuple(self._view.topologies()),
                loads=tuple(self._view.loads()),
            )
        # Last, for what is taken here would be lost if ZooKeeper did not answer.
        ended = self._applier.take_ended()
        for move, _ in ended:
            self._recorder.note("ended", asdict(move))
            self._untold.append(move)
        # An executor rests after its move, whether the policy or an operator asked for it.
        rests = tuple((m.topology, ExecutorId.parse(m.executor), at_s) for m, at_s in ended)
        return replace(
            seen, rests=rests, not_begun=self._not_begun, answers=self._searches.take_answers()
        )

    def _written(self, seen: Seen | None, report: Report) -> Iterator[str]:
        """Write the plans that begin moves; name the topologies where that worked."""
        before = {view.id: view.plan for view in seen.topologies} if seen else {}
        for topology, plan in report.plans.items():
            if self._applier.begin(before[topology], plan):
                yield topology

    @staticmethod
    def _log(report: Report) -> None:
        if report.error is not None:
            log.error("cycle_failed", exc_info=report.error)
        for one in report.topologies:
            log.info(
                "cycle",
                tick=one.tick,
                topology=one.topology,
                outcome=one.outcome.value,
                reason=one.reason,
                plan_version=one.plan.version if one.plan else None,
                inter_node_frac=one.inter_node_frac,
            )
            for warning in one.warnings:
                log.warning("placement_cannot_help", tick=one.tick, reason=warning)

    def _publish(self, reports: tuple[TopologyReport, ...]) -> None:
        if self._leader.epoch is None:
            return
        found = document(
            reports,
            self._applier.ended,
            self._config,
            name=self._name,
            epoch=self._leader.epoch,
            journal_problem=self._recorder.problem,
        )
        publish(self._session, found)

    def _sleep(self, stop: threading.Event, until_s: float, *, moving: bool) -> None:
        pause_s = min(STEP_S if moving else IDLE_S, max(until_s - time.monotonic(), 0.0))
        if self._wake.wait(pause_s):
            # Answers come in bunches: take them together, and do not spin.
            stop.wait(GATHER_S)
            self._wake.clear()


def _unwritten(report: TopologyReport) -> TopologyReport:
    """Say that the plan of a report was not written, because another one came first."""
    reason = "the plan was changed by another controller meanwhile"
    return replace(report, outcome=Outcome.STAND_BACK, reason=reason, moves=(), plan=None)
