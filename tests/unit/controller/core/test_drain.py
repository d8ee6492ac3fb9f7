"""What a drain refuses before it begins, and how far it is."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from msgspec import structs

from controller.cli.status_document import drain_lines, drain_progress
from controller.core.capacity import Capacity, Spare
from controller.core.drain import _drain
from controller.core.drainable import cannot_drain, on_hosts, unseen
from controller.core.excluded import Excluded
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.openable import slots_to_open
from controller.core.topology import TopologyView
from migration.model import (
    Base,
    Component,
    Entry,
    ExecutorId,
    Node,
    Phase,
    PinnedExecutor,
    Plan,
    Slot,
)
from tests.messages import node_acks, publication, worker_ack
from tests.snapshots import cluster, snapshot

A, B = Slot("a", 1), Slot("b", 1)
PLACES = {1: A, 2: A, 3: B}
CPU = {("wc-1", f"{task}-{task}"): 0.3 for task in PLACES}


def view(pinned: str | None = None) -> TopologyView:
    nodes = [Node(name, f"host-{name}", 100.0, (1,), 1) for name in "ab"]
    stays = (PinnedExecutor(ExecutorId(1, 1), pinned),) if pinned else ()
    acks = (
        node_acks("a", [worker_ack(A, [1, 2], pinned=stays)], "uuid"),
        node_acks("b", [worker_ack(B, [3])], "uuid"),
    )
    return TopologyView(publication(PLACES, nodes), Plan("uuid", 1, 0, "wc-1"), acks)


asked = partial(cannot_drain, free=(), limits=Limits(high_frac=0.8), capacity=Capacity())


def refused(host: str, *drained: str, room: float = 1.0, pinned: str | None = None) -> str | None:
    room_cores = {("wc-1", str(B)): room}
    return asked([view(pinned)], host, drained, CPU, room_cores)


def test_what_the_other_hosts_cannot_carry_is_refused_with_the_numbers() -> None:
    assert refused("host-a") is None
    assert refused("host-a", room=0.5) == (
        "2 executors of wc need 0.6 cores, and its workers and free slots on other hosts have 0.5 "
        "below load.high"
    )
    # What stays needs no room elsewhere.
    assert refused("host-a", room=0.5, pinned="stateful") is None


def second_view() -> TopologyView:
    published = publication(PLACES, view().publication.nodes, topology="wc-2", name="wc2")
    acks = (
        node_acks("a", [worker_ack(A, [1, 2], topology="wc-2")], "uuid"),
        node_acks("b", [worker_ack(B, [3], topology="wc-2")], "uuid"),
    )
    return TopologyView(published, Plan("uuid", 1, 0, "wc-2"), acks)


@pytest.mark.parametrize("room", [0.6, 1.1])
def test_what_one_topology_needs_is_no_room_for_the_next(room: float) -> None:
    first, second = view(), second_view()
    demand = CPU | {("wc-2", executor): cores for (_, executor), cores in CPU.items()}
    room_cores = {(view.id, str(B)): room for view in (first, second)}
    for one in (first, second):
        assert asked([one], "host-a", (), demand, room_cores) is None
    why_not = str(asked([first, second], "host-a", (), demand, room_cores))
    assert "2 executors of wc2 need 0.6 cores" in why_not
    assert f"other hosts have {room - 0.6:.3g} below" in why_not


def test_memory_that_the_other_hosts_have_not_is_refused_with_the_numbers() -> None:
    def counting(made: TopologyView, has_mb: float) -> TopologyView:
        nodes = tuple(structs.replace(one, memory_mb=has_mb) for one in made.publication.nodes)
        components = (Component("bolt", "bolt", 3, 128.0),)
        published = structs.replace(made.publication, nodes=nodes, components=components)
        return replace(made, publication=published)

    both = CPU | {("wc-2", executor): cores for (_, executor), cores in CPU.items()}
    room_cores = {(one, str(B)): 2.0 for one in ("wc-1", "wc-2")}
    assert asked([counting(view(), 384.0)], "host-a", (), both, room_cores) is None
    assert asked([counting(view(), 300.0)], "host-a", (), both, room_cores) == (
        "2 executors of wc declare 256 MB of memory, and the nodes of its workers and free slots "
        "on other hosts have 172 MB left for Storm's scheduler"
    )
    # What another topology brings is no room, nor what it has there already.
    for has_mb, is_refused in ((767.0, True), (768.0, False)):
        views = [counting(view(), has_mb), counting(second_view(), has_mb)]
        why = asked(views, "host-a", (), both, room_cores)
        assert (why is not None) is is_refused
        assert why is None or why.startswith("2 executors of wc2 declare 256 MB")


def test_neither_the_last_host_nor_what_is_no_host_is_drained() -> None:
    assert refused("host-c") == "host-c is no host of the cluster, which has host-a, host-b"
    assert refused("host-a", "host-b") == "host-a is the last host that is not drained"
    assert asked([view()], "host-a", (), {}, {}) == (
        "the load of wc is not known yet: try again in some seconds"
    )


def test_one_free_slot_counts_of_each_node_that_has_no_worker_of_the_topology() -> None:
    nodes = [Node(n, f"host-{n}", 100.0, (1, 2, 3), 0 if n == "c" else 1) for n in "abcd"]
    made = TopologyView(publication(PLACES, nodes), Plan("uuid", 1, 0, "wc-1"), view().acks)
    free = [Slot(node, port) for node in "abcd" for port in (2, 3)]

    def slots(closed: Collection[str], cores: float | None = None) -> list[Spare]:
        return [one for one in slots_to_open(made, free, Capacity(cores)) if one.node not in closed]

    assert slots(()) == [Spare("c:2", "c", 1.0), Spare("d:2", "d", 0.5)]
    assert slots({"c"}, 2.0) == [Spare("d:2", "d", 2.0)]
    args = [made], "host-a", (), CPU, {("wc-1", str(B)): 0.5}
    assert "have 0.5 below" in str(asked(*args))
    assert asked(*args, free=free) is None


def test_a_host_is_empty_once_storm_and_the_plan_have_left_it() -> None:
    made = view()
    assert on_hosts(made, ["host-a"]) == 2
    leaves = Entry("m1", ExecutorId(3, 3), B, A, Phase.PREPARE, Base(B, 50))
    both = TopologyView(made.publication, Plan("uuid", 1, 0, "wc-1", (leaves,)), made.acks)
    assert on_hosts(both, ["host-a"]) == 3
    assert on_hosts(both, ["a", "host-b"]) == 3


@pytest.mark.parametrize("phase", Phase)
def test_a_host_is_not_empty_before_the_last_move_from_it_has_ended(phase: Phase) -> None:
    made = view()
    leaves = Entry("m1", ExecutorId(3, 3), B, A, phase, Base(B, 50))
    under_way = replace(made, plan=Plan("uuid", 1, 0, "wc-1", (leaves,)))
    found = drain_progress([under_way], (), "host-b", 1)
    assert (found.left, found.stay) == (1, ())


def test_progress_names_what_stays() -> None:
    lines = list(drain_lines(drain_progress([view("stateful")], (), "host-a", 5)))
    assert lines == [
        "host host-a is drained: 2 of 5 executors left",
        "  1-1 of wc-1 stays: stateful",
    ]


def test_an_excluded_topology_and_one_that_rests_stay_as_a_whole() -> None:
    excluded = Excluded(topologies=frozenset({"wc"}))
    resting = replace(view(), publication=structs.replace(view().publication, status="INACTIVE"))
    for seen, of, why in ((view(), excluded, "excluded"), (resting, Excluded(), "INACTIVE")):
        found = drain_progress([seen], (), "host-a", 2, of)
        assert list(drain_lines(found, dry=True)) == [
            "would move 0 executors away from host host-a, 2 stay",
            f"  1-1 of wc-1 stays: topology wc is {why}",
            f"  2-2 of wc-1 stays: topology wc is {why}",
        ]
        # What stays needs no room elsewhere.
        assert asked([seen], "host-a", (), {}, {}, excluded=of) is None


def test_a_rebalance_keeps_nothing_on_a_host() -> None:
    published = structs.replace(view().publication, status="REBALANCING")
    seen = replace(view(), publication=published)
    assert drain_progress([seen], (), "host-a", 2).stay == ()
    excluded = Excluded(topologies=frozenset({"wc"}))
    stay = drain_progress([seen], (), "host-a", 2, excluded).stay
    assert {one.reason for one in stay} == {"topology wc is excluded"}


def test_a_host_may_have_more_where_storm_lists_no_supervisor_of_it() -> None:
    seen = view()
    assert unseen([seen], (), "host-a") is None
    gone = [node for node in seen.publication.nodes if node.id != "a"]
    lost = replace(seen, publication=structs.replace(seen.publication, nodes=tuple(gone)))
    why = unseen([lost], (), "host-a")
    assert why is not None and "nor that of 2 executors of wc, which may be there" in why
    assert unseen([lost], (), "host-b") is None
    assert drain_progress([lost], (), "host-a", 2).unseen == why
    assert list(drain_lines(drain_progress([lost], (), "host-a", 2)))[1] == f"  {why}"
    elsewhere = [structs.replace(one, slot=B) for one in lost.publication.executors]
    left = replace(lost, publication=structs.replace(lost.publication, executors=tuple(elsewhere)))
    assert unseen([left], (), "host-a") is None, "a host that is down and empty"


def test_a_host_may_have_a_worker_of_a_topology_that_is_not_published() -> None:
    other = structs.replace(worker_ack(A, [9]), topology="other-2-2")
    acks = [node_acks("a", [worker_ack(A, [1, 2]), other], "uuid")]
    why = "a:1 is a worker of other-2-2, which Nimbus does not publish"
    assert unseen([view()], acks, "host-a") == unseen([view()], acks, "a") == why
    assert unseen([view()], acks, "host-b") is None
    lost = [node_acks("z", [other], "uuid")]
    assert unseen([view()], lost, "host-a") is None, "a host with a supervisor of its own"
    assert unseen([view()], lost, "host-z") is not None
    assert unseen([], acks, "host-a") is not None, "whose host nobody names now"


def test_a_host_is_drained_of_executors_that_talk_much_with_each_other() -> None:
    """Whichever goes first, its hops cost the host more than its own CPU."""
    places = replace(cluster((1, 1)), node_cores=np.array([2.0, 2.0]))
    talk = [(0, 1, 150_000.0), (1, 2, 150_000.0)]
    load = snapshot(["c"] * 3, [0] * 3, [0.12, 0.2, 0.12], talk)
    fit = Fit.of(places, load, Limits())
    open_to = np.array([False, True])
    assert fit.hops.tolist() == [0.0] * 3
    assert not any(fit.has_room(e, 1, np.where(open_to, fit.limit, -np.inf)) for e in range(3))
    allowed = SimpleNamespace(is_last=lambda slot, left: False, vetoes=SimpleNamespace(workers={}))
    made = SimpleNamespace(cluster=places, snapshot=load, view=SimpleNamespace(allowed=allowed))
    drained = Excluded(drained=frozenset({"n0"}))
    steps = _drain(cast(Any, made), [0, 1, 2], drained, Limits(), (), bad=())
    assert [move.executor for move in steps.moves] == ["1-1"]
    # No drain goes to a worker that starts again and again.
    steps = _drain(cast(Any, made), [0, 1, 2], drained, Limits(), (), bad=(places.workers[1],))
    assert steps.moves == ()


def test_a_drain_goes_where_nodes_have_the_memory() -> None:
    places = replace(
        cluster((1, 1, 1)),
        node_cores=np.array([2.0, 4.0, 2.0]),
        memory_mb=np.array([800.0, 300.0, 300.0]),
    )
    load = replace(snapshot(["c"] * 5, [0, 0, 0, 1, 2], 0.1), memory_mb=np.full(5, 128.0))
    allowed = SimpleNamespace(is_last=lambda slot, left: False, vetoes=SimpleNamespace(workers={}))
    made = SimpleNamespace(cluster=places, snapshot=load, view=SimpleNamespace(allowed=allowed))
    drained = Excluded(drained=frozenset({"n0"}))
    found = _drain(cast(Any, made), [0, 1, 2], drained, Limits(max_moves=9), (), bad=())
    # The largest node has CPU for all.
    assert [(move.executor, move.target) for move in found.moves] == [
        ("0-0", "n1:6700"),
        ("1-1", "n2:6700"),
    ]
    full = replace(places, memory_mb=np.array([800.0, 200.0, 200.0]))
    made = SimpleNamespace(cluster=full, snapshot=load, view=SimpleNamespace(allowed=allowed))
    found = _drain(cast(Any, made), [0], drained, Limits(), (), bad=())
    assert found.reason == (
        "0-0 fits on no worker or free slot elsewhere: node n1 has 200 MB of memory for Storm's "
        "scheduler, 128 MB are declared there, and it brings 128 MB"
    )
