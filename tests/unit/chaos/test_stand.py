"""What a stand reports of the time until all is whole."""

import time
from unittest.mock import Mock

import pytest

from tests.chaos import stand as module
from tests.chaos.stand import Stand


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    """A cluster that is whole."""
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(module, "STEADY_S", 0.0)
    monkeypatch.setattr(Stand, "flaw", lambda self: None)
    return Stand(Mock(), Mock(), Mock(), Mock())


def test_the_time_until_all_is_whole_has_the_lifting_in_it(stand: Stand) -> None:
    seconds, flaw = stand.wait_whole(60.0, time.monotonic() - 20.0)
    assert seconds is not None and seconds >= 20.0 and flaw == ""


def test_a_lifting_that_takes_the_whole_limit_is_too_long(stand: Stand) -> None:
    assert stand.wait_whole(10.0, time.monotonic() - 20.0)[0] is None
