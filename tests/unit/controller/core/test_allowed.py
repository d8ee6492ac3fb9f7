"""Every reason against a move, which executors stay, and the entry of a move that may be."""

import pytest
from msgspec import UNSET

from controller.core.allowed import MOST_ENTRIES, Allowed
from controller.core.decision import Outcome, Veto
from controller.core.topology import free_slots
from migration import wire
from migration.model import (
    Base,
    Component,
    Entry,
    ExecutorId,
    ExecutorWay,
    Messaging,
    Node,
    NodeAcks,
    PersistedSlot,
    Phase,
    PinnedExecutor,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
    SupervisorAck,
    Way,
    WorkerAck,
)
from migration.observation import Observation
from tests.messages import replace

A, B, SPARE = Slot("s1", 6700), Slot("s2", 6700), Slot("s2", 6701)
E1, E2, E3, E4 = (ExecutorId(i, i) for i in range(1, 5))
PUBLICATION = Publication(
    "wc", "wc", "ACTIVE", 10, (Component("b", "bolt", 4),), (),
    (
        PlacedExecutor(E1, "b", A, 100),
        PlacedExecutor(E2, "b", A, 101),
        PlacedExecutor(E3, "b", B, 102),
        PlacedExecutor(E4, "b", None, None),
    ),
    (Node("s1", "h1", 100.0, (6700,), 1), Node("s2", "h2", 100.0, (6700, 6701), 1)),
)  # fmt: skip
PLAN = Plan("c", 1, 0, "wc")


def node(slot: Slot, *executors: ExecutorId, pinned: str | None = None) -> NodeAcks:
    reasons = tuple(PinnedExecutor(executor, pinned) for executor in executors if pinned)
    worker = WorkerAck(
        "wc", slot, 1, "1-1", "0.2.0", 1, 0, "", 0, -1, executors=executors, pinned=reasons
    )
    supervisor = SupervisorAck(slot.supervisor, 1, "0.2.0", 1, 0, "c")
    return NodeAcks(slot.supervisor, 0, "0.2.0", 1, "c", (worker,), supervisor)


NODES = [node(A, E1, E2), node(B, E3)]
UNSUPERVISED = [NODES[0], replace(NODES[1], supervisor=None)]


def ask(
    executor: ExecutorId = E1,
    target: Slot = B,
    *,
    publication: Publication = PUBLICATION,
    plan: Plan = PLAN,
    nodes: list[NodeAcks] = NODES,
) -> Entry | Veto:
    return Allowed(Observation.of(publication, plan, nodes)).entry(executor, target)


def test_a_move_that_may_be() -> None:
    assert ask() == Entry("m1", E1, A, B, Phase.PREPARE, Base(A, 100))


@pytest.mark.parametrize(
    ("outcome", "said", "asked"),
    [
        ("STAND_BACK", "is INACTIVE", {"publication": replace(PUBLICATION, status="INACTIVE")}),
        ("STAND_BACK", "wc has no executor 9-9", {"executor": ExecutorId(9, 9)}),
        ("STAND_BACK", "assigned executor 4-4 to no slot", {"executor": E4}),
        ("NO_WORKER_IN_SLOT", "offers a slot s9:6700", {"target": Slot("s9", 6700)}),
        ("NO_WORKER_IN_SLOT", "offers a slot s1:6701", {"target": Slot("s1", 6701)}),
        ("NOTHING_TO_GAIN", "1-1 is at s1:6700 already", {"target": A}),
        ("NO_WORKER_IN_SLOT", "s2:6701, and it is not free", {"target": SPARE}),
        ("NO_WORKER_IN_SLOT", "the agent for s2:6700", {"nodes": [NODES[0]]}),
        ("NO_WORKER_IN_SLOT", "the agent for s1:6700", {"nodes": [NODES[1]]}),
        ("NO_WORKER_IN_SLOT", "the supervisor of s2:6700", {"nodes": UNSUPERVISED}),
        ("NO_WORKER_IN_SLOT", "s1:6700", {"nodes": [replace(one, cluster="old") for one in NODES]}),
        ("MOVE_IN_FLIGHT", "does not run executor 1-1", {"nodes": [node(A, E2), NODES[1]]}),
        ("EXCLUDED", "must stay: spout", {"nodes": [node(A, E1, pinned="spout"), NODES[1]]}),
    ],
)
def test_a_move_that_may_not_be(outcome: str, said: str, asked: dict[str, object]) -> None:
    refusal = ask(**asked)  # type: ignore[arg-type]
    assert isinstance(refusal, Veto)
    assert refusal.outcome == outcome
    assert said in refusal.reason


