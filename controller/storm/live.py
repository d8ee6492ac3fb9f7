"""Runs the controller against a live Storm: elects, looks, decides, and drives the moves."""

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import structs

from controller.config import Config
from controller.core.decision import Move, Outcome
from controller.core.topology import moves_under_way
from controller.cycle import Memory, Seen, cycle, failed
from controller.journal.recorder import Recorder
from controller.journal.writer import Writer
from controller.report import Report, TopologyReport, not_written
from controller.searching import SubprocessSearches
from controller.storm.answers import explained, misfit, of_topology, plan_of
from controller.storm.apply import Applier
from controller.storm.collect import LiveCluster
from controller.storm.commands import Command, CommandQueue, answered
from controller.storm.history import HISTORY, LONGEST_REASON, Figures, History, MoveRecord
from controller.storm.leader import Leader
from controller.storm.mirror import Mirror
from controller.storm.missed import Missed
from controller.storm.status import document, publish, read
from kvstore.errors import StoreError
from kvstore.pulse import Pulse
from kvstore.surprises import Surprises
from kvstore.zookeeper import Session
from migration import wire
from migration.model import MOVING, ExecutorId, Plan, Timing, topology_name

if TYPE_CHECKING:  # metrics that are not asked for take no time
    from controller.storm.telemetry import Telemetry

log = structlog.get_logger()

