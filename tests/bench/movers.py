"""Who moves executors in a benchmark: an operator at random, or the controller alone."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from controller.storm import controls, leader_status
from controller.storm.command_record import Command
from controller.storm.move_record import MoveRecord
from deploy.lab import LabError
from deploy.lab.cluster import Lab
from deploy.lab.operator import Operator, Placement
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Slot

# A controller that finds nothing worth a move for so long gets a worse placement to improve.
SHAKE_AFTER_S = 6.0
IDLE_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Moved:
    """One move: what came of it, and how long it took from PREPARE to STOPPED."""

    executor: str
    target: str
    state: str
    reason: str
    stopped_after_s: float | None


class Mover(Protocol):
    """Makes moves one after the other."""

    @property
    def begun(self) -> int:
        """How many moves there have been."""

    @property
    def killed(self) -> int:
        """How many workers were killed in the middle of a move."""

    @property
    def shaken(self) -> int:
        """How many of the moves were made to give a controller something to improve."""

    def move(self) -> None:
        """Make one more move, or wait a little where none can be made."""

    def rest(self) -> None:
        """Make no moves until the next one is asked for."""

    def ended(self) -> list[Moved]:
        """Wait until every move has come to its end, and list what came of each."""


class AtRandom:
    """An operator who moves executors at random.

    Parameters
    ----------
    kill_every : int
        Kill the source of each so-manieth move while it drains; 0: of none.
    spared : callable
        Gives the slots whose worker is not killed now: with a spout dies the account of its tuples.
    pinned : bool
        Also ask for executors that stay, but where a source is killed; these wishes are refused.
    """

    def __init__(
        self,
        lab: Lab,
        operator: Operator,
        seed: int,
        *,
        kill_every: int = 0,
        spared: Callable[[], frozenset[str]] = frozenset,
        pinned: bool = False,
    ) -> None:
        self.killed = 0
        self.shaken = 0
        self._spared = spared
        self._pinned = pinned
        self._lab = lab
        self._operator = operator
        self._chosen = random.Random(seed)
        self._kill_every = kill_every
        self._asked: list[str] = []

    @property
    def begun(self) -> int:
        """How many moves there have been."""
        return len(self._asked)

    def move(self) -> None:
        """Ask for one move and wait until it no longer keeps another from beginning."""
        kill = self._kill_every > 0 and (self.begun + 1) % self._kill_every == 0
        placement = self._operator.placement()
        spared = self._spared() if kill else frozenset()
        pair = choose(placement, self._chosen, spared, pinned=self._pinned and not kill)
        if pair is None:
            time.sleep(0.2)
            return
        path = self._operator.ask(*pair)
        self._asked.append(path)
        if kill:
            self._kill_source(path, placement.slot_of[pair[0]])
        self._operator.follow(path, lambda now: now.state == "SETTLE")

    def rest(self) -> None:
        """Do nothing: only this operator moves anything."""

    def ended(self) -> list[Moved]:
        """Wait until every move has come to its end, and list what came of each."""
        self._lab.wait_until(
            "every move has come to its end", lambda: self._operator.entries() == 0, 180
        )
        return [_moved(self._operator.follow(path, lambda now: now.ended)) for path in self._asked]

    def _kill_source(self, path: str, source: Slot) -> None:
        self._operator.follow(path, lambda now: now.state not in ("PREPARE", "SWITCH"))
        if self._operator.look(path).state != "DRAIN":
            return
        pid = self._lab.kill_worker(str(source))
        self.killed += 1
        self._lab.wait_until(
            f"{source} is back",
            lambda: self._lab.worker_pids().get(str(source), pid) != pid,
        )
        self._lab.wait_until("all workers answer their agents", self._operator.ready)


class ByItself:
    """The controller in mode auto; between the blocks it is paused."""

    killed = 0

    def __init__(self, lab: Lab, operator: Operator, session: Session, seed: int) -> None:
        self.shaken = 0
        self._chosen = random.Random(seed)
        self._lab = lab
        self._operator = operator
        self._session = session
        self._ended: dict[tuple[str, float], MoveRecord] = {}
        self.rest()

    @property
    def begun(self) -> int:
        """How many moves have ended, and are under way."""
        self._look()
        return len(self._ended) + self._operator.entries()

    def move(self) -> None:
        """Let the controller go on until it has begun one more."""
        if controls.read(self._session.read(controls.CONTROLS)).pauses:
            controls.resume(self._session)
        before, since_s = self.begun, time.monotonic()
        shake_at_s = since_s + SHAKE_AFTER_S
        while self.begun == before:
            if time.monotonic() > since_s + IDLE_LIMIT_S:
                cycles = leader_status.read(self._session).cycles
                reasons = "; ".join(f"{cycle.outcome}: {cycle.reason}" for cycle in cycles)
                raise LabError(f"nothing has moved for {IDLE_LIMIT_S:.0f} s: {reasons}")
            if time.monotonic() > shake_at_s:
                shake_at_s = time.monotonic() + SHAKE_AFTER_S
                self._shake()
            time.sleep(0.2)

    def _shake(self) -> None:
        """Move something at random; if the controller was quicker, its move counts."""
        pair = choose(self._operator.placement(), self._chosen)
        if pair is not None:
            path = self._operator.ask(*pair)
            self.shaken += bool(self._operator.follow(path, lambda now: True).move)

    def rest(self) -> None:
        """Pause the controller."""
        controls.pause(self._session, "a stretch without moves, for comparison")

    def ended(self) -> list[Moved]:
        """Pause the controller, wait until every move has come to its end, and list them."""
        self.rest()
        self._lab.wait_until(
            "every move has come to its end", lambda: self._operator.entries() == 0, 180
        )
        # The controller writes what has ended with its next cycle.
        time.sleep(3.0)
        self._look()
        return [
            Moved(move.executor, move.target, move.outcome, move.reason, move.stopped_after_s)
            for move in self._ended.values()
        ]

    def _look(self) -> None:
        for move in leader_status.read(self._session).ended_moves:
            self._ended[move.id, move.ended_s] = move


@contextmanager
def by_itself(lab: Lab, operator: Operator, seed: int) -> Iterator[ByItself]:
    """Watch the controller move."""
    with Session(lab.storm_zookeeper) as session:
        session.connect()
        yield ByItself(lab, operator, session, seed)


def choose(
    placement: Placement,
    chosen: random.Random,
    spared: frozenset[str] = frozenset(),
    *,
    pinned: bool = False,
) -> tuple[ExecutorId, Slot] | None:
    """Choose an executor and a target, uniform over all that may be.

    Parameters
    ----------
    spared : frozenset of str
        Slots that nothing may leave.
    pinned : bool
        Also choose what stays.
    """
    stays = placement.pinned if pinned else ()
    free = [
        executor
        for executor in (*placement.free, *placement.handed_over, *stays)
        if placement.staying[placement.slot_of[executor]] > 1
        and str(placement.slot_of[executor]) not in spared
    ]
    if not free:
        return None
    executor = chosen.choice(free)
    others = sorted(set(placement.slot_of.values()) - {placement.slot_of[executor]})
    return executor, chosen.choice(others)


def slots_of(lab: Lab, topology: str, component: str) -> frozenset[str]:
    """Find where Storm assigns a component."""
    found = {e.slot for e in lab.assignment(topology) if e.component == component}
    return frozenset(found)


def _moved(command: Command) -> Moved:
    return Moved(
        command.executor, command.slot, command.state, command.reason, command.stopped_after_s
    )