@pytest.mark.parametrize("void", [None, "Storm wins"])
def test_an_executor_with_an_entry_does_not_move(void: str | None) -> None:
    held = Entry("m0", E1, B, A, Phase.SETTLE, Base(B, 99), void)
    refusal = ask(plan=replace(PLAN, entries=(held,)))
    assert isinstance(refusal, Veto)
    assert refusal.outcome is Outcome.MOVE_IN_FLIGHT
    assert "m0" in refusal.reason


def test_the_last_executor_goes_where_everybody_knows_how_a_worker_ends() -> None:
    new = [speaking(one, 2) for one in NODES]
    of = replace(PUBLICATION, speaks=2)
    assert isinstance(ask(E3, A, nodes=new, publication=of), Entry)
    spare = PlacedExecutor(E4, "b", SPARE, 100)
    for nodes, published, why in (
        (NODES, of, "the agent of s1 speaks version 1"),
        (new, PUBLICATION, "Nimbus or a controller speaks version 1"),
        (new, replace(of, executors=(*of.executors[:3], spare)), "s2:6701 has not reported"),
    ):
        refusal = ask(E3, A, nodes=nodes, publication=published)
        assert isinstance(refusal, Veto)
        assert refusal.outcome is Outcome.LAST_IN_WORKER
        assert "3-3 is the last executor of s2:6700: " in refusal.reason
        assert why in refusal.reason


@pytest.mark.parametrize(
    ("entry", "last"),
    [
        (Entry("m0", E2, A, B, Phase.PREPARE, Base(A, 101)), True),
        (Entry("m0", E2, A, B, Phase.UNDO, Base(A, 101)), False),
        (Entry("m0", E2, A, B, Phase.PREPARE, Base(A, 101), "Storm wins"), False),
        (Entry("m0", E3, B, A, Phase.PREPARE, Base(B, 102)), False),
    ],
)
def test_departures_count_at_once_for_the_last_executor(entry: Entry, last: bool) -> None:
    answer = ask(plan=replace(PLAN, entries=(entry,)))
    assert isinstance(answer, Veto) is last


@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.SWITCH, Phase.DRAIN, Phase.STOP])
def test_arrivals_count_once_storm_has_absorbed_them(phase: Phase) -> None:
    coming = Entry("m0", E1, A, B, phase, Base(A, 100))
    plan = replace(PLAN, entries=(coming,))
    refusal = ask(E3, A, plan=plan)
    assert isinstance(refusal, Veto)
    assert refusal.outcome is Outcome.LAST_IN_WORKER
    placed = (PlacedExecutor(E1, "b", B, 103), *PUBLICATION.executors[1:])
    there = replace(PUBLICATION, executors=placed)
    assert isinstance(ask(E3, A, publication=there, plan=plan), Entry)


def test_a_supervisor_with_unknown_code_moves_nothing() -> None:
    odd = replace(NODES[1], supervisor=replace(NODES[1].supervisor, error="unknown code"))
    refusal = ask(nodes=[NODES[0], odd])
    assert isinstance(refusal, Veto)
    assert refusal.reason == "the supervisor of s2:6700 moves nothing: unknown code"


def test_nothing_moves_where_storms_of_two_major_versions_are() -> None:
    def with_storm(node: NodeAcks, storm: str | None) -> NodeAcks:
        return replace(node, workers=tuple(replace(one, storm=storm) for one in node.workers))

    old = with_storm(NODES[0], "2.8.3")
    assert isinstance(ask(nodes=[old, with_storm(NODES[1], None)]), Entry)
    assert isinstance(ask(nodes=[old, with_storm(NODES[1], "2.6.0")]), Entry)
    refusal = ask(nodes=[old, with_storm(NODES[1], "3.0.0")])
    assert isinstance(refusal, Veto)
    assert refusal.outcome is Outcome.STAND_BACK
    assert refusal.reason == (
        "the worker at s1:6700 runs Storm 2.8.3, and the worker at s2:6700 runs Storm 3.0.0: these "
        "do not mix"
    )


BY_SPOUT = replace(
    NODES[0], workers=(replace(NODES[0].workers[0], ways=(ExecutorWay(E1, Way.SPOUT),)),)
)


def speaking(node: NodeAcks, version: int) -> NodeAcks:
    workers = tuple(replace(worker, speaks=version) for worker in node.workers)
    supervisor = replace(node.supervisor, speaks=version)
    return replace(node, speaks=version, workers=workers, supervisor=supervisor)


