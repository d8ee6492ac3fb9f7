"""Hosts for supervisor ids: what is typed, and what a status leaves out."""

import json
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace

from controller.cli.places import only, slot_of
from controller.cli.status_document import StatusDocument, TopologyStatus
from controller.core.hostnames import shown
from controller.errors import CommandError
from controller.storm.leader_status import LinkRow
from controller.storm.move_record import MoveRecord
from migration import ModelError
from migration.model import Node, Slot

GOLDEN = Path(__file__).parents[3] / "golden" / "status" / "measured.json"
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
        ("alpha:9", "id-1:9"),  # the controller reports that there is no such slot
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


def topology(name: str, *slots: str) -> TopologyStatus:
    some = convert(json.loads(GOLDEN.read_text())["topologies"][0], TopologyStatus)
    executor, move = some.executors[0], some.moves[0]
    return replace(
        some,
        topology=f"{name}-1-1",
        name=name,
        workers=tuple(replace(some.workers[0], slot=slot) for slot in slots),
        executors=tuple(replace(executor, slot=slot) for slot in (*slots, None)),
        moves=(
            replace(move, source="id-1:1", target="id-2:1"),
            replace(move, source="id-2:1", target="id-2:2"),
        ),
        links=(LinkRow("id-1", "id-2", 1.0),),
    )


def status() -> StatusDocument:
    some = convert(json.loads(GOLDEN.read_text()), StatusDocument)
    return replace(
        some,
        hosts={"id-1": "alpha", "id-2": "beta", "id-3": "gamma"},
        silent_s={"id-1": 20.0, "id-3": None},
        agents=tuple(replace(some.agents[0], node=node) for node in ("id-1", "id-2")),
        topologies=(topology("one", "id-1:1", "id-2:1"), topology("two", "id-2:2")),
        ended_moves=(
            MoveRecord("one-1-1", "m1", "7-7", "id-1:1", "id-2:1"),
            MoveRecord("two-1-1", "m1", "7-7", "id-2:1", "id-2:2"),
        ),
    )


def test_without_a_filter_all_is_shown() -> None:
    assert only(status(), "", "") == status()


@pytest.mark.parametrize("typed", ["one", "one-1-1"])
def test_one_topology(typed: str) -> None:
    left = only(status(), typed, "")
    assert [one.name for one in left.topologies] == ["one"]
    assert [move.topology for move in left.ended_moves] == ["one-1-1"]
    assert left.agents == status().agents


@pytest.mark.parametrize("typed", ["alpha", "id-1"])
def test_one_host(typed: str) -> None:
    left = only(status(), "", typed)
    (one,) = left.topologies
    assert left.silent_s == {"id-1": 20.0}
    assert [agent.node for agent in left.agents] == ["id-1"]
    assert [worker.slot for worker in one.workers] == ["id-1:1"]
    assert [executor.slot for executor in one.executors] == ["id-1:1"]
    assert [(move.source, move.target) for move in one.moves] == [("id-1:1", "id-2:1")]
    assert len(one.links) == 1
    assert len(left.ended_moves) == 1
    assert only(status(), "two", typed).topologies == ()


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
