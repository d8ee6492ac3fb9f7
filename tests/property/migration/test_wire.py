"""Every message survives its bytes, and no bytes do worse than a refusal."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec import UNSET, Raw

from migration import WireError
from migration.model import (
    LATENCY_BUCKETS,
    Entry,
    ExecutorId,
    LocalPlan,
    NimbusReport,
    Node,
    NodeAcks,
    NodeLoad,
    Nodes,
    Plan,
    Publication,
    Slot,
    WorkerLoad,
    names_a_node,
    traffic_of,
)
from migration.wire import decode, encode

# In the bounds of every number: those of tasks.
INTS = st.integers(0, 2**31 - 1)
# What may stand in a name.
TEXT = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    lambda text: not text.startswith("-")
)
ROWS = st.lists(st.tuples(INTS, INTS, st.integers(0, 2**63 - 1)), max_size=3)
# The other messages are parts of these.
KINDS = [LocalPlan, Publication, Nodes, NimbusReport, NodeAcks, NodeLoad]

st.register_type_strategy(int, INTS)
st.register_type_strategy(Raw, ROWS.map(traffic_of))
st.register_type_strategy(str, TEXT)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False, width=32))
st.register_type_strategy(
    ExecutorId, st.lists(INTS, min_size=2, max_size=2).map(lambda ends: ExecutorId(*sorted(ends)))
)
st.register_type_strategy(Node, st.builds(Node, host=st.sampled_from(["h1", "::1", "h-2.ü.de"])))
st.register_type_strategy(Slot, st.builds(Slot, TEXT.filter(names_a_node), st.integers(1, 65535)))
st.register_type_strategy(
    WorkerLoad,
    st.builds(
        WorkerLoad,
        latency=st.dictionaries(st.integers(0, LATENCY_BUCKETS - 1), INTS, max_size=3).map(
            lambda rows: tuple(sorted(rows.items())) or UNSET
        ),
    ),
)
st.register_type_strategy(
    Plan,
    st.builds(
        Plan,
        entries=st.lists(
            st.from_type(Entry),
            max_size=3,
            unique_by=(lambda entry: entry.id, lambda entry: entry.executor),
        ).map(tuple),
    ),
)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=20)
def test_a_message_survives_its_bytes(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(st.from_type(kind))
    assert decode(kind, encode(message)) == message


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=20)
def test_damaged_bytes_are_refused_or_mean_what_they_say(
    kind: type[Any], data: st.DataObject
) -> None:
    sound = encode(data.draw(st.from_type(kind)))
    at = data.draw(st.integers(0, len(sound) - 1))
    damaged = sound[:at] + data.draw(st.binary(max_size=3)) + sound[at + 1 :]
    try:
        message = decode(kind, damaged)
    except WireError as error:
        assert error.where.startswith(kind.__name__)
    else:
        assert decode(kind, encode(message)) == message


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.binary(max_size=60))
def test_garbage_is_refused(kind: type[Any], data: bytes) -> None:
    with pytest.raises(WireError):
        decode(kind, data)
