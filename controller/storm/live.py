"""Runs the controller against a live Storm: elects, looks, decides, and drives the moves."""

import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from controller.config import Config
from controller.core.decision import Move, Outcome
from controller.core.restarts import restarted
from controller.core.topology import hosts_of
from controller.cycle import CycleInput, cycle, failed
from controller.errors import CommandError
from controller.journal.recorder import Recorder
from controller.journal.writer import Writer
from controller.report import Report, TopologyReport, not_written
from controller.searching import SubprocessSearches
from controller.storm import controls
from controller.storm.act import Act
from controller.storm.answer_records import PlanAnswer
from controller.storm.answers import explained
from controller.storm.apply import Applier
from controller.storm.audit import Audit
from controller.storm.collect import LiveCluster
from controller.storm.command_record import Command
from controller.storm.commands import CommandQueue
from controller.storm.history import History
from controller.storm.last import LastCycle, figures
from controller.storm.leader import Leader
from controller.storm.look import Look
from controller.storm.mirror import Mirror
from controller.storm.move_record import HISTORY, MoveRecord
from controller.storm.notes import Notes
from controller.storm.noticing import Noticed, noticed
from controller.storm.notifier import Notifier
from controller.storm.publisher import Publisher
from controller.storm.queries import Queries
from controller.storm.remembered import remembered
from kvstore.errors import AccessError, StoreError
from kvstore.logs import log
from kvstore.pulse import Pulse
from kvstore.service import AFTER_REFUSAL_S, Refusals
from kvstore.surprises import Surprises
from kvstore.zookeeper import Session
from migration import wire
from migration.model import Timing, topology_name

