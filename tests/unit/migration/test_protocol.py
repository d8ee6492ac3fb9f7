"""Each transition of the protocol, alone: what it waits for and what it does not wait for."""

from typing import Any

import pytest

from migration import ModelError
from migration.model import (
    AppliedPlan,
    Base,
    Component,
    Entry,
    EntryAck,
    EntryState,
    ExecutorId,
    Node,
    NodeAcks,
    PersistedSlot,
    Phase,
    PlacedExecutor,
    Plan,
    PlanVersion,
    Publication,
    Slot,
    SupervisorAck,
    Timing,
    Way,
    WorkerAck,
)
from migration.protocol import HeldPlan, MoveOutcome, Step, begin, resume, step
from migration.wire import SPEAKS
from tests.messages import replace

A, B, C = (Slot(f"s{i}", 6700) for i in range(1, 4))
E7 = ExecutorId(7, 7)
TIMING = Timing()
NONE, READY, ROUTED = EntryState.NONE, EntryState.READY, EntryState.ROUTED
DRAINED, STOPPED, STUCK = EntryState.DRAINED, EntryState.STOPPED, EntryState.STUCK


def entry(phase: Phase, void: str | None = None) -> Entry:
    return Entry("m1", E7, A, B, phase, Base(A, 100), void)


def held_plan(phase: Phase, void: str | None = None) -> HeldPlan:
    """Return a plan that this leader took over at second 0, at version 3.17."""
    return resume(Plan("c", 3, 17, "wc", (entry(phase, void),)), 3, 0.0)


def publication(at: Slot | None = A, start: int = 100, **changes: object) -> Publication:
    others = [(1, A), (2, B), (3, C)]
    placed = tuple(
        PlacedExecutor(ExecutorId(task, task), "bolt", slot, 100) for task, slot in others
    )
    made = Publication(
        "wc", "wc", "ACTIVE", 10,
        (Component("bolt", "bolt", 4),), (),
        (*placed, PlacedExecutor(E7, "bolt", at, start)),
        tuple(Node(slot.supervisor, "h", 100.0, (6700,), 1) for slot in (A, B, C)),
    )  # fmt: skip
    return replace(made, **changes)


def node(
    slot: Slot,
    state: EntryState = NONE,
    *,
    version: int = 17,
    assigned: Slot | None = A,
    keeps: tuple[ExecutorId, ...] = (),
    incarnation: str = "1-1",
    cluster: str = "c",
    supervisor_version: int = 17,
) -> NodeAcks:
    worker = WorkerAck(
        "wc",
        slot,
        1,
        incarnation,
        "0.2.0",
        1,
        0,
        cluster,
        3,
        version,
        (EntryAck("m1", state, assigned),),
    )
    kept = (PersistedSlot(6700, "wc", keeps),)
    read = (AppliedPlan("wc", 3, supervisor_version),)
    supervisor = SupervisorAck(slot.supervisor, 1, "0.2.0", 1, 0, cluster, read, kept)
    return NodeAcks(slot.supervisor, 0, "0.2.0", 1, cluster, (worker,), supervisor)


def empty(slot: Slot) -> NodeAcks:
    """Return the report of an agent whose node has no hooked worker."""
    return replace(node(slot), workers=())


def standing(slot: Slot) -> NodeAcks:
    """Return the report of an agent whose worker is there, but silent: paused, or collecting."""
    return replace(empty(slot), silent=(slot,))


def deaf(acks: NodeAcks) -> NodeAcks:
    """Return the report of an agent whose worker cannot read plans, as it has not for a while."""
    (worker,) = acks.workers
    return replace(acks, workers=(replace(worker, version=3, entries=(), error="unreadable"),))


def stock(acks: NodeAcks) -> NodeAcks:
    """Return the report of an agent whose supervisor is without the hooks, or away."""
    return replace(acks, supervisor=None)


