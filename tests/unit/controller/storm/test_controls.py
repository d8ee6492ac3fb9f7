"""What operators have set is never written over where it cannot be read."""

from typing import Any, cast

import pytest

from controller.core.controls import Controls, Pause, Rejected
from controller.errors import CommandError
from controller.storm.controls import CONTROLS, change, pause, read, resume
from kvstore.zookeeper import Session
from tests.unit.controller.storm.test_apply import Store


def test_what_has_run_out_at_the_last_write_does_not_stay() -> None:
    store = Store(clock_ms=2000)
    session = cast(Session, cast(Any, store))
    both = {"gone": 2.0, "here": 4e9}
    pauses = {name: Pause("x", until_s) for name, until_s in both.items()}
    rejected = {name: Rejected("wc-1", (), until_s) for name, until_s in both.items()}
    change(session, lambda _: Controls(pauses=pauses, rejected=rejected))
    found = change(session, lambda c: c)
    assert found.pauses.keys() == found.rejected.keys() == {"here"}


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