if TYPE_CHECKING:  # metrics that are not asked for take no time
    from controller.storm.telemetry import Telemetry


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
    """One controller process; `name` identifies it, for people who look."""

    def __init__(
        self,
        session: Session,
        config: Config,
        *,
        name: str,
        pulse: Pulse | None = None,
        telemetry: "Telemetry | None" = None,
    ) -> None:
        self._session = session
        self._config = config
        self._name = name
        self._pulse = pulse or Pulse({})
        self._telemetry = telemetry
        self._wake = threading.Event()
        timing = replace(
            Timing(), lazy_kill_ms=config.lazy_kill_ms, prepare_limit_s=config.prepare_limit_s
        )
        mirror = self._mirror = Mirror(session, self._wake)
        self._leader = Leader(session, name)
        self._view = LiveCluster(mirror, timing)
        self._history = History()
        self._applier = Applier(
            session, mirror=mirror, leader=self._leader, timing=timing, history=self._history
        )
        self._searches = SubprocessSearches()
        self._queries = Queries(config.guards)
        self._look = Look(
            self._view,
            self._applier,
            self._history,
            self._searches,
            self._queries,
            cooldown_s=config.cooldown_s,
        )
        self._last = LastCycle(config, memory=remembered(config))
        self._act = Act(self._applier, lambda: self._last)
        self._surprises = Surprises()
        self._logged: Mapping[str, tuple[object, ...]] = {}
        self._recorder = Recorder(config, Writer.of(config.journal), mirror.data_of)
        self._notes = Notes(self._recorder)
        self._audit = Audit(session, mirror, config.journal.dir)
        self._publisher = Publisher(session, config, name, self._plan_of)
        self._commands = CommandQueue(
            session,
            mirror,
            self._act.begin,
            config.max_moves,
            cancel=self._applier.cancel,
            misfit=self._misfit,
            restarted=lambda view: restarted(view, self._last.memory.starts),
            others={
                "plan": self._plan,
                "explain": lambda asked: explained(self._last.reports, asked, config),
            },
        )
        self._notifier = Notifier(config.receivers, session.hosts)
        self._noticed = Noticed()
        self._knows_too_little = False

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; a move under way stays in the plan for the next leader.

        A `SessionLostError` if ZooKeeper ended the session: begin again in another one.
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
            self._queries.close()
            self._recorder.close()
            self._notifier.close()
            self._audit.close()

    def _work(self, stop: threading.Event) -> None:
        cycle_at_s, led_s = time.monotonic(), -math.inf
        away = moving = False
        looked_s, looked_epoch = -math.inf, None
        refusals = Refusals()
        while not stop.is_set():
            now_s = time.monotonic()
            try:
                self._leader.refresh()
                epoch = self._leader.epoch
                if epoch not in (None, looked_epoch):
                    self._view.led()
                    self._history.load(self._session.read(HISTORY))
                    self._look.led()
                    self._publisher.led()
                    led_s = now_s
                if epoch != looked_epoch:  # who leads no more may not show it any longer either
                    cycle_at_s = now_s
                # A new leader may find a plan that was lost; no plan shows that.
                look = moving or epoch != looked_epoch or now_s - looked_s >= LOOK_S
                moving = epoch is not None and self._drive(look=look)
                self._keep_history()
                if look:
                    looked_s, looked_epoch = now_s, epoch
                if now_s >= cycle_at_s:
                    cycle_at_s = max(cycle_at_s + self._config.cycle_s, time.monotonic())
                    moving = self._cycle() or moving
                    if self._knows_too_little and now_s - led_s < self._config.cycle_s:
                        cycle_at_s = time.monotonic() + NEW_LEADER_S
                away = False
                self._pulse.beat()
            except AccessError as error:
                refusals.report(error)
                self._pulse.beat(str(error))
                stop.wait(AFTER_REFUSAL_S)
            except StoreError as error:
                if self._session.lost:
                    raise
                if not away:
                    log.warning("zookeeper_away", zookeeper=self._session.hosts, reason=str(error))
                away = True
                self._pulse.beat(f"ZooKeeper at {self._session.hosts}")
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
            moving = self._act.drive(self._view.topologies())
        epoch = self._leader.epoch
        asked = self._commands.read().values()
        if epoch is not None and not all(command.ended for command in asked):
            views = self._view.topologies()
            self._commands.work(
                views,
                self._history.ended,
                epoch,
                drained=tuple(self._view.drained()),
                free=self._view.free(views),
                frozen=self._view.controls().frozen(time.time()),
            )
        self._notes.commands(self._commands.read())
        if epoch is not None:
            self._audit.look(self._commands.take_answered(), self._history.ended)
        return moving

    def _keep_history(self) -> None:
        if self._history.changed and self._leader.epoch is not None:
            self._session.put(HISTORY, self._history.dump())
            self._history.changed = False

    def _cycle(self) -> bool:
        """Look, decide and act; return whether moves have begun."""
        self._applier.sweep(self._view.orphans())
        if self._leader.epoch is None:
            self._history.load(self._mirror.node(HISTORY))
        self._notes.moves(self._history.ended)
        before, time_s, began_s = self._last.memory, time.time(), time.monotonic()
        seen: CycleInput | None = None
        try:
            seen = self._look.seen(time_s, self._leader.epoch)
            memory, report = cycle(before, seen, self._config)
        except StoreError:
            raise
        except Exception as error:  # a surprise ends the cycle and changes nothing
            memory, report = failed(before, time_s, error)
        self._knows_too_little = any(r.outcome in _NOT_YET for r in report.topologies)
        now_s = seen.now_s if seen else 0.0
        self._last = LastCycle(self._config, now_s, report.topologies, memory)
        try:
            self._act.write(seen, report)
        finally:  # a tick that decided is in the journal, also if ZooKeeper has gone since
            unwritten = self._act.unwritten
            self._recorder.record(before, seen, report, sorted(unwritten))
            self._look.not_begun = self._act.not_begun(report)
        self._keep_history()  # before anybody learns of it
        reports = tuple(not_written(r) if r.topology in unwritten else r for r in report.topologies)
        self._last = replace(self._last, reports=reports)
        self._history.measure({r.topology: figures(r) for r in reports if r.picture}, time_s)
        self._history.judge({r.topology: r.felt.effects for r in reports})
        self._log(replace(report, topologies=reports))
        self._publisher.publish(
            reports,
            self._history.ended,
            epoch=self._leader.epoch,
            journal_problem=self._recorder.problem,
        )
        try:
            self._searches.begin(report.questions)
        except Exception as error:  # the policy asks again in the next cycle
            log.warning("search_not_begun", reason=repr(error))
        self._tell(seen, reports, time.monotonic() - began_s)
        self._pause(report)
        return len(unwritten) < len(report.plans)

    def _pause(self, report: Report) -> None:
        """Pause the topologies whose guards were breached."""
        for one in report.topologies:
            if one.felt.pause:
                try:
                    controls.pause(self._session, one.felt.pause, topology_name(one.topology))
                except CommandError as error:  # all is frozen then
                    log.warning("pause_not_kept", topology=one.topology, reason=str(error))

    def _tell(
        self, seen: CycleInput | None, reports: tuple[TopologyReport, ...], took_s: float
    ) -> None:
        # First, for what is taken after it would be lost if ZooKeeper did not answer.
        listed = self._mirror.children(wire.TOPOLOGIES) if self._telemetry is not None else ()
        ended, moves = self._look.take_ended(), self._history.ended
        self._notify(seen, reports, ended)
        if self._telemetry is not None:
            topologies, memory = {topology_name(name) for name in listed}, self._last.memory
            self._telemetry.tell(topologies, ended, seen, memory, reports, took_s, moves)

    def _notify(
        self,
        seen: CycleInput | None,
        reports: tuple[TopologyReport, ...],
        ended: Iterable[MoveRecord],
    ) -> None:
        """Hand over what people get a notice of; a fault stays in here."""
        if not self._config.receivers:
            return
        try:
            hosts = hosts_of(seen.topologies if seen else ())
            now_s = time.monotonic()
            self._noticed, notices = noticed(
                self._noticed, reports, ended, hosts, now_s, cycle_s=self._config.cycle_s
            )
            self._notifier.add(notices)
        except Exception as error:  # the cycle is over, whether anybody learns of it or not
            self._surprises.report("notices_failed", error)

    def _log(self, report: Report) -> None:
        if report.error is not None:
            self._surprises.report("cycle_failed", report.error)
        before, self._logged = self._logged, {one.topology: one.news for one in report.topologies}
        for one in report.topologies:
            if before.get(one.topology) == self._logged[one.topology]:
                continue  # 17,000 lines a day would have nothing else
            log.info(
                "decided",
                tick=one.tick,
                topology=one.topology,
                outcome=one.outcome.value,
                reason=one.reason,
                plan_version=one.plan.version if one.plan else None,
                inter_node_frac=one.inter_node_frac,
            )
            for warning in one.warnings:
                log.warning("placement_cannot_help", tick=one.tick, reason=warning)

    # What is asked between two cycles is answered by the last one.
    def _misfit(self, topology: str, moves: tuple[Move, ...]) -> str | None:
        return self._last.misfit(topology, moves)

    def _plan_of(self, report: TopologyReport) -> PlanAnswer:
        return self._last.plan_of(report, self._view.drained())

    def _plan(self, asked: Command) -> Command:
        return self._last.planned(asked, self._view.drained(), self._publisher.missed_tuples)

    def _sleep(self, stop: threading.Event, until_s: float, *, moving: bool) -> None:
        pause_s = min(STEP_S if moving else IDLE_S, max(until_s - time.monotonic(), 0.0))
        if self._wake.wait(pause_s):
            # Answers come in bunches: take them together, and do not spin.
            stop.wait(STEP_S if self._act.settles else GATHER_S)
            self._wake.clear()