def look(held: HeldPlan, *acks: NodeAcks, at: float = 0.1, of: Publication | None = None) -> Step:
    return step(held, of or publication(), acks, at, TIMING)


def phase(result: Step) -> Phase | None:
    assert result.plan is not None, "nothing has changed"
    return result.plan.entries[0].phase if result.plan.entries else None


def test_a_move_begins_in_prepare_and_is_the_next_version() -> None:
    held = resume(Plan("c", 2, 16, "wc"), 3, 5.0)
    result = begin(held, [entry(Phase.PREPARE)], 6.0)
    assert result.plan == Plan("c", 3, 17, "wc", (entry(Phase.PREPARE),))
    assert result.held_plan.plan == result.plan
    assert result.held_plan.progress[0].written == PlanVersion(3, 17)
    with pytest.raises(ModelError):
        begin(result.held_plan, [replace(entry(Phase.PREPARE), id="m2")], 7.0)


def test_prepare_waits_for_the_target() -> None:
    result = look(held_plan(Phase.PREPARE), node(A), node(B))
    assert result.plan is None and result.finished == () and result.events == ()
    result = look(held_plan(Phase.PREPARE), node(A), node(B, READY))
    assert phase(result) is Phase.SWITCH
    assert result.plan == Plan("c", 3, 18, "wc", (entry(Phase.SWITCH),))
    assert [(e.name, e.next, e.phase_s) for e in result.events] == [("target_ready", "SWITCH", 0.1)]


def speaking(state: EntryState) -> NodeAcks:
    """Return what is reported of a source of today's version of the protocol."""
    acks = node(A, state)
    return replace(acks, workers=(replace(acks.workers[0], speaks=SPEAKS),))


def test_a_live_move_waits_until_its_source_has_looked_what_its_bolt_remembers() -> None:
    held = held_plan(Phase.PREPARE)
    assert look(held, speaking(NONE), node(B, READY)).plan is None
    assert look(held, speaking(READY), node(B)).plan is None
    assert phase(look(held, speaking(READY), node(B, READY))) is Phase.SWITCH
    refused = look(held, speaking(EntryState.REFUSED), node(B, READY))
    assert phase(refused) is Phase.UNDO
    reason = refused.held_plan.progress[0].undo_reason
    assert reason == "the source's bolt remembers something since it was prepared"


def test_an_answer_to_an_older_plan_does_not_count() -> None:
    assert look(held_plan(Phase.PREPARE), node(A), node(B, READY, version=16)).plan is None


def test_an_answer_from_another_lineage_does_not_count() -> None:
    result = look(held_plan(Phase.PREPARE), node(A), node(B, READY, cluster="older"))
    assert phase(result) is Phase.UNDO


def test_what_a_jvm_has_read_of_another_lineage_does_not_count() -> None:
    """Its epochs may be higher, so a plan of this cluster would look read."""
    old = node(B, READY)
    old = replace(old, workers=(replace(old.workers[0], cluster="older", epoch=9),))
    assert look(held_plan(Phase.PREPARE), node(A), old).plan is None
    kept = node(B, ROUTED)
    assert kept.supervisor is not None
    unread = replace(kept, supervisor=replace(kept.supervisor, cluster="older"))
    assert look(held_plan(Phase.DRAIN), node(A, DRAINED), unread).plan is None


def test_prepare_has_its_limit() -> None:
    acks = (node(A), node(B))
    assert look(held_plan(Phase.PREPARE), *acks, at=19.9).plan is None
    result = look(held_plan(Phase.PREPARE), *acks, at=20.0)
    assert phase(result) is Phase.UNDO
    late = "not all that the move needs was ready in time"
    assert result.held_plan.progress[0].undo_reason == f"{late}: the copy of {B}"


