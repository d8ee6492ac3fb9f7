"""Which workers lack the hooks, what keeps one from being restarted, and when it is back."""

from typing import Any

import pytest

from controller.core.stock import (
    Counted,
    cannot_adopt,
    failed_s,
    in_flight,
    placed_elsewhere,
    settles_s,
    stock_workers,
    unsettled,
    worse,
)
from controller.core.topology import TopologyView
from migration.model import Component, Node, NodeLoad, Plan, Slot, WorkerLoad
from tests.messages import START_SECS, node_acks, publication, replace, worker_ack, worker_load

A1, A2, B1 = Slot("a", 1), Slot("a", 2), Slot("b", 1)
NODES = [Node(name, f"host-{name}", 100.0, (1, 2), 1) for name in "ab"]
PLACES = {1: A1, 2: A2, 3: B1}


def view(*hooked: Slot, **changes: Any) -> TopologyView:
    """Show a topology of three workers, of which these have hooks."""
    here = {slot: [task for task, at in PLACES.items() if at == slot] for slot in hooked}
    acks = tuple(
        node_acks(name, [worker_ack(s, here[s]) for s in hooked if s.supervisor == name], "uuid")
        for name in "ab"
    )
    found = TopologyView(publication(PLACES, NODES), Plan("uuid", 1, 0, "wc-1"), acks)
    return replace(found, **changes)


def test_the_workers_in_which_agents_see_no_hooks_are_listed() -> None:
    assert [one.slot for one in stock_workers(view(A2))] == [A1, B1]
    silent = view(A2)
    silent = replace(silent, acks=silent.acks[:1])
    assert [one.slot for one in stock_workers(silent)] == [A1]


def test_a_worker_that_storm_has_changed_since_is_another() -> None:
    (before, _, _), moved = stock_workers(view()), publication({**PLACES, 2: A1}, NODES)
    assert before not in stock_workers(view(publication=moved))
    assert before in stock_workers(view(B1))


def test_nothing_is_restarted_while_storm_does_not_list_a_supervisor() -> None:
    found = view(A1, A2, B1)
    assert unsettled(found, ()) is None
    gone = replace(found, publication=publication(PLACES, NODES[:1]))
    why = unsettled(gone, ())
    assert why == "Storm does not list the supervisor of b:1, which may have just started"


def test_a_nimbus_that_places_executors_elsewhere_before_a_worker_is_back_is_named() -> None:
    def patient(timeout_s: int) -> TopologyView:
        return view(publication=publication(PLACES, NODES, worker_timeout_secs=timeout_s))

    warning = placed_elsewhere(patient(30))
    assert warning and warning.startswith("wc: Nimbus gives executors another slot after 30 s")
    assert placed_elsewhere(patient(120)) is None
    assert placed_elsewhere(view()) is None  # older hooks do not publish it


@pytest.mark.parametrize(
    ("known", "wait_s"),
    [
        ({}, 60.0),
        ({"message_timeout_secs": 45}, 90.0),
        ({"message_timeout_secs": 45, "status": "INACTIVE"}, 0.0),
    ],
)
def test_tuples_in_flight_are_replayed_within_twice_their_time_out(
    known: dict[str, Any], wait_s: float
) -> None:
    assert settles_s(view(publication=publication(PLACES, NODES, **known))) == wait_s


def test_a_restart_that_would_not_bring_the_hooks_is_refused() -> None:
    found = view()
    first = stock_workers(found)[0]
    assert cannot_adopt(found, first) is None
    stock = tuple(replace(acks, supervisor=None) for acks in found.acks)
    refusal = cannot_adopt(replace(found, acks=stock), first)
    assert refusal and refusal.startswith("the supervisor of host-a has no hooks")
    wrong = tuple(
        replace(acks, supervisor=replace(acks.supervisor, error="Storm 9")) for acks in found.acks
    )
    refusal = cannot_adopt(replace(found, acks=wrong), first)
    assert refusal == "the hooks of the supervisor of host-a move nothing: Storm 9"
    refusal = cannot_adopt(found.at(START_SECS + 20), first)
    assert refusal and "it may be starting" in refusal


def test_nothing_is_restarted_while_anything_else_is_amiss() -> None:
    assert unsettled(view(A2), {A1, B1}) is None
    assert unsettled(view(A2), {B1}) == "the worker at a:1 has not reported that it has the hooks"
    assert unsettled(view(A2, stand_back="Nimbus is away"), {A1, B1}) == "Nimbus is away"
    for status, why in (("INACTIVE", None), ("KILLED", "the topology is KILLED")):
        told = publication(PLACES, NODES, status=status)
        assert unsettled(view(A2, publication=told), {A1, B1}) == why
    more = publication({**PLACES, 4: A2}, NODES)
    late = "4-4 does not run yet in the worker at a:2"
    assert unsettled(view(A2, publication=more), {A1, B1}) == late
    placed = publication(PLACES, NODES)
    nowhere = (replace(placed.executors[0], slot=None), *placed.executors[1:])
    told = replace(placed, executors=nowhere)
    assert (
        unsettled(view(A2, publication=told), {A1, B1}) == "Storm has executors of it in no worker"
    )


