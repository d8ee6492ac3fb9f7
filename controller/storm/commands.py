"""Moves that an operator asks for: a queue in ZooKeeper that the leading controller works off.

A command lives as long as the session of its operator, so none is done once that has left.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from controller.core.drain import drained_nodes
from controller.core.topology import TopologyView, moves_under_way
from controller.storm.apply import MoveRecord
from controller.storm.message_cache import Mirror
from kvstore.errors import NoNodeError
from kvstore.zookeeper import Session
from migration import ModelError, wire
from migration.model import ExecutorId, Plan, Slot
from migration.validate import Refusal, free_id, validate_move

COMMANDS = f"{wire.ROOT}/commands"

WAITING, REFUSED = "WAITING", "REFUSED"
# The last two are the protocol's own words for moves that did not come about.
ENDS = frozenset({REFUSED, "MOVED", "UNDONE", "VOID"})


@dataclass(frozen=True, slots=True)
class Command:
    """A wish to move an executor to a slot, and what has become of it."""

    topology: str
    executor: str
    slot: str
    state: str = WAITING  # WAITING, REFUSED, a phase of the move, or how it ended
    reason: str = ""
    move: str = ""  # id of the move, once begun
    stopped_after_s: float | None = None  # from PREPARE to STOPPED, once known

    @property
    def ended(self) -> bool:
        return self.state in ENDS


def encode(command: Command) -> bytes:
    return json.dumps(asdict(command)).encode()


def decode(data: bytes) -> Command | None:
    """Read a command; None for garbage."""
    try:
        document: Any = json.loads(data)
        command = Command(**document)
        texts = (command.topology, command.executor, command.slot, command.state)
    except (ValueError, TypeError):
        return None
    return command if all(isinstance(text, str) for text in texts) else None


class CommandQueue:
    """Works off the operators' commands.

    `begin` writes the plan that follows another, False if it could not; the cluster may have
    `max_moves` moves under way at a time.
    """

    def __init__(
        self,
        session: Session,
        mirror: Mirror,
        begin: Callable[[Plan, Plan], bool],
        max_moves: int,
    ) -> None:
        self._session = session
        self._mirror = mirror
        self._begin = begin
        self._max_moves = max_moves

    def read(self) -> dict[str, Command]:
        """Read the commands by path, the oldest first, without what is garbage or has vanished."""
        paths = [f"{COMMANDS}/{name}" for name in self._mirror.children(COMMANDS)]
        stored = {path: self._mirror.node(path) for path in paths}
        read = {path: decode(node.data) for path, node in stored.items() if node is not None}
        return {path: command for path, command in read.items() if command is not None}

    def work(
        self,
        views: Sequence[TopologyView],
        ended: Iterable[MoveRecord],
        epoch: int,
        drained: tuple[str, ...] = (),
    ) -> None:
        """Begin what waits under this epoch, and answer what has gone on or ended lately."""
        for path, command in self.read().items():
            if command.ended:
                continue
            if command.move:
                answer = self._follow(command, views, ended)
            else:
                answer = self._try(command, views, epoch, drained)
            if answer != command:
                self._answer(path, answer)
            if answer.move and not command.move:
                return  # the views are of before this move

    def _try(
        self,
        command: Command,
        views: Sequence[TopologyView],
        epoch: int,
        drained: tuple[str, ...],
    ) -> Command:
        try:
            executor, slot = ExecutorId.parse(command.executor), Slot.parse(command.slot)
        except ModelError as error:
            return replace(command, state=REFUSED, reason=str(error))
        view = find(views, command.topology)
        if view is None:
            reason = f"no topology {command.topology}: the hooks in Nimbus publish {_names(views)}"
            return replace(command, state=REFUSED, reason=reason)
        if slot.supervisor in drained_nodes(view.publication.nodes, drained):
            reason = f"{slot} is on a host that is drained: see `nstorm undrain`"
            return replace(command, state=REFUSED, reason=reason)
        entry = validate_move(
            view.publication,
            view.plan,
            view.acks,
            executor,
            slot,
            move_id=free_id(view.plan),
        )
        if isinstance(entry, Refusal):
            return replace(command, state=REFUSED, reason=entry.reason)
        flying = len(moves_under_way(views))
        wait = view.stand_back
        if flying >= self._max_moves:
            wait = f"{flying} move{'s' * (flying > 1)} under way"
        after = view.plan.followed_by((*view.plan.entries, entry), epoch)
        if wait is None and not self._begin(view.plan, after):
            wait = "the plan was changed by somebody else meanwhile"
        if wait is not None:
            return replace(command, reason=wait)
        return replace(command, state=str(entry.phase), reason="", move=entry.id)

    def _follow(
        self, command: Command, views: Sequence[TopologyView], ended: Iterable[MoveRecord]
    ) -> Command:
        view = find(views, command.topology)
        topology = view.publication.topology if view else command.topology
        asked = (command.move, topology, command.executor)
        for move in ended:
            if (move.id, move.topology, move.executor) == asked:
                return replace(
                    command,
                    state=move.outcome,
                    reason=move.reason,
                    stopped_after_s=move.stopped_after_s,
                )
        for entry in view.plan.entries if view else ():
            if entry.id == command.move:
                return replace(command, state=str(entry.phase))
        # Under an earlier leader: how it ended shows in the placement only.
        return replace(command, state="VOID", reason="the move is no longer in the plan")

    def _answer(self, path: str, command: Command) -> None:
        try:
            self._session.set(path, encode(command))
        except NoNodeError:
            pass  # whoever asked has left
        finally:
            self._mirror.invalidate(path)


def find(views: Iterable[TopologyView], name: str) -> TopologyView | None:
    """Find a topology by id or name; None if the hooks in Nimbus publish no such topology."""
    for view in views:
        if name in (view.publication.topology, view.publication.name):
            return view
    return None


def _names(views: Sequence[TopologyView]) -> str:
    return ", ".join(view.publication.topology for view in views) or "none"
