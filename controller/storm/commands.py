"""The commands of operators: a queue in ZooKeeper that the leading controller works off.

A command lives as long as the session of its operator, so none is done once that has left.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from controller.core.decision import Decision, Move, Outcome, Veto, Vetoes
from controller.core.declared import Declared
from controller.core.excluded import nodes_named
from controller.core.plan import next_plan
from controller.core.topology import TopologyView, moves_under_way
from controller.storm.command_record import (
    COMMANDS,
    DONE,
    REFUSED,
    UNPROVED,
    Command,
    decode,
    encode,
    find,
)
from controller.storm.mirror import Mirror
from controller.storm.move_record import MoveRecord
from kvstore.errors import AccessError, NoNodeError, StoreError
from kvstore.logs import log
from kvstore.printable import one_line
from kvstore.zookeeper import Session, Stored
from migration import ModelError, wire
from migration.model import Entry, ExecutorId, Phase, Plan, Slot
from migration.table import TRANSITIONS

_CAN_GO_BACK = frozenset(row.phase for row in TRANSITIONS if row.event == "cancelled")


def answered(command: Command, found: list[Any], what: str) -> Command:
    """Answer a command that only looks; refuse it where nothing was found, or too much."""
    answer = replace(command, state=DONE, answer=found)
    if not found:
        of = f" of {command.topology}" * bool(command.topology)
        return replace(command, state=REFUSED, reason=f"no {what}{of} in that cycle")
    if len(encode(answer)) > wire.LARGEST_NODE_BYTES:
        return replace(command, state=REFUSED, reason="the answer is too long: name one topology")
    return answer


class CommandQueue:
    """Works off the operators' commands.

    `begin` writes the plan that follows another, False if it could not. `cancel` takes a move back,
    by topology, id and reason. `misfit` is why the moves of a proposal do not fit any more.
    `restarted` names the workers of a topology that start again and again.
    `others` answer all other verbs. The cluster may have `max_moves` moves under way at a time.
    """

    def __init__(
        self,
        session: Session,
        mirror: Mirror,
        begin: Callable[[Plan, Plan, Mapping[str, Any]], bool],
        max_moves: int,
        *,
        cancel: Callable[[str, str, str], None],
        misfit: Callable[[str, tuple[Move, ...]], str | None],
        restarted: Callable[[TopologyView], Vetoes],
        others: Mapping[str, Callable[[Command], Command]],
    ) -> None:
        self._session = session
        self._mirror = mirror
        self._begin = begin
        self._max_moves = max_moves
        self._cancel = cancel
        self._misfit = misfit
        self._restarted = restarted
        self._others = others
        self._read: dict[str, tuple[int, Command | None]] = {}  # by path, with its mzxid
        self._closed: set[str] = set()  # paths where no answer can be written
        self._answered: dict[str, Command] = {}

    def take_answered(self) -> Mapping[str, Command]:
        """Give the commands by path as they were last answered; once more those that have gone."""
        found = self._answered
        self._answered = {path: one for path, one in found.items() if path in self._read}
        return found

    def read(self) -> dict[str, Command]:
        """Read the commands by path, the oldest first, but no garbage."""
        paths = [f"{COMMANDS}/{name}" for name in self._mirror.children(COMMANDS)]
        before, self._read = self._read, {}
        for path in paths:
            try:
                stored = self._mirror.node(path)
                if stored is None:
                    continue
                mzxid, known = before.get(path, (-1, None))
                known = known if mzxid == stored.mzxid else self._named(path, stored)
                self._read[path] = stored.mzxid, known
            except AccessError as error:  # its creator keeps it from us: nobody else may suffer
                if path not in before:
                    log.warning("command_closed", path=path, reason=str(error))
                self._read[path] = -1, None
        self._closed &= self._read.keys()
        found = ((path, self._read[path][1]) for path in self._read if path not in self._closed)
        return {path: command for path, command in found if command is not None}

    def _named(self, path: str, stored: Stored) -> Command | None:
        """Read a command, and find whom ZooKeeper knows as its author.

        After an answer the leader before is an author too: that it found nobody stays.
        """
        command = decode(stored.data)
        if command is None:
            return None
        command = replace(command, why=one_line(command.why.encode()))  # the history keeps it
        if command.known_as == UNPROVED:
            return command
        return replace(command, known_as=self._session.author(path, stored.mzxid) or UNPROVED)

    def work(
        self,
        views: Sequence[TopologyView],
        ended: Iterable[MoveRecord],
        epoch: int,
        *,
        drained: tuple[str, ...] = (),
        free: Collection[Slot] = (),
        frozen: str | None = None,
    ) -> None:
        """Begin waiting moves under this epoch, and answer for those that have just ended.

        Nothing moves to the hosts `drained`; a move may open a slot that is `free`. `frozen` is why
        operators may not move anything.
        """
        for path, command in self.read().items():
            if command.ended:
                continue
            try:
                if command.move:
                    answer = self._follow(command, views, ended)
                elif command.verb == "cancel":
                    answer = self._take_back(command, views)
                elif command.verb in self._others:
                    answer = self._look(command, views)
                elif command.verb != "move" or frozen is not None:
                    reason = frozen or f"the leading controller does not know {command.verb}"
                    answer = replace(command, state=REFUSED, reason=reason)
                else:
                    answer = self._try(command, views, epoch, drained, free)
            except StoreError:
                raise
            except ModelError as error:  # no executor or slot is called so
                answer = replace(command, state=REFUSED, reason=str(error))
            except Exception as error:  # a wish must not end the controller, nor the next one
                log.exception("command_failed", path=path)
                answer = replace(command, state=REFUSED, reason=f"unexpected error: {error!r}")
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
        free: Collection[Slot],
    ) -> Command:
        view = find(views, command.topology)
        if view is None:
            return _unknown(command, views)
        wanted = command.moves or ((command.executor, "", command.slot),)
        moves = tuple(Move(executor, at, to, 0.0) for executor, at, to in wanted)
        ends = {(ExecutorId.parse(move.executor), Slot.parse(move.target)) for move in moves}
        goes_on = [e for e in view.plan.entries if e.void is None and e.phase is not Phase.UNDO]
        begun = [e for e in goes_on if (e.executor, e.target) in ends]
        if len(begun) == len(ends):  # ZooKeeper went away before that could be answered
            return _begun(command, begun[0])
        wish = Decision(Outcome.WOULD_MOVE, "", moves, is_exchange=True)
        after, found = next_plan(view, wish, epoch, free, Declared.of(views))
        changed = _elsewhere(view, moves, drained, self._restarted(view).workers)
        if changed is None and after is not None and command.what:
            changed = self._misfit(view.id, moves)
        if changed is not None:
            return replace(command, state=REFUSED, reason=changed)
        if after is None:
            return replace(command, state=REFUSED, reason=found.reason)
        flying = len(moves_under_way(views))
        wait = view.stand_back
        if flying and flying + len(moves) > self._max_moves:
            wait = f"{flying} move{'s' * (flying > 1)} under way"
        asked = {"asked_by": command.asked_by, "why": command.why}
        if wait is None and not self._begin(view.plan, after, asked):
            wait = "another controller changed the plan in the meantime"
        if wait is not None:
            return replace(command, reason=wait)
        return _begun(command, after.entries[-len(moves)])

    def _look(self, command: Command, views: Sequence[TopologyView]) -> Command:
        view = find(views, command.topology)
        if view is None and command.topology:
            return _unknown(command, views)
        return self._others[command.verb](replace(command, topology=view.id if view else ""))

    def _take_back(self, command: Command, views: Sequence[TopologyView]) -> Command:
        """Begin to undo a move, in a phase that can go back."""
        named = find(views, command.topology)
        chosen = views if not command.topology else [named] if named else []
        found = [(v.id, e) for v in chosen for e in v.plan.entries if e.id == command.what]
        reason = f"no move {command.what} is under way: see `nstorm history`"
        if len(found) > 1:
            reason = f"{command.what} is a move of {', '.join(t for t, _ in found)}: name one"
        elif found:
            topology, entry = found[0]
            if entry.void is None and entry.phase in _CAN_GO_BACK:
                self._cancel(topology, entry.id, f"by {command.asked_by}")
                return _begun(replace(command, topology=topology), entry)
            state = "void" if entry.void is not None else f"in {entry.phase}"
            reason = f"{entry.id} is {state} and can no longer go back"
        return replace(command, state=REFUSED, reason=reason)

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
        data = encode(command)
        if len(data) > wire.LARGEST_NODE_BYTES:  # ZooKeeper would end the leader's session
            command = replace(command, state=REFUSED, reason="the command is too long")
            data = encode(Command("", state=REFUSED, reason=command.reason))
        self._answered[path] = command  # first, for no answer may come to the write
        try:
            self._session.set(path, data)
        except NoNodeError:
            pass  # whoever asked has left
        except AccessError as error:  # its creator lets nobody answer
            log.warning("command_not_answered", path=path, reason=str(error))
            self._closed.add(path)
        finally:
            self._mirror.invalidate(path)


def _begun(command: Command, entry: Entry) -> Command:
    executor, phase = str(entry.executor), str(entry.phase)
    return replace(command, executor=executor, state=phase, reason="", move=entry.id)


def _elsewhere(
    view: TopologyView,
    moves: Iterable[Move],
    drained: Iterable[str],
    restarted: Mapping[str, Veto],
) -> str | None:
    """Return what is elsewhere than a wish takes it to be, or may not go to its target."""
    closed = nodes_named(view.publication.hosts, [*drained])
    for move in moves:
        if Slot.parse(move.target).supervisor in closed:
            return f"{move.target} is on a host that is drained: see `nstorm undrain`"
        if move.target in restarted:
            return f"nothing may come there: {restarted[move.target].reason}"
        placed = view.publication.find(ExecutorId.parse(move.executor))
        if placed and move.source and str(placed.slot) != move.source:
            return f"{move.executor} is at {placed.slot} now, not at {move.source}"
    return None


def _unknown(command: Command, views: Sequence[TopologyView]) -> Command:
    names = ", ".join(view.publication.topology for view in views) or "none"
    reason = f"no topology {command.topology}: the hooks in Nimbus publish {names}"
    return replace(command, state=REFUSED, reason=reason)
