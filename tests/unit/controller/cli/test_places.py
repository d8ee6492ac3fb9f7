"""Hosts for supervisor ids: what is typed, and what a status leaves out."""

from typing import Any

import pytest

from controller.cli.places import only, shown, slot_of
from controller.errors import CommandError
from migration import ModelError
from migration.model import Node, Slot

NODES = [
    Node("id-1", "alpha", 400.0, (6700, 6701), 1),
    Node("id-2", "beta", 400.0, (6700,), 1),
    Node("id-3", "beta", 400.0, (6800,), 1),
    Node("id-4", "gamma", 400.0, (6700,), 1),
    Node("id-5", "gamma", 400.0, (6700,), 1),
    Node("beta", "delta", 400.0, (6700,), 1),
]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("alpha:6700", "id-1:6700"),
        ("alpha:9", "id-1:9"),  # the controller says that there is no such slot
        ("id-2:6700", "id-2:6700"),
        ("beta:6800", "beta:6800"),  # an id goes first
        ("unknown:1", "unknown:1"),
    ],
)
def test_a_slot_is_meant_by_host_or_by_id(typed: str, meant: str) -> None:
    assert slot_of(typed, NODES) == Slot.parse(meant)


def test_of_two_supervisors_of_a_host_the_port_tells() -> None:
    assert slot_of("beta:6800", NODES[:3]) == Slot("id-3", 6800)
    with pytest.raises(CommandError, match="gamma:6700 may be any of id-4:6700, id-5:6700: type"):
        slot_of("gamma:6700", NODES)
    with pytest.raises(ModelError):
        slot_of("alpha", NODES)


def test_a_slot_is_shown_by_its_host() -> None:
    assert shown("id-1:6700", {"id-1": "alpha"}) == "alpha:6700"
    assert shown("id-9:6700", {"id-1": "alpha"}) == "id-9:6700"
    assert shown("id-1", {"id-1": "alpha"}) == "alpha"
    said = "7-7 from id-1:6700 to id-9:6701, a gain of id-1: 5"
    assert shown(said, {"id-1": "alpha"}) == "7-7 from alpha:6700 to id-9:6701, a gain of id-1: 5"


def test_an_id_with_an_address_of_ipv6_is_shown_by_its_host() -> None:
    node = "0a1b-2001:db8:0:0:0:0:0:5"
    hosts = {node: "alpha", "id-1": "beta"}
    assert shown(f"7-7 from {node}:6700 to id-1:6701", hosts) == "7-7 from alpha:6700 to beta:6701"
    assert shown("worker:id-1:6701", hosts) == "worker:beta:6701"


def topology(name: str, *slots: str) -> dict[str, Any]:
    return {
        "topology": f"{name}-1-1",
        "name": name,
        "workers": [{"slot": slot} for slot in slots],
        "executors": [*({"slot": slot} for slot in slots), {"slot": None}],
        "moves": [{"from": "id-1:1", "to": "id-2:1"}, {"from": "id-2:1", "to": "id-2:2"}],
        "links": [{"from": "id-1", "to": "id-2", "tps": 1.0}],
    }


def status() -> dict[str, Any]:
    return {
        "hosts": {"id-1": "alpha", "id-2": "beta", "id-3": "gamma"},
        "silent_s": {"id-1": 20.0, "id-3": None},
        "agents": [{"node": "id-1"}, {"node": "id-2"}],
        "topologies": [topology("one", "id-1:1", "id-2:1"), topology("two", "id-2:2")],
        "ended_moves": [
            {"topology": "one-1-1", "source": "id-1:1", "target": "id-2:1"},
            {"topology": "two-1-1", "source": "id-2:1", "target": "id-2:2"},
        ],
    }


def test_without_a_filter_all_is_shown() -> None:
    assert only(status(), "", "") == status()


@pytest.mark.parametrize("typed", ["one", "one-1-1"])
def test_one_topology(typed: str) -> None:
    left = only(status(), typed, "")
    assert [one["name"] for one in left["topologies"]] == ["one"]
    assert [move["topology"] for move in left["ended_moves"]] == ["one-1-1"]
    assert left["agents"] == status()["agents"]


@pytest.mark.parametrize("typed", ["alpha", "id-1"])
def test_one_host(typed: str) -> None:
    left = only(status(), "", typed)
    (one,) = left["topologies"]
    assert left["silent_s"] == {"id-1": 20.0}
    assert left["agents"] == [{"node": "id-1"}]
    assert one["workers"] == one["executors"] == [{"slot": "id-1:1"}]
    assert one["moves"] == [{"from": "id-1:1", "to": "id-2:1"}]
    assert len(one["links"]) == 1
    assert len(left["ended_moves"]) == 1
    assert only(status(), "two", typed)["topologies"] == []


@pytest.mark.parametrize(
    ("named", "host", "said"),
    [
        ("tow", "", "no topology tow: there are one, two"),
        ("", "delta", "no host delta: there are alpha, beta, gamma"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(named: str, host: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        only(status(), named, host)