def test_who_was_missing_is_named_and_nobody_else() -> None:
    """A copy that is ready is not blamed for a supervisor that has not read the plan."""
    spout = replace(entry(Phase.PREPARE), way=Way.SPOUT)
    held = resume(Plan("c", 3, 17, "wc", (spout,)), 3, 0.0)
    undone = look(held, node(A), node(B, READY, supervisor_version=16), at=20.0)
    late = "not all that the move needs was ready in time"
    assert undone.events[0].reason == f"{late}: the supervisor of {B}"
    lost = look(held_plan(Phase.PREPARE), node(A), empty(B))
    assert lost.events[0].reason.endswith(f": the worker at {B}")


def test_a_copy_that_awaits_its_state_is_not_blamed() -> None:
    carry = replace(entry(Phase.PREPARE), way=Way.CARRY)
    held = resume(Plan("c", 3, 17, "wc", (carry,)), 3, 0.0)
    target = node(B)
    (worker,) = target.workers
    awaits = EntryAck("m1", NONE, A, awaits_ahead=True)
    target = replace(target, workers=(replace(worker, entries=(awaits,)),))
    late = "not all that the move needs was ready in time"
    assert look(held, node(A), target, at=20.0).events[0].reason == f"{late}: what {A} sends ahead"


@pytest.mark.parametrize("acks", [(node(A, ROUTED),), (node(B, READY),), (node(A), empty(B))])
def test_prepare_is_undone_without_an_end(acks: tuple[NodeAcks, ...]) -> None:
    assert phase(look(held_plan(Phase.PREPARE), *acks)) is Phase.UNDO


@pytest.mark.parametrize(
    "acks", [(node(A, ROUTED), empty(B)), (empty(A), node(B, ROUTED)), (empty(A), empty(B))]
)
def test_switch_is_undone_when_an_end_is_dead(acks: tuple[NodeAcks, ...]) -> None:
    result = look(held_plan(Phase.SWITCH), *acks)
    assert phase(result) is Phase.UNDO
    assert result.events[0].name == "end_dead"


@pytest.mark.parametrize(
    "acks",
    [
        (),
        (node(A, ROUTED),),
        (node(B, READY),),
        (empty(A),),
        (empty(B),),
        (node(A, ROUTED, version=16), empty(B)),
        (node(A, version=16), node(B, READY)),
        (node(A, ROUTED), node(B, READY, version=16)),
        (node(A, ROUTED), standing(B)),
        (standing(A), node(B, ROUTED)),
    ],
)
def test_switch_waits_without_limit_for_an_end_that_has_not_answered(
    acks: tuple[NodeAcks, ...],
) -> None:
    assert look(held_plan(Phase.SWITCH), *acks, at=1e6).plan is None


def test_switch_goes_on_when_all_have_routed() -> None:
    ends = (node(A, ROUTED), node(B, ROUTED))
    assert phase(look(held_plan(Phase.SWITCH), *ends, node(C, ROUTED))) is Phase.DRAIN
    assert look(held_plan(Phase.SWITCH), *ends, node(C)).plan is None
    assert (
        look(held_plan(Phase.SWITCH), node(A, ROUTED), node(B, READY), node(C, ROUTED)).plan is None
    )
    assert look(held_plan(Phase.SWITCH), node(A), node(B, ROUTED), node(C, ROUTED)).plan is None


def test_a_source_that_was_restarted_has_nothing_left_to_route() -> None:
    acks = (node(A, STOPPED), node(B, ROUTED), node(C, ROUTED))
    assert phase(look(held_plan(Phase.SWITCH), *acks)) is Phase.DRAIN


def test_bystanders_are_awaited_for_two_seconds_from_when_both_ends_route() -> None:
    early = look(held_plan(Phase.SWITCH), node(A), node(B, ROUTED), node(C), at=1.0)
    acks = (node(A, ROUTED), node(B, ROUTED), node(C))
    first = look(early.held_plan, *acks, at=2.5)
    assert first.plan is None
    second = look(first.held_plan, *acks, at=4.4)
    assert second.plan is None
    assert phase(look(second.held_plan, *acks, at=4.5)) is Phase.DRAIN


