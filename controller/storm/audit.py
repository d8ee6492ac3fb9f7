"""The audit trail: who asked for what, what there was before and after, and what came of it.

It is a file of its own next to the journal, of JSON lines and bounded in size. The leading
controller writes it, on a thread of its own, so that no disk holds it up.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import Any

from controller.core.times import utc
from controller.journal.writer import CLOSE_S
from controller.storm.collect import DRAINED
from controller.storm.command_record import UNPROVED, WAITING, Command
from controller.storm.controls import CONTROLS
from controller.storm.mirror import Mirror
from controller.storm.move_record import MoveRecord
from kvstore.ensemble import who_may
from kvstore.errors import AccessError
from kvstore.logs import log
from kvstore.printable import shortened
from kvstore.zookeeper import Session, Stored
from migration import wire

# Once the file is full, it takes the place of the older one.
AUDIT, OLDER_AUDIT = "audit.ndjson", "audit.old.ndjson"
FILE_BYTES = 8 * 2**20
WAITING_LINES = 1000
_LOOKS = frozenset({"plan", "explain"})


class Audit:
    """Writes down what people ask for; nothing where no journal is kept."""

    def __init__(self, session: Session, mirror: Mirror, folder: Path | None) -> None:
        self._session = session
        self._mirror = mirror
        self._commands: dict[str, Command] = {}  # by path, those that were written down
        self._moves: set[tuple[str, str, float | None]] | None = None
        self._nodes: dict[str, Stored | None] | None = None
        self._waiting: Queue[str | None] = Queue(WAITING_LINES)
        self._thread: Thread | None = None
        if folder is not None:
            # What hangs in it does not hold up the end of the process.
            self._thread = Thread(target=self._work, args=(folder,), name="audit", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Write what waits, and leave the rest if the disk hangs."""
        if self._thread is not None:
            with suppress(Full):
                self._waiting.put(None, timeout=CLOSE_S)
                self._thread.join(CLOSE_S)

    def _work(self, folder: Path) -> None:
        """Write lines until the end; a disk that refuses is logged once."""
        failed = False
        while (line := self._waiting.get()) is not None:
            try:
                _append(folder, line)
            except OSError as error:
                if not failed:
                    reason = error.strerror or str(error)
                    log.warning("audit_not_written", folder=str(folder), reason=reason)
                failed = True

    def look(self, answered: Mapping[str, Command], ended: Iterable[MoveRecord]) -> None:
        """Write down what is new since the last look, as the leader.

        `answered` are commands as this leader has answered them: in a node its asker could have
        written that it is done.
        """
        if self._thread is None:
            return
        self._look_at_nodes()
        self._look_at_commands(answered)
        self._look_at_moves(ended)

    def _look_at_commands(self, commands: Mapping[str, Command]) -> None:
        for path, command in commands.items():
            known = self._commands.get(path)
            answered = command.state != WAITING and command.verb not in _LOOKS
            if answered and (known is None or known.ended != command.ended):
                self._commands[path] = command
                self._write(
                    who=command.known_as or UNPROVED,
                    says=command.by,
                    what=command.verb,
                    topology=command.topology,
                    of=command.move or command.what,
                    wants=command.moves or [(command.executor, "", command.slot)],
                    outcome=command.state,
                    reason=command.reason,
                )
        for gone in self._commands.keys() - commands.keys():
            del self._commands[gone]

    def _look_at_moves(self, ended: Iterable[MoveRecord]) -> None:
        """Write how moves ended that a person asked for, also where he has left since."""
        moves = {(m.topology, m.id, m.begun_s): m for m in ended if UNPROVED in m.asked_by}
        before, self._moves = self._moves, set(moves)
        for key in () if before is None else moves.keys() - before:
            move = moves[key]
            self._write(
                who=move.asked_by,
                what="end of a move",
                topology=move.topology,
                of=move.id,
                executor=move.executor,
                before=move.source,
                after=move.target if move.outcome == "MOVED" else move.source,
                outcome=move.outcome,
                reason=move.reason,
            )

    def _look_at_nodes(self) -> None:
        """Write what has changed in the nodes that operators write themselves.

        Of such a write ZooKeeper shows only who was allowed to make it.
        """
        hosts = self._mirror.children(DRAINED)
        paths = [CONTROLS, wire.OFF, *(f"{DRAINED}/{host}" for host in hosts)]
        now = dict(zip(paths, self._mirror.nodes(paths), strict=True))
        before = now if self._nodes is None else self._nodes
        for path in dict.fromkeys((*before, *now)):
            was, has = before.get(path), now.get(path)
            if (was and was.data) != (has and has.data):
                old, new = _difference(was, has)
                self._write(who=self._writers(path), what=path, before=old, after=new)
        self._nodes = now

    def _writers(self, path: str) -> str:
        """Name who may have written a node, or deleted it."""
        parent = path.rpartition("/")[0]
        try:
            there = who_may(self._session.grants(path), "w")
            found = there or who_may(self._session.grants(parent), "d")
        except AccessError:  # it was closed to us as well
            return UNPROVED
        if "world:anyone" in found:
            return UNPROVED
        return found.pop() if len(found) == 1 else f"one of {', '.join(sorted(found))}"

    def _write(self, **row: Any) -> None:
        there = {key: shortened(value) for key, value in row.items() if value not in ("", None)}
        # In ASCII: so no control character is in the file, and a byte is a character.
        line = json.dumps({"time": utc(time.time()), **there})
        with suppress(Full):  # the disk hangs
            self._waiting.put_nowait(f"{line}\n")


def _append(folder: Path, line: str) -> None:
    """Write a line into the file, which is for its owner and group."""
    path = folder / AUDIT
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size + len(line) > FILE_BYTES:
        path.replace(folder / OLDER_AUDIT)
    with open(path, "a", opener=lambda name, flags: os.open(name, flags, 0o640)) as file:
        file.write(line)


def _difference(was: Stored | None, has: Stored | None) -> tuple[Any, Any]:
    """Give what a node held and what it holds, or of JSON objects the keys that differ."""
    old, new = (_value(stored) for stored in (was, has))
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        old, new = ({key: one[key] for key in keys if key in one} for one in (old, new))
    return old, new


def _value(stored: Stored | None) -> Any:
    if stored is None or not stored.data:
        return {}
    text = stored.data.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