def loads(*workers: WorkerLoad) -> list[NodeLoad]:
    return [NodeLoad("a", 0, workers)]


def spouts(at: WorkerLoad, acked: int, failed: int, jvm: str = "1-1") -> WorkerLoad:
    meters = {"acked_tuples": acked, "failed_tuples": failed}
    return replace(at, meters=meters, incarnation=jvm)


def test_acks_and_fails_are_of_jvms_that_were_there_before() -> None:
    first, later = worker_load(A1, [1], 10, {}), worker_load(A1, [1], 20, {})
    other = spouts(worker_load(A2, [2], 20, {}), 70, 0, "2-2")
    before = Counted.of(view(), loads(spouts(first, 100, 1)))
    now = Counted.of(view(), loads(spouts(later, 300, 4), other))
    assert now.spouts_tps(before) == (20.0, 0.3)
    assert Counted.of(view(), loads(spouts(later, 9, 0, "3-3"))).spouts_tps(before) is None
    assert Counted.of(view(), loads(later)).spouts_tps(before) is None
    assert before.spouts_tps(before) is None  # no new report


def test_a_worker_is_idle_only_where_others_are_not() -> None:
    some = {(2, 1): 5.0}
    a1, a2 = worker_load(A1, [1], 10, {}), worker_load(A2, [2], 10, {})
    before = Counted.of(view(), loads(a1, a2))
    assert not before.idle(before, A1)  # nobody has had any
    assert Counted.of(view(), loads(a1)).idle(before, A1)  # there is none to compare with
    sends = Counted.of(view(), loads(a1, worker_load(A2, [2], 20, some)))
    assert not sends.idle(before, A1)  # it has got some
    elsewhere = Counted.of(view(), loads(a1, worker_load(A2, [2], 20, {(2, 3): 5.0})))
    assert elsewhere.idle(before, A1)
    assert not elsewhere.idle(before, A2)
    folded = Counted.of(view(), loads(replace(a1, folded=((1, "bolt", 9),)), a2))
    assert not folded.idle(before, A1)


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (None, None, None),
        ((100.0, 0.0), None, None),
        (None, (100.0, 0.0), None),
        ((100.0, 0.0), (60.0, 0.0), None),
        ((100.0, 0.0), (40.0, 0.0), "40.0 tuples/s are acked, before 100.0"),
        (None, (100.0, 2.0), "2.0 tuples/s fail, before 0.0"),
        ((100.0, 3.0), (100.0, 2.0), None),
        ((0.0, 0.0), (0.0, 0.0), None),
    ],
)
def test_acks_come_as_before_and_fails_have_ended(
    before: tuple[float, float] | None, now: tuple[float, float] | None, why: str | None
) -> None:
    assert worse(before, now) == why


ACKED = (Component("spout", "spout", 1), Component("__acker", "system", 1))


def spout(time_ms: int, unacked: int = 0, queue: int = 0, component: str = "bolt") -> NodeLoad:
    """Report a spout with un-acked tuples, and the queue of another executor."""
    one = replace(worker_load(A1, [1, 4], 0, {}), time_ms=time_ms)
    one = replace(one, executor_meters={"pending_tuples": (unacked, -1)})
    other = replace(one.executors[1], queue=queue, component=component)
    return NodeLoad("a", 0, (replace(one, executors=(one.executors[0], other)),))


def test_what_is_in_flight_is_known_of_reports_that_come_later() -> None:
    told = publication(PLACES, NODES, spouts=[1], components=ACKED)
    seen_ms: dict[Slot, int] = {}

    def tuples(load: NodeLoad, **changes: Any) -> float | None:
        return in_flight(view(publication=replace(told, **changes)), [load], seen_ms)

    assert [tuples(spout(500)), tuples(spout(500))] == [None, None]
    assert tuples(spout(501)) == 0
    assert tuples(spout(501, unacked=3)) == 3
    assert tuples(spout(501, queue=30_000)) == 30_000
    assert tuples(spout(501, queue=2, component="__metrics")) == 0
    assert tuples(spout(501), components=ACKED[:1]) is None


def test_an_old_tuple_has_failed_after_two_looks_of_storm() -> None:
    told = publication(PLACES, NODES, message_timeout_secs=45, status="INACTIVE")
    assert (failed_s(view(publication=told)), failed_s(view())) == (90.0, 60.0)