def test_a_bystander_without_hooks_or_with_a_silent_agent_is_not_awaited() -> None:
    acks = (node(A, ROUTED), node(B, ROUTED))
    assert phase(look(held_plan(Phase.SWITCH), *acks)) is Phase.DRAIN
    assert phase(look(held_plan(Phase.SWITCH), *acks, empty(C))) is Phase.DRAIN


def test_switch_has_its_limit() -> None:
    acks = (node(A, ROUTED), node(B, READY), node(C, ROUTED))
    assert look(held_plan(Phase.SWITCH), *acks, at=4.9).plan is None
    assert phase(look(held_plan(Phase.SWITCH), *acks, at=5.0)) is Phase.UNDO


def test_a_target_that_was_restarted_while_switching_is_undone() -> None:
    ready = look(held_plan(Phase.PREPARE), node(A), node(B, READY))
    acks = (node(A, ROUTED, version=18), node(B, ROUTED, version=18, incarnation="2-2"))
    result = look(ready.held_plan, *acks, at=0.2)
    assert phase(result) is Phase.UNDO
    assert result.events[0].name == "target_restarted"


def test_a_target_that_was_restarted_while_preparing_may_still_get_ready() -> None:
    held = look(held_plan(Phase.PREPARE), node(A), node(B)).held_plan
    ready = look(held, node(A), node(B, READY, incarnation="2-2"))
    assert phase(ready) is Phase.SWITCH
    acks = (node(A, ROUTED, version=18), node(B, ROUTED, version=18, incarnation="2-2"))
    assert phase(look(ready.held_plan, *acks)) is Phase.DRAIN


@pytest.mark.parametrize("state", [DRAINED, STOPPED])
def test_drain_ends_with_the_queue(state: EntryState) -> None:
    result = look(held_plan(Phase.DRAIN), node(A, state), node(B, ROUTED))
    assert phase(result) is Phase.STOP
    assert result.events[0].name == "drained"


def test_drain_ends_by_lazy_kill_and_says_so() -> None:
    acks = (node(A, ROUTED), node(B, ROUTED))
    assert look(held_plan(Phase.DRAIN), *acks, at=1.9).plan is None
    result = look(held_plan(Phase.DRAIN), *acks, at=2.0)
    assert phase(result) is Phase.STOP
    assert result.events[0].name == "limit"


@pytest.mark.parametrize("state", [ROUTED, DRAINED])
@pytest.mark.parametrize("at", [0.1, 2.0])
def test_drain_is_undone_while_only_the_source_lives(state: EntryState, at: float) -> None:
    result = look(held_plan(Phase.DRAIN), node(A, state), empty(B), at=at)
    assert phase(result) is Phase.UNDO
    assert result.events[0].name == "target_dead"


@pytest.mark.parametrize("a", [node(A, STOPPED), empty(A)])
def test_drain_of_a_source_without_a_copy_is_not_undone(a: NodeAcks) -> None:
    assert phase(look(held_plan(Phase.DRAIN), a, empty(B), at=2.0)) is Phase.STOP


def test_drain_is_not_undone_for_a_target_that_is_silent() -> None:
    assert look(held_plan(Phase.DRAIN), node(A, DRAINED), at=1e6).plan is None
    old = node(A, DRAINED, version=16)
    assert look(held_plan(Phase.DRAIN), old, empty(B), at=1.0).plan is None


@pytest.mark.parametrize(
    "acks",
    [
        (node(A, DRAINED, supervisor_version=16), node(B, ROUTED)),
        (node(A, DRAINED), node(B, ROUTED, supervisor_version=16)),
        (node(A, DRAINED), stock(node(B, ROUTED))),
    ],
)
def test_drain_waits_for_the_supervisors_and_is_undone_without_them(
    acks: tuple[NodeAcks, ...],
) -> None:
    assert look(held_plan(Phase.DRAIN), *acks, at=29.9).plan is None
    result = look(held_plan(Phase.DRAIN), *acks, at=30.0)
    assert phase(result) is Phase.UNDO
    assert result.events[0].name == "unsupervised"