@pytest.mark.parametrize(
    ("who", "named"),
    [
        ("worker", "the worker at s2:6700"),
        ("supervisor", "the supervisor s2"),
        ("agent", "the agent of s2"),
        ("nimbus", "Nimbus or a controller"),
    ],
)
def test_whoever_does_not_understand_the_way_of_the_move_is_named(who: str, named: str) -> None:
    nodes = [speaking(BY_SPOUT, 2), speaking(NODES[1], 2)]
    published = replace(PUBLICATION, speaks=2)
    moved = ask(publication=published, nodes=nodes)
    entry = Entry("m1", E1, A, B, Phase.PREPARE, Base(A, 100), way=Way.SPOUT, ordered=True)
    assert moved == entry
    old = nodes[1]
    if who == "worker":
        old = replace(old, workers=(replace(old.workers[0], speaks=1),))
    elif who == "supervisor":
        old = replace(old, supervisor=replace(old.supervisor, speaks=1))
    elif who == "agent":
        old = replace(old, speaks=1)
    else:
        published = replace(published, speaks=1)
    refusal = ask(publication=published, nodes=[nodes[0], old])
    assert isinstance(refusal, Veto)
    assert refusal.outcome is Outcome.STAND_BACK
    said = f"{named} speaks version 1 of the protocol, and a move of way spout needs 2"
    assert refusal.reason == said
    # What version 1 had is served all the same.
    assert isinstance(ask(E2, publication=published, nodes=[nodes[0], old]), Entry)


def test_a_pinned_executor_moves_by_its_way_and_by_none_that_is_not_known() -> None:
    nodes = [speaking(node(A, E1, E2, pinned="spout"), 2), speaking(NODES[1], 2)]
    published = replace(PUBLICATION, speaks=2)
    (worker,) = nodes[0].workers
    for way, outcome in ((Way.SPOUT, None), (Way.UNKNOWN, Outcome.EXCLUDED)):
        acks = replace(nodes[0], workers=(replace(worker, ways=(ExecutorWay(E1, way),)),))
        answer = ask(publication=published, nodes=[acks, nodes[1]])
        assert (answer.outcome if isinstance(answer, Veto) else None) is outcome
        other = ask(E2, publication=published, nodes=[acks, nodes[1]])
        assert isinstance(other, Veto)
        assert other.outcome is Outcome.EXCLUDED
    # A later jar that forgets to pin what it moves by a way of its own.
    acks = replace(nodes[0], workers=(replace(worker, pinned=(), ways=(ExecutorWay(E1, way),)),))
    refusal = ask(publication=published, nodes=[acks, nodes[1]])
    assert isinstance(refusal, Veto)
    assert refusal.outcome is Outcome.STAND_BACK


def later(acks: NodeAcks, speaks: int = 2) -> NodeAcks:
    assert acks.supervisor is not None
    workers = tuple(replace(worker, speaks=speaks) for worker in acks.workers)
    return replace(
        acks, speaks=speaks, workers=workers, supervisor=replace(acks.supervisor, speaks=speaks)
    )


def test_a_move_to_a_free_slot_opens_it_where_everybody_knows_how() -> None:
    def opened(nodes: list[NodeAcks], speaks: int = 2) -> Entry | Veto:
        published = replace(PUBLICATION, speaks=speaks)
        observation = Observation.of(published, PLAN, nodes)
        return Allowed(observation).entry(E1, SPARE, free={SPARE})

    nodes = [later(one) for one in NODES]
    entry = Entry("m1", E1, A, SPARE, Phase.OPEN, Base(A, 100), opens="h2", ordered=True)
    assert opened(nodes) == entry
    for old in (opened(NODES), opened(nodes, 1), opened([nodes[0], later(NODES[1], 1)])):
        assert isinstance(old, Veto)
        assert old.outcome is Outcome.STAND_BACK
        assert "a move of way live that opens a slot needs 2" in old.reason
    # A live move between workers goes on without.
    assert isinstance(ask(), Entry)
    refusal = ask(target=SPARE)
    assert isinstance(refusal, Veto)
    assert refusal.outcome is Outcome.NO_WORKER_IN_SLOT


def test_a_slot_is_free_if_nobody_has_it_and_its_node_knows_how() -> None:
    nodes = [later(one) for one in NODES]
    taken = PUBLICATION.slots
    assert free_slots(PUBLICATION.nodes, taken, nodes) == {SPARE}
    assert free_slots(PUBLICATION.nodes, {SPARE}, nodes) == {A, B}
    assert free_slots(PUBLICATION.nodes, taken, NODES) == frozenset()
    assert nodes[1].supervisor is not None
    kept = replace(nodes[1].supervisor, slots=(PersistedSlot(6701, "another", ()),))
    assert free_slots(PUBLICATION.nodes, taken, [replace(nodes[1], supervisor=kept)]) == set()
    assert free_slots(PUBLICATION.nodes, taken, [replace(nodes[1], supervisor=None)]) == set()


