"""Keeps what operators have set in ZooKeeper, over restarts and leaders."""

import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from controller.core.controls import EVERYWHERE, Controls, Pause
from controller.errors import CommandError
from kvstore.errors import ConflictError, NodeExistsError
from kvstore.printable import one_line
from kvstore.zookeeper import Session, Stored
from migration import wire

CONTROLS = f"{wire.ROOT}/controls"


def read(stored: Stored | None) -> Controls:
    """Read the node; while it holds garbage nothing may move."""
    try:
        return _decoded(stored)
    except CommandError as error:
        return Controls(freeze=Pause(str(error)))


def why_off(stored: Stored | None) -> str | None:
    """Return why everything is switched off, by the node of the switch; None while it is on."""
    return None if stored is None or not stored.data else one_line(stored.data) or "no reason"


def _decoded(stored: Stored | None) -> Controls:
    if stored is None or not stored.data:  # as Nimbus makes it
        return Controls()
    try:
        # As text: msgspec does not look at the bytes of a key that it does not know.
        return msgspec.json.decode(stored.data.decode(), type=Controls)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CommandError(f"{CONTROLS} cannot be read: {error}; delete it") from None


def change(session: Session, edit: Callable[[Controls], Controls]) -> Controls:
    """Write what follows from what is set now, and give it back.

    A `CommandError` while the node holds garbage: what was set in it is not known.
    """
    while True:
        stored = session.read(CONTROLS)
        # Topologies come and go, and this node stays. By ZooKeeper's clock, for that of this
        # machine may be wrong: what had ended at the last write goes.
        last_s = 0.0 if stored is None else stored.mtime_ms / 1000
        after = edit(_decoded(stored).in_force(last_s))
        data = msgspec.json.encode(after)
        try:
            if stored is None:
                session.create(CONTROLS, data)
            else:
                session.set(CONTROLS, data, stored.version)
        except (ConflictError, NodeExistsError):
            continue  # another operator was first
        return after


def clock_s(session: Session) -> float:
    """Give the time by ZooKeeper's clock: the one of an operator's machine may be wrong.

    Only a write has a time, so what is set is written again; a `CommandError` while it is garbage.
    """
    stored = session.read(CONTROLS)
    _decoded(stored)
    with suppress(ConflictError, NodeExistsError):  # another operator has just written it
        if stored is None:
            session.create(CONTROLS, b"")
        else:
            session.set(CONTROLS, stored.data, stored.version)
    written = session.exists(CONTROLS)
    return written.mtime_ms / 1000 if written else time.time()


def pause(
    session: Session, reason: str, name: str = EVERYWHERE, lasting_s: float | None = None
) -> Pause:
    """Stop automatic moves of a topology, by its name; give the pause that holds now.

    It shortens no other one, such as that of a guard.
    """
    now_s = clock_s(session)
    made = Pause(reason, None if lasting_s is None else now_s + lasting_s)
    after = change(
        session, lambda c: replace(c, pauses={**c.pauses, name: made.after(c.pauses.get(name))})
    )
    return after.pauses[name]


def freeze(session: Session, reason: str, until_s: float) -> Pause:
    """Stop all moves, also those of operators; give the freeze that holds now."""
    clock_s(session)  # so that one that has ended goes
    made = Pause(reason, until_s)
    return change(session, lambda c: replace(c, freeze=made.after(c.freeze))).freeze or made


def resume(session: Session, name: str | None = None) -> Controls:
    """End the pause of one topology; without a name all of them, and the freeze.

    Give what is still set, and holds.
    """
    clock_s(session)  # so that what has ended goes

    def edit(before: Controls) -> Controls:
        if name is None:
            return replace(before, pauses={}, freeze=None)
        return replace(before, pauses={n: p for n, p in before.pauses.items() if n != name})

    return change(session, edit)