def test_a_supervisor_need_not_have_read_more_than_the_entry() -> None:
    held = begin(resume(Plan("c", 3, 16, "wc"), 3, 0.0), [entry(Phase.PREPARE)], 0.0).held_plan
    acks = [node(A, DRAINED, version=20), node(B, ROUTED, version=20)]
    for _ in range(2):
        held = look(held, node(A, ROUTED, version=20), node(B, ROUTED, version=20)).held_plan
    assert held.plan.entries[0].phase is Phase.DRAIN
    assert phase(look(held, *acks)) is Phase.STOP


def test_drain_goes_on_without_the_source() -> None:
    assert phase(look(held_plan(Phase.DRAIN), empty(A), node(B, ROUTED), at=2.0)) is Phase.STOP


def test_stop_waits_without_limit() -> None:
    acks = (node(A, DRAINED), node(B, ROUTED))
    assert look(held_plan(Phase.STOP), *acks, at=1e6).plan is None
    assert phase(look(held_plan(Phase.STOP), node(A, STOPPED), node(B, ROUTED))) is Phase.SETTLE


def test_a_stuck_source_is_reported_once_and_awaited() -> None:
    acks = (node(A, STUCK), node(B, ROUTED))
    first = look(held_plan(Phase.STOP), *acks)
    assert first.plan is None
    assert [event.name for event in first.events] == ["stuck"]
    second = look(first.held_plan, *acks, at=9.0)
    assert second.plan is None and second.events == ()


def alone(*others: Entry) -> tuple[HeldPlan, Publication]:
    """Return a move in STOP of the only executor at its source."""
    plan = Plan("c", 3, 17, "wc", (entry(Phase.STOP), *others))
    placed = tuple(one for one in publication().executors if one.executor != ExecutorId(1, 1))
    return resume(plan, 3, 0.0), replace(publication(), executors=placed)


def test_a_worker_is_emptied_when_nobody_has_sent_to_it_for_a_while() -> None:
    held, of = alone()
    for state, at in ((NONE, 9.0), (ROUTED, 10.0), (NONE, 12.0), (ROUTED, 20.0), (ROUTED, 24.9)):
        acks = (node(A, STOPPED), node(B, ROUTED), node(C, state))
        result = look(held, *acks, at=at, of=of)
        assert result.plan is None
        held = result.held_plan
    assert phase(look(held, *acks, at=25.0, of=of)) is Phase.SETTLE
    # It may still hand something on, and a silent worker may still send to it.
    for waits in ((node(A, ROUTED), *acks[1:]), acks[:2]):
        assert look(held, *waits, at=25.0, of=of).plan is None


def test_a_worker_that_dies_while_it_is_emptied_is_awaited_for_two_minutes() -> None:
    held, of = alone()
    acks = (empty(A), node(B, ROUTED), node(C))
    assert look(held, *acks, at=119.9, of=of).plan is None
    assert phase(look(held, *acks, at=120.0, of=of)) is Phase.SETTLE


def test_a_worker_that_is_to_get_another_executor_is_not_emptied() -> None:
    coming = Entry("m2", ExecutorId(2, 2), B, A, Phase.SWITCH, Base(B, 100))
    held, of = alone(coming)
    acks = (node(A, STOPPED), node(B, ROUTED), node(C, ROUTED))
    for at in (1.0, 9.0):
        result = look(held, *acks, at=at, of=of)
        assert result.held_plan.plan.entries[0].phase is Phase.STOP
        held = result.held_plan


