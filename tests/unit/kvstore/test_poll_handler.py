"""Waiting for sockets: what kazoo asks its handler for."""

import socket
import time
from collections.abc import Iterator

import pytest

from kvstore.zookeeper import PollHandler

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_only_what_is_ready_comes_back(pair: Pair) -> None:
    one, other = pair
    other.send(b"x")
    assert PollHandler().select([one, other], [], [], 1.0) == ([one], [], [])
    assert PollHandler().select([other], [one], [], 1.0) == ([], [one], [])


def test_a_silent_socket_is_waited_for(pair: Pair) -> None:
    began_s = time.monotonic()
    assert PollHandler().select([pair[0]], [], [], 0.05) == ([], [], [])
    assert time.monotonic() - began_s >= 0.05


def test_a_socket_whose_other_end_has_gone_is_ready(pair: Pair) -> None:
    one, other = pair
    other.close()
    assert PollHandler().select([one], [], [], 1.0) == ([one], [], [])
    assert one.recv(1) == b""


def test_a_closed_socket_is_refused_as_by_kazoo(pair: Pair) -> None:
    pair[0].close()
    with pytest.raises(ValueError, match="negative"):
        PollHandler().select([pair[0]], [], [], 1.0)
