"""A command of an operator, as it lies in ZooKeeper while its session lasts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from migration import wire
from migration.model import Line

if TYPE_CHECKING:
    from controller.core.topology import TopologyView

COMMANDS = f"{wire.ROOT}/commands"

WAITING, REFUSED, DONE = "WAITING", "REFUSED", "DONE"
UNPROVED = "unproved"
# The last two are the protocol's own words for moves that did not come about.
ENDS = frozenset({REFUSED, DONE, "MOVED", "UNDONE", "VOID"})


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request of an operator, such as to move an executor to a slot, and its state.

    A default is not written: a controller of the last version knows no other keys.
    """

    topology: Line
    executor: Line = ""
    slot: Line = ""
    state: str = WAITING  # WAITING, REFUSED, a phase of the move, or how it ended
    reason: str = ""
    move: Line = ""  # id of the move, once begun
    stopped_after_s: float | None = None  # from PREPARE to STOPPED, once known
    verb: Line = "move"
    what: Line = ""  # what the other verbs are about; of a move, the proposal that was approved
    by: Line = "operator"  # who asks, in their own words
    why: str = ""
    # Executor, source and slot of moves that begin together or not at all, in place of the one.
    moves: tuple[tuple[Line, Line, Line], ...] = ()
    answer: Any = None  # of a verb that only looks
    known_as: Line = ""  # who asks, as ZooKeeper knows them, or `UNPROVED`; the leader finds it

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def asked_by(self) -> str:
        """Who asks, for the history: whom ZooKeeper knows, and what they call themselves."""
        if self.known_as in ("", UNPROVED):
            return f"{UNPROVED}: {self.by}"
        return f"{self.known_as} ({UNPROVED}: {self.by})"


def encode(command: Command) -> bytes:
    return wire.packed(msgspec.json.encode(command, enc_hook=float))


def decode(data: bytes) -> Command | None:
    """Read a command; None for garbage."""
    try:
        return msgspec.json.decode(wire.unpacked(data), type=Command)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def find(views: Iterable[TopologyView], name: str) -> TopologyView | None:
    """Find a topology by id or name; None if the hooks in Nimbus publish no such topology."""
    for view in views:
        if name in (view.publication.topology, view.publication.name):
            return view
    return None