def test_stop_ends_where_storm_has_ended_the_source() -> None:
    gone = publication(B)
    kept = tuple(placed for placed in gone.executors if placed.slot != A)
    result = look(held_plan(Phase.STOP), node(B, ROUTED), of=replace(gone, executors=kept))
    assert phase(result) is Phase.SETTLE


def test_stop_counts_a_source_without_hooks_two_polls_after_absorption() -> None:
    acks = (empty(A), node(B, ROUTED))
    first = look(held_plan(Phase.STOP), *acks, at=100.0)
    assert first.plan is None
    second = look(first.held_plan, *acks, at=200.0, of=publication(B))
    assert second.plan is None
    third = look(second.held_plan, *acks, at=219.9, of=publication(B))
    assert third.plan is None
    assert phase(look(third.held_plan, *acks, at=220.0, of=publication(B))) is Phase.SETTLE


def settled(**changes: NodeAcks) -> list[NodeAcks]:
    acks = {
        "a": node(A, STOPPED, assigned=B),
        "b": node(B, ROUTED, assigned=B, keeps=(E7,)),
        "c": node(C, ROUTED, assigned=B),
    }
    return list((acks | changes).values())


def test_settle_ends_when_everybody_has_read_it() -> None:
    result = look(held_plan(Phase.SETTLE), *settled(), of=publication(B))
    assert result.plan == Plan("c", 3, 18, "wc")
    assert result.held_plan == HeldPlan(result.plan, 3)
    assert [(left.outcome, left.duration_s) for left in result.finished] == [
        (MoveOutcome.MOVED, None)
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"a": node(A, STOPPED, assigned=B, keeps=(E7,))},
        {"b": node(B, ROUTED, assigned=B)},
        {"a": node(A, STOPPED, assigned=A)},
        {"b": node(B, ROUTED, assigned=A, keeps=(E7,))},
        {"c": node(C, ROUTED, assigned=A)},
        {"c": node(C, ROUTED, assigned=None)},
        {"c": node(C, ROUTED, assigned=B, version=16)},
        {"c": empty(C)},
        {"a": stock(node(A, STOPPED, assigned=B))},
    ],
    ids=lambda changes: str(sorted(changes)),
)
def test_settle_waits_for_each(changes: dict[str, NodeAcks]) -> None:
    assert look(held_plan(Phase.SETTLE), *settled(**changes), of=publication(B)).plan is None


def test_settle_waits_for_nimbus() -> None:
    assert look(held_plan(Phase.SETTLE), *settled(), of=publication(A), at=1e6).plan is None


def test_settle_counts_a_bystander_without_hooks_two_polls_after_absorption() -> None:
    acks = settled(c=empty(C))
    held = look(held_plan(Phase.SETTLE), *acks, at=50.0, of=publication(B)).held_plan
    assert look(held, *acks, at=69.9, of=publication(B)).plan is None
    assert phase(look(held, *acks, at=70.0, of=publication(B))) is None


def test_settle_does_not_wait_for_a_bystander_that_cannot_read_plans() -> None:
    acks = settled(c=deaf(node(C, ROUTED)))
    held = look(held_plan(Phase.SETTLE), *acks, at=50.0, of=publication(B)).held_plan
    assert look(held, *acks, at=69.9, of=publication(B)).plan is None
    assert phase(look(held, *acks, at=70.0, of=publication(B))) is None


def test_settle_counts_an_end_whose_supervisor_is_gone() -> None:
    gone = publication(B)
    gone = replace(
        gone,
        nodes=tuple(one for one in gone.nodes if one.id != A.supervisor),
        executors=tuple(placed for placed in gone.executors if placed.slot != A),
    )
    acks = settled()[1:]
    assert phase(look(held_plan(Phase.SETTLE), *acks, of=gone)) is None
    still = replace(gone, executors=publication(B).executors)
    assert look(held_plan(Phase.SETTLE), *acks, of=still).plan is None


