"""What operators and leaders keep in ZooKeeper does no harm, whatever becomes of its bytes."""

import re
import zlib
from collections.abc import Callable
from typing import cast

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given, settings
from msgspec import structs

from controller.core.controls import Controls, Pause, Rejected
from controller.storm import command_record, controls, leader_status
from controller.storm.command_record import Command
from controller.storm.history import History
from controller.storm.move_record import MoveRecord
from kvstore.zookeeper import Session, Stored
from migration import wire

NOW_S = 1_700_000_000.0
CONTROLS = Controls(
    {"": "advise", "wc-ü": "auto"},
    {"wc": Pause("release", NOW_S + 60)},
    Pause("outage"),
    {"p-1a2b3c": Rejected("wc-1-1700000000", ("7-7",), NOW_S)},
)
WISH = Command("wc", "7-7", "s1:6700", verb="approve", what="p-1", moves=(("7-7", "a:1", "b:2"),))
MOVE = MoveRecord("wc-1", "m7", "7-7", "s1:6700", "s2:6701", begun_s=NOW_S - 1, after={"x": None})
STATUS = {"controller": "c", "cycles": [{"topology": "wc-1"}], "padding": list(range(900))}


class OneNode:
    """A ZooKeeper with this in every node."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, path: str) -> Stored:
        return Stored(self._data, 0, 1)


def read_controls(data: bytes) -> None:
    found = controls.read(Stored(data, 0, 1))
    for text in (
        found.frozen(NOW_S),
        found.held("wc", NOW_S),
        *found.mode_of("wc", None, "observe"),
    ):
        assert text is None or text.encode()
    found.unwanted("wc-1-1700000000", NOW_S)
    if not data:  # as Nimbus creates it
        return
    try:
        msgspec.json.decode(data)
    except (ValueError, msgspec.DecodeError, RecursionError):
        assert found.frozen(NOW_S), "what cannot be read holds everything"


def read_command(data: bytes) -> None:
    found = command_record.decode(data)
    assert found is None or command_record.decode(command_record.encode(found)) == found


def read_history(data: bytes) -> None:
    history = History()
    history.load(Stored(data, 0, 0))
    assert len(history.hour(NOW_S)) <= len(history.moves)
    history.measure({"wc-1": {}}, NOW_S)
    again = History()
    again.load(Stored(history.dump(), 0, 0))
    assert again.moves == history.moves


def read_status(data: bytes) -> None:
    found = leader_status.read(cast(Session, OneNode(data)))
    assert {cycle.topology: cycle for cycle in found.cycles} == found.cycle_of


READERS: list[tuple[bytes, Callable[[bytes], None]]] = [
    (msgspec.json.encode(CONTROLS), read_controls),
    (command_record.encode(structs.replace(WISH, answer=[{"a": 1}])), read_command),
    (msgspec.json.encode([MOVE]), read_history),
    (msgspec.json.encode(STATUS), read_status),
    (wire.packed(msgspec.json.encode(STATUS)), read_status),
    (wire.packed(msgspec.json.encode([MOVE] * 40)), read_history),
]
VALUES = [b"null", b"7", b'"x"', b"1e999", b"-1", b"[]", b"{}", b'""', b"NaN", b'"\\ud800"']
VALUES += [b'"\xff"', b"true", b"9" * 400]
KEYS = [b"later", b"modes", b"topology", b"source", b"answer"]


@pytest.mark.parametrize(("sound", "read"), READERS)
@given(data=st.data())
@settings(max_examples=60)
def test_bytes_that_are_cut_or_changed(
    sound: bytes, read: Callable[[bytes], None], data: st.DataObject
) -> None:
    read(sound)
    at = data.draw(st.integers(0, len(sound)))
    until = data.draw(st.sampled_from([at, min(at + 1, len(sound)), len(sound)]))
    read(sound[:at] + data.draw(st.binary(max_size=3)) + sound[until:])


@pytest.mark.parametrize(("sound", "read"), READERS[:4])
def test_keys_and_values_of_another_version(sound: bytes, read: Callable[[bytes], None]) -> None:
    for odd in VALUES:
        for at in [i + 1 for i, byte in enumerate(sound) if byte == ord("{")]:
            for key in KEYS:
                read(sound[:at] + b'"' + key + b'":' + odd + b"," + sound[at:])
        for at in [i + 1 for i, byte in enumerate(sound) if byte == ord(":")]:
            rest = re.search(rb"[,}]", sound[at:])
            assert rest is not None
            read(sound[:at] + odd + sound[at + rest.start() :])


@pytest.mark.parametrize("read", [read for _, read in READERS[:4]])
@given(data=st.binary(max_size=60))
@example(data=b"[" * 100_000)
@example(data=b'[{"later":' * 100_000)
@example(data=zlib.compress(bytes(17 * 2**20), wbits=31))
def test_garbage(read: Callable[[bytes], None], data: bytes) -> None:
    read(data)
