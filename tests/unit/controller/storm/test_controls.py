"""What operators have set is never written over where it cannot be read."""

from typing import Any, cast

import pytest

from controller.core.controls import Controls
from controller.errors import CommandError
from controller.storm.controls import CONTROLS, change, pause, read, resume
from kvstore.zookeeper import Session
from tests.unit.controller.storm.test_apply import Store


def test_what_cannot_be_read_freezes_all_and_stays_until_it_is_deleted() -> None:
    store = Store()
    session = cast(Session, cast(Any, store))
    change(session, lambda _: Controls(modes={"wc": "observe"}))
    kept = store.nodes[CONTROLS]
    store.set(CONTROLS, kept.data[:-2])
    garbage = store.nodes[CONTROLS]
    assert read(garbage).freeze is not None
    for edit in (lambda: pause(session, "a guard", "wc"), lambda: resume(session, "wc")):
        with pytest.raises(CommandError, match="delete it"):
            edit()
    assert store.nodes[CONTROLS] == garbage
    store.delete(CONTROLS)
    pause(session, "a guard", "wc")
    assert list(read(store.nodes[CONTROLS]).pauses) == ["wc"]