def test_undo_ends_when_all_route_back_and_the_new_copy_is_gone() -> None:
    acks = (node(A, ROUTED), node(B, STOPPED), node(C, ROUTED))
    result = look(held_plan(Phase.UNDO), *acks)
    assert phase(result) is None
    assert [(left.outcome, left.reason) for left in result.finished] == [
        (MoveOutcome.UNDONE, "an earlier leader undid it")
    ]


@pytest.mark.parametrize(
    "acks",
    [
        (node(A, NONE), node(B, STOPPED), node(C, ROUTED)),
        (node(A, ROUTED), node(B, ROUTED), node(C, ROUTED)),
        (node(A, ROUTED), node(B, STOPPED), node(C, NONE)),
        (node(A, ROUTED), node(B, STOPPED, version=16), node(C, ROUTED)),
        (node(A, ROUTED), node(C, ROUTED)),
        (node(B, STOPPED), node(C, ROUTED)),
        (deaf(node(A, ROUTED)), node(B, STOPPED), node(C, ROUTED)),
        (node(A, ROUTED), deaf(node(B, STOPPED)), node(C, ROUTED)),
        (node(A, ROUTED), standing(B), node(C, ROUTED)),
    ],
)
def test_undo_waits_for_each_without_limit(acks: tuple[NodeAcks, ...]) -> None:
    assert look(held_plan(Phase.UNDO), *acks, at=1e6).plan is None


def test_undo_does_not_wait_for_a_bystander_that_cannot_read_plans() -> None:
    acks = (node(A, ROUTED), node(B, STOPPED), deaf(node(C, ROUTED)))
    assert phase(look(held_plan(Phase.UNDO), *acks)) is None


def test_undo_does_not_wait_for_a_copy_that_died_with_its_jvm() -> None:
    assert phase(look(held_plan(Phase.UNDO), node(A, ROUTED), empty(B), node(C, ROUTED))) is None


def test_the_reason_of_an_undo_is_told_at_its_end_with_its_time() -> None:
    held = begin(resume(Plan("c", 3, 16, "wc"), 3, 0.0), [entry(Phase.PREPARE)], 1.0).held_plan
    undone = look(held, node(A), node(B), at=21.0)
    acks = (node(A, ROUTED, version=18), node(B, STOPPED, version=18))
    (left,) = look(undone.held_plan, *acks, at=22.0).finished
    assert left.reason == f"not all that the move needs was ready in time: the copy of {B}"
    assert left.duration_s == 21.0


@pytest.mark.parametrize("which", [phase for phase in Phase if phase is not Phase.UNKNOWN])
@pytest.mark.parametrize(
    "word",
    [publication(C), publication(A, start=101), publication(None), publication(executors=())],
    ids=["elsewhere", "restarted", "unassigned", "no such executor"],
)
def test_storm_wins(which: Phase, word: Publication) -> None:
    acks = (node(A, STOPPED), node(B, STOPPED), node(C))
    result = look(held_plan(which), *acks, of=word)
    assert result.plan is not None
    (void,) = result.plan.entries
    assert void == entry(which, "Storm assigned the executor elsewhere: Storm wins")


def test_a_void_stays_void_until_both_ends_have_read_it() -> None:
    held = held_plan(Phase.SWITCH, "Storm wins")
    assert look(held, node(A), node(B, version=16)).plan is None
    assert look(held, node(A, version=16), node(B)).plan is None
    assert look(held, node(B)).plan is None, "A's agent is silent"
    result = look(held, node(A), node(B))
    assert phase(result) is None
    assert [(left.outcome, left.reason) for left in result.finished] == [
        (MoveOutcome.VOID, "Storm wins")
    ]


def test_a_void_does_not_wait_for_jvms_that_are_not_there() -> None:
    held = held_plan(Phase.SWITCH, "Storm wins")
    assert phase(look(held, empty(A), empty(B))) is None
    elsewhere = tuple(p for p in publication(C).executors if p.slot == C)
    assert phase(look(held, of=publication(executors=elsewhere))) is None