# How often moves under way are looked at, and how long changes are gathered before that.
STEP_S = 0.1
GATHER_S = 0.01
# How often all is looked at while nothing moves.
LOOK_S = 5.0
# How often a new leader looks until it knows all it needs, but no longer than one cycle.
NEW_LEADER_S = 0.5
# How long a way that was found is told, as long as it begins with the same moves.
WAY_S = 60.0
# How long a proposal may be approved after it was last shown, and how many may be at a time.
SHOWN_S = 600.0
MOST_PROPOSALS = 50
_LONGEST_CYCLES = 3  # beyond this, how the traffic was meanwhile is not known
# How often it is tried whether all parts of the status fit again: to find out costs most of it.
_ALL_PARTS_CYCLES = 12
# The moves that it begins with, when it was found, and its sum.
_Way = tuple[tuple[Move, ...], float, dict[str, Any]]
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
        telemetry: "Telemetry | None" = None,
        decided: threading.Event | None = None,
    ) -> None:
        self._session = session
        self._config = config
        self._name = name
        self._pulse = pulse or Pulse({})
        self._telemetry = telemetry
        self._decided = decided or threading.Event()
        self._untold: list[MoveRecord] = []  # moves that have ended in this cycle
        self._wake = threading.Event()
        timing = replace(
            Timing(), lazy_kill_ms=config.lazy_kill_ms, prepare_limit_s=config.prepare_limit_s
        )
        mirror = self._mirror = Mirror(session, self._wake)
        self._leader = Leader(session, name)
        self._view = LiveCluster(mirror, timing)
        self._history = History()
        self._recorded: list[MoveRecord] = []  # moves that were put into the journal
        self._applier = Applier(
            session, mirror=mirror, leader=self._leader, timing=timing, history=self._history
        )
        self._searches = SubprocessSearches()
        self._memory = Memory()
        self._surprises = Surprises()
        self._not_begun: tuple[tuple[str, ExecutorId], ...] = ()
        self._recorder = Recorder(config, Writer.of(config.journal), mirror.data_of)
        self._commands = CommandQueue(
            session,
            mirror,
            self._begin,
            config.max_moves,
            cancel=self._applier.cancel,
            misfit=self._misfit,
            others={
                "plan": self._plan,
                "explain": lambda asked: explained(self._last[1], asked, config),
            },
        )
        self._proposals: dict[str, dict[str, Any]] = {}
        self._last: tuple[float, tuple[TopologyReport, ...]] = (0.0, ())
        self._ways: dict[str, _Way] = {}
        self._missed = Missed()
        self._left_out = 0  # parts of the status that did not fit
        self._asked: dict[str, Command] = {}
        self._knows_too_little = False
        self._settles = False  # whether all moves under way are beyond STOP

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
                    self._history.load(self._session.read(HISTORY))
                    self._missed = Missed.of(read(self._session))
                    cycle_at_s = led_s = now_s
                # A new leader may find a plan that was lost; no plan tells of that.
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
                    else:
                        self._decided.set()
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
            views = self._view.topologies()
            moving = self._applier.step(views)
            self._settles = moving and not moves_under_way(views, MOVING)
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
        self._note_commands()
        return moving

    def _keep_history(self) -> None:
        if self._history.changed and self._leader.epoch is not None:
            self._session.put(HISTORY, self._history.dump())
            self._history.changed = False

    def _record_moves(self) -> None:
        """Put moves that have ended, or were measured, into the journal, whoever leads."""
        if self._leader.epoch is None:
            self._history.load(self._mirror.node(HISTORY))
        if self._history.ended != self._recorded:
            self._recorded = self._history.ended
            self._recorder.add_moves(map(asdict, self._recorded))

    def _note_commands(self) -> None:
        """Put what operators ask for, and what becomes of it, into the journal."""
        asked = self._commands.read()
        for path, command in asked.items():
            if self._asked.get(path) != command:
                told = structs.asdict(structs.replace(command, answer=None))
                self._recorder.note({"path": path, **told})
        self._asked = asked

    def _cycle(self) -> bool:
        """Look, decide and act; return whether moves have begun."""
        self._applier.sweep(self._view.orphans())
        self._record_moves()
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
        self._keep_history()  # before anybody is told of it
        reports = tuple(not_written(r) if r.topology in unwritten else r for r in report.topologies)
        self._last = (self._last[0], reports)
        self._show(reports)
        self._history.measure({r.topology: _figures(r) for r in reports if r.picture}, time_s)
        self._log(replace(report, topologies=reports))
        self._publish(reports)
        try:
            self._searches.begin(report.questions)
        except OSError as error:  # the policy asks again in the next cycle
            log.warning("search_not_begun", reason=str(error))
        self._tell(seen, reports, time.monotonic() - began_s)
        return len(unwritten) < len(report.plans)

    def _tell(self, seen: Seen | None, reports: tuple[TopologyReport, ...], took_s: float) -> None:
        if self._telemetry is None:
            return
        topologies = {topology_name(name) for name in self._mirror.children(wire.TOPOLOGIES)}
        ended, self._untold = self._untold, []
        try:
            # Also while another leads: a move that is taken over has ended before the next scrape.
            self._telemetry.know(topologies)
            for move in ended:
                self._telemetry.ended(move)
            self._telemetry.cycle(seen, self._memory, reports, took_s, self._history.ended)
        except Exception:  # the cycle is over and done, whatever can be told of it
            log.exception("metrics_failed")

    def _look(self, time_s: float) -> Seen:
        now_s, epoch = time.monotonic(), self._leader.epoch
        seen = Seen(now_s, time_s, epoch)
        if epoch is not None:
            views = self._view.topologies()
            seen = replace(
                seen,
                controls=self._view.controls(),
                drained=tuple(self._view.drained()),
                topologies=tuple(views),
                free=self._view.free(views),
                loads=tuple(self._view.loads()),
            )
        # Last, for what is taken here would be lost if ZooKeeper did not answer.
        ended = self._applier.take_ended()
        self._untold += [move for move, _ in ended if self._telemetry is not None]
        # An executor rests after its move, whether the policy or an operator asked for it; as if it
        # had moved later where it rests for longer.
        usual_s = self._config.cooldown_s
        rests = tuple(
            (
                m.topology,
                ExecutorId.parse(m.executor),
                at_s + self._history.rest_s(m, usual_s) - usual_s,
            )
            for m, at_s in ended
        )
        return replace(
            seen,
            rests=rests,
            not_begun=self._not_begun,
            answers=self._searches.take_answers(),
            begun=self._history.hour(time_s),
        )

    def _written(self, seen: Seen | None, report: Report) -> Iterator[str]:
        """Write the plans that begin moves; name the topologies where that worked."""
        before = {view.id: view.plan for view in seen.topologies} if seen else {}
        reports = {one.topology: one for one in report.topologies}
        self._last = (seen.now_s if seen else 0.0, report.topologies)
        for topology, plan in report.plans.items():
            one = reports[topology]
            gains = {move.executor: move.asc_tps for move in one.moves}
            by = "drain" if one.drains else f"policy {self._config.policy}"
            asked = {"asked_by": by, "why": one.reason, "asc_tps": gains}
            if self._begin(before[topology], plan, asked):
                yield topology

    def _begin(self, before: Plan, after: Plan, asked: Mapping[str, Any]) -> bool:
        """Write a plan that begins moves, and remember what there was before them."""
        self._settles = False
        figures = [_figures(one) for one in of_topology(self._last[1], before.topology)]
        return self._applier.begin(
            before, after, {**asked, "before": figures[0] if figures else {}}
        )

    def _log(self, report: Report) -> None:
        if report.error is not None:
            self._surprises.report("cycle_failed", report.error)
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
        # What has moved is not summed up: a way takes its time, and moves under way wait for it.
        shown = [r for r in reports if r.picture and r.moves and r.outcome is not Outcome.MOVED]
        self._ways = self._ways_of(shown)
        self._miss(shown, reports[0].time_s)
        left_out = self._left_out if reports[0].tick % _ALL_PARTS_CYCLES else 0
        found = document(
            reports,
            self._history.ended,
            self._config,
            name=self._name,
            epoch=self._leader.epoch,
            journal_problem=self._recorder.problem,
            left_out=left_out,
            proposals=self._proposals,
            missed=self._missed,
            ways={
                one.topology: {**way, "missed_tuples_today": self._missed.tuples[one.topology]}
                for one in shown
                for moves, _, way in [self._ways[one.topology]]
                if moves == one.moves
            },
        )
        self._left_out = publish(self._session, found, left_out)

    def _show(self, reports: tuple[TopologyReport, ...]) -> None:
        """Remember what operators may approve: for a while, though loads jitter."""
        for one in reports:
            if one.proposal:
                moves = [(move.executor, move.source, move.target) for move in one.moves]
                reason = one.reason[:LONGEST_REASON]
                told = {"topology": one.topology, "moves": moves, "reason": reason}
                self._proposals.pop(one.proposal, None)
                self._proposals[one.proposal] = {**told, "shown_s": one.time_s}
        oldest_s = reports[0].time_s - SHOWN_S
        kept = [pair for pair in self._proposals.items() if pair[1]["shown_s"] >= oldest_s]
        self._proposals = dict(kept[-MOST_PROPOSALS:])

    def _miss(self, shown: Sequence[TopologyReport], time_s: float) -> None:
        saved_tps = {}
        for one in shown:
            before, after = self._ways[one.topology][2].get("inter_node_frac", (0.0, 0.0))
            assert one.picture is not None
            saved_tps[one.topology] = (before - after) * one.picture.snapshot.traffic.total_tps
        self._missed.add(saved_tps, time_s, _LONGEST_CYCLES * self._config.cycle_s)

    def _ways_of(self, shown: Sequence[TopologyReport]) -> dict[str, _Way]:
        """Sum up where the mode auto would come to; a way once found is told for a while.

        At most one is found anew: with many topologies, or large ones, a cycle would be late.
        """
        none: _Way = (), -math.inf, {}
        known = {one.topology: self._ways.get(one.topology, none) for one in shown}
        for one in sorted(shown, key=lambda one: known[one.topology][1]):
            moves, found_s, _ = known[one.topology]
            if moves != one.moves or one.time_s - found_s >= WAY_S:
                found = self._plan_of(one)
                count = sum(len(step["moves"]) for step in found["steps"])
                summed = {"moves": count, "inter_node_frac": found["inter_node_frac"]}
                known[one.topology] = one.moves, one.time_s, summed
                break
        return known

    def _misfit(self, topology: str, moves: tuple[Move, ...]) -> str | None:
        """Say why moves that were shown do not fit any more, by the load of the last cycle."""
        reports = of_topology(self._last[1], topology)
        if not reports or reports[0].picture is None:
            why = reports[0].reason if reports else "there was no cycle yet"
            return f"the load of {topology} is not known now: {why}"
        return misfit(reports[0].picture, moves, self._config)

    def _plan_of(self, report: TopologyReport) -> dict[str, Any]:
        assert report.picture is not None
        drained = frozenset(self._view.drained())
        config = replace(self._config, excluded=replace(self._config.excluded, drained=drained))
        return plan_of(report, report.picture, self._memory, config, self._last[0])

    def _plan(self, command: Command) -> Command:
        reports = [one for one in of_topology(self._last[1], command.topology) if one.picture]
        ways = [
            {**self._plan_of(one), "missed_tuples_today": self._missed.tuples.get(one.topology)}
            for one in reports
        ]
        return answered(command, ways, "topology can be measured")

    def _sleep(self, stop: threading.Event, until_s: float, *, moving: bool) -> None:
        pause_s = min(STEP_S if moving else IDLE_S, max(until_s - time.monotonic(), 0.0))
        if self._wake.wait(pause_s):
            # Answers come in bunches: take them together, and do not spin.
            stop.wait(STEP_S if self._settles else GATHER_S)
            self._wake.clear()


def _figures(report: TopologyReport) -> Figures:
    loads = report.picture.classes.load_frac.tolist() if report.picture else []
    return {
        "inter_node_frac": report.inter_node_frac,
        "most_load_frac": max(loads, default=None),
        "total_tps": report.picture.snapshot.traffic.total_tps if report.picture else None,
    }
