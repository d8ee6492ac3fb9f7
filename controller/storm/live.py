"""Runs the controller against a live Storm: elects, looks, decides, and drives the moves."""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace

import structlog

from controller.config import Config
from controller.journal.recorder import RecordedController
from controller.journal.writer import Writer
from controller.loop import CycleReport
from controller.storm.apply import Applier, EndedMove
from controller.storm.collect import LiveCluster
from controller.storm.commands import Command, CommandQueue
from controller.storm.leader import Leader
from controller.storm.mirror import Mirror
from controller.storm.status import document, publish
from controller.targeting.search import Beside
from kvstore.errors import StoreError
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Timing

log = structlog.get_logger()

# How often moves under way are looked at, and how long changes are gathered before that.
STEP_S = 0.1
GATHER_S = 0.01
# How often the queue of candidates and the operators' commands are looked at.
IDLE_S = 0.5


class SystemClock:
    """The machine's clock."""

    def now_s(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()

    def time_s(self) -> float:
        """Return Unix seconds."""
        return time.time()


class LiveController:
    """One controller process.

    Parameters
    ----------
    session : Session
        Connected.
    config : Config
        Settings.
    name : str
        Who this is, for people who look.
    on_cycle : callable
        Told of each cycle's reports.
    """

    def __init__(
        self,
        session: Session,
        config: Config,
        *,
        name: str,
        on_cycle: Callable[[tuple[CycleReport, ...]], None] = lambda reports: None,
    ) -> None:
        self._session = session
        self._config = config
        self._name = name
        self._on_cycle = on_cycle
        self._wake = threading.Event()
        clock = SystemClock()
        timing = replace(Timing(), lazy_kill_ms=config.lazy_kill_ms)
        mirror = Mirror(session, self._wake)
        self._leader = Leader(session, name)
        self._view = LiveCluster(mirror, clock, timing)
        self._applier = Applier(
            session, mirror=mirror, leader=self._leader, clock=clock, timing=timing
        )
        self._search = Beside()
        self._controller = RecordedController(
            config,
            view=self._view,
            source=self._view,
            sink=self._applier,
            lead=self._leader,
            clock=clock,
            journal=Writer.of(config.journal),
            data_of=mirror.data_of,
            search=self._search,
        )
        self._commands = CommandQueue(session, mirror, self._applier.begin, config.max_moves)
        self._asked: dict[str, Command] = {}
        self._applier.on_end = self._ended

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop.

        Parameters
        ----------
        stop : threading.Event
            Ends the work; a move under way stays in the plan for the next leader.

        Raises
        ------
        kvstore.errors.SessionLostError
            ZooKeeper ended the session: begin anew in another one.
        """
        if self._config.journal.dir is None:
            log.info("journal_off", reason="nstorm.journal.dir and storm.local.dir are not set")
        try:
            self._work(stop)
        finally:
            self._search.close()
            self._controller.close()

    def _work(self, stop: threading.Event) -> None:
        cycle_at_s = time.monotonic()
        away = False
        while not stop.is_set():
            moving = False
            try:
                self._leader.refresh()
                if self._leader.epoch is not None:
                    moving = self._drive()
                if time.monotonic() >= cycle_at_s:
                    cycle_at_s = max(cycle_at_s + self._config.cycle_s, time.monotonic())
                    moving = self._cycle() or moving
                away = False
            except StoreError as error:
                if self._session.lost:
                    raise
                if not away:
                    log.warning("zookeeper_away", zookeeper=self._session.hosts, reason=str(error))
                away = True
                stop.wait(IDLE_S)
            self._sleep(stop, cycle_at_s, moving=moving)
        if self._session.connected:
            self._leader.resign()

    def _drive(self) -> bool:
        """Look at the moves under way and the commands; return whether moves are under way."""
        moving = self._applier.step(self._view.topologies())
        self._commands.work(self._view.topologies(), self._applier.ended)
        self._note_commands()
        return moving

    def _note_commands(self) -> None:
        """Put what operators ask for, and what becomes of it, into the journal."""
        asked = self._commands.read()
        for path, command in asked.items():
            if self._asked.get(path) != command:
                self._controller.note_command({"path": path, **asdict(command)})
        self._asked = asked

    def _cycle(self) -> bool:
        self._applier.sweep(self._view.orphans())
        reports = self._controller.cycle()
        if self._leader.epoch is not None:
            found = document(
                reports,
                self._applier.ended,
                self._config,
                name=self._name,
                epoch=self._leader.epoch,
                journal_problem=self._controller.journal_problem,
            )
            publish(self._session, found)
        self._on_cycle(reports)
        return any(report.moves for report in reports)

    def _sleep(self, stop: threading.Event, until_s: float, *, moving: bool) -> None:
        pause_s = min(STEP_S if moving else IDLE_S, max(until_s - time.monotonic(), 0.0))
        if self._wake.wait(pause_s):
            # Answers come in bunches: take them together, and do not spin.
            stop.wait(GATHER_S)
            self._wake.clear()

    def _ended(self, move: EndedMove) -> None:
        # Whoever asked for a move, its executor rests afterwards.
        self._controller.note_move(move.topology, ExecutorId.parse(move.executor))
        self._controller.note_end(asdict(move))