@pytest.mark.parametrize("status", ["INACTIVE", "REBALANCING", "KILLED"])
def test_nothing_is_written_while_a_topology_is_not_active(status: str) -> None:
    acks = (node(A), node(B, READY))
    result = look(held_plan(Phase.PREPARE), *acks, at=100.0, of=publication(C, status=status))
    assert result.plan is None
    # Its full time again: what is judged then is not what was late before.
    assert look(result.held_plan, node(A), node(B), at=119.0).plan is None
    assert phase(look(result.held_plan, node(A), node(B), at=120.0)) is Phase.UNDO


@pytest.mark.parametrize("status", ["INACTIVE", "REBALANCING", "KILLED"])
def test_nothing_stands_still_while_a_topology_is_not_active(status: str) -> None:
    """It did for the whole wait of a `rebalance -w`."""
    of = publication(status=status)
    quiet = look(held_plan(Phase.QUIET), node(A, ROUTED), node(B, READY), of=of)
    assert phase(quiet) is Phase.UNDO
    assert quiet.events[0].name == "inactive"
    carry = resume(Plan("c", 3, 17, "wc", (replace(entry(Phase.CARRY), way=Way.CARRY),)), 3, 0.0)
    loaded = EntryState.LOADED
    assert phase(look(carry, node(A, DRAINED), node(B, loaded), of=of)) is Phase.STOP
    late = look(carry, node(A, DRAINED), node(B, ROUTED), at=20.0, of=of)
    assert phase(late) is Phase.RECALL
    acks = (node(A, DRAINED, version=18), node(B, ROUTED, version=18))
    assert phase(look(late.held_plan, *acks, at=20.1, of=of)) is Phase.UNDO


def test_a_new_leader_starts_the_limits_anew_and_writes_under_its_epoch() -> None:
    held = resume(Plan("c", 3, 17, "wc", (entry(Phase.PREPARE),)), 4, 1000.0)
    assert look(held, node(A), node(B), at=1019.0).plan is None
    result = look(held, node(A), node(B), at=1020.0)
    assert result.plan is not None
    assert result.plan.stamp == PlanVersion(4, 18)


def test_several_moves_advance_in_one_write() -> None:
    other = Entry("m2", ExecutorId(1, 1), A, C, Phase.DRAIN, Base(A, 100))
    held = resume(Plan("c", 3, 17, "wc", (entry(Phase.PREPARE), other)), 3, 0.0)
    result = look(held, node(A), node(B, READY), node(C), at=3.0)
    assert result.plan is not None
    assert [one.phase for one in result.plan.entries] == [Phase.SWITCH, Phase.STOP]
    assert [one.since_s for one in result.held_plan.progress] == [3.0, 3.0]


def test_the_newest_word_of_a_slot_counts_while_an_old_jvm_dies() -> None:
    dying = node(B, READY, incarnation="1-1").workers[0]
    young = replace(dying, incarnation="2-2", time_ms=5, entries=())
    acks = NodeAcks(B.supervisor, 0, "0.2.0", 1, "c", (young, dying))
    assert look(held_plan(Phase.PREPARE), node(A), acks).plan is None


@pytest.mark.parametrize("later", [{"phase": Phase.UNKNOWN}, {"way": Way.UNKNOWN}])
def test_what_is_of_a_later_version_keeps_the_whole_plan_as_it_is(later: dict[str, Any]) -> None:
    plan = held_plan(Phase.STOP)
    entries = tuple(replace(entry, **later) for entry in plan.plan.entries)
    plan = replace(plan, plan=replace(plan.plan, entries=entries))
    for word in (publication(), publication(C), publication(None)):
        result = look(plan, node(A, STOPPED), node(B, STOPPED), node(C), of=word)
        assert (result.plan, result.events, result.finished) == (None, (), ())
        assert result.held_plan.plan == plan.plan
