"""Keeps what operators have set in ZooKeeper, over restarts and leaders."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from controller.core.controls import EVERYWHERE, Controls, Pause
from kvstore.errors import ConflictError, NodeExistsError
from kvstore.zookeeper import Session, Stored
from migration import wire

CONTROLS = f"{wire.ROOT}/controls"


def read(stored: Stored | None) -> Controls:
    """Read the node; while it holds garbage nothing may move."""
    if stored is None:
        return Controls()
    try:
        # As text: msgspec would not look at the bytes of a key that it does not know.
        return msgspec.json.decode(stored.data.decode(), type=Controls)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return Controls(freeze=Pause(f"{CONTROLS} cannot be read: {error}; delete it"))


def change(session: Session, edit: Callable[[Controls], Controls]) -> Controls:
    """Write what follows from what is set now, and give it back."""
    while True:
        stored = session.read(CONTROLS)
        after = edit(read(stored))
        data = msgspec.json.encode(after)
        try:
            if stored is None:
                session.create(CONTROLS, data)
            else:
                session.set(CONTROLS, data, stored.version)
        except (ConflictError, NodeExistsError):
            continue  # another operator was first
        return after


def pause(
    session: Session, reason: str, name: str = EVERYWHERE, until_s: float | None = None
) -> None:
    """Let no decision begin a move of a topology, by its name."""
    made = Pause(reason, until_s)
    change(session, lambda c: replace(c, pauses={**c.pauses, name: made}))


def resume(session: Session, name: str | None = None) -> Controls:
    """End the pause of one topology; without a name all of them, and the freeze."""

    def edit(before: Controls) -> Controls:
        if name is None:
            return replace(before, pauses={}, freeze=None)
        return replace(before, pauses={n: p for n, p in before.pauses.items() if n != name})

    return change(session, edit)