def test_nothing_comes_to_a_host_that_storm_holds_back() -> None:
    here, there = PUBLICATION.nodes
    bad = replace(PUBLICATION, nodes=(here, replace(there, closed="bad")), speaks=2)
    nodes = [later(one) for one in NODES]
    assert free_slots(bad.nodes, bad.slots, nodes) == set()
    allowed = Allowed(Observation.of(bad, PLAN, nodes))
    for target in (B, SPARE):
        refusal = allowed.why_not(E1, target, free={SPARE})
        assert refusal == Veto(Outcome.EXCLUDED, "nothing may come to host h2: bad")
    assert allowed.vetoes.workers[str(B)].outcome is Outcome.EXCLUDED
    # What is there may leave.
    assert allowed.why_not(E3, A) is None


def test_a_full_plan_takes_no_move_and_fits_into_a_node() -> None:
    long = f"{'u' * 36}-{'h' * 253}"
    source, target = Slot(long, 65535), Slot(long[::-1], 65535)
    entries = tuple(
        Entry(f"m99999.{i}", ExecutorId(99000 + i, 99999), source, target, Phase.PREPARE,
              Base(source, 2_000_000_000), "Storm assigned the executor elsewhere: Storm wins",
              opens="h" * 253)
        for i in range(MOST_ENTRIES)
    )  # fmt: skip
    full = replace(PLAN, entries=entries)
    assert len(wire.encode(full)) < wire.LARGEST_NODE_BYTES
    refusal = ask(plan=full)
    assert isinstance(refusal, Veto)
    assert refusal.reason == "the plan of wc has 180 moves, and no room for more"
    assert isinstance(ask(plan=replace(full, entries=entries[1:])), Entry)


@pytest.mark.parametrize("end", [A, B])
def test_a_worker_that_cannot_follow_plans_is_no_end_of_a_move(end: Slot) -> None:
    acks = {A: node(A, E1, E2), B: node(B, E3)}
    (worker,) = acks[end].workers
    acks[end] = replace(acks[end], workers=(replace(worker, error="the plan is damaged"),))
    refused = ask(nodes=list(acks.values()))
    assert isinstance(refused, Veto)
    assert refused.outcome is Outcome.STAND_BACK
    assert refused.reason == f"the worker at {end} cannot follow plans: the plan is damaged"


def guarded(acks: NodeAcks, *, has: str, due: str = "") -> NodeAcks:
    """Let the worker report what its connections have; its first executor moves by `carry`."""
    (worker,) = acks.workers
    worker = replace(
        worker,
        speaks=wire.SPEAKS,
        ways=(ExecutorWay(worker.executors[0], Way.CARRY),),
        messaging=Messaging(tuple(has.split()), tuple(due.split())),
    )
    return replace(speaking(acks, wire.SPEAKS), workers=(worker,))


@pytest.mark.parametrize(
    ("source", "target", "lacks"),
    [
        ("", "", None),
        ("sasl tls", "sasl tls", None),
        ("sasl", "", "s2:6700 runs without storm.messaging.netty.authentication"),
        ("", "sasl", "s1:6700 runs without storm.messaging.netty.authentication"),
        ("sasl", "sasl tls", "s1:6700 runs without storm.messaging.netty.tls.enable"),
        ("sasl", "sasl later", "s1:6700 runs without later"),
    ],
)
def test_state_travels_only_between_workers_that_guard_it_as_the_cluster_does(
    source: str, target: str, lacks: str | None
) -> None:
    nodes = [guarded(NODES[0], has=source), guarded(NODES[1], has=target)]
    of = replace(PUBLICATION, speaks=wire.SPEAKS)
    answer = ask(publication=of, nodes=nodes)
    if lacks is None:
        assert isinstance(answer, Entry)
        assert answer.way is Way.CARRY
    else:
        assert isinstance(answer, Veto)
        assert answer.outcome is Outcome.EXCLUDED
        assert lacks in answer.reason
    assert isinstance(ask(E2, publication=of, nodes=nodes), Entry), "live moves carry nothing"


def test_a_topology_cannot_take_away_what_the_storm_yaml_of_its_nodes_asks_for() -> None:
    nodes = [guarded(one, has="", due="sasl") for one in NODES]
    answer = ask(publication=replace(PUBLICATION, speaks=wire.SPEAKS), nodes=nodes)
    assert isinstance(answer, Veto)
    assert "s1:6700 runs without storm.messaging.netty.authentication" in answer.reason


def test_a_worker_whose_hooks_are_older_keeps_no_state_at_its_place() -> None:
    silent = guarded(NODES[1], has="")
    (worker,) = silent.workers
    silent = replace(silent, workers=(replace(worker, messaging=UNSET),))
    nodes = [guarded(NODES[0], has="sasl"), silent]
    assert isinstance(ask(publication=replace(PUBLICATION, speaks=wire.SPEAKS), nodes=nodes), Entry)
