"""What the values of a plan mean, and which values cannot be."""

import pytest

from migration import ModelError, StalePlanError
from migration.model import Base, Entry, ExecutorId, LocalPlan, Phase, Plan, Slot
from tests.messages import replace

A, B, C = Slot("s1", 6700), Slot("s2", 6701), Slot("s3", 6702)
MOVE = Entry("m1", ExecutorId(7, 7), A, B, Phase.PREPARE, Base(A, 100))


@pytest.mark.parametrize("text", ["7-7", "-1--1", "3-9"])
def test_an_executor_is_read_as_it_is_written(text: str) -> None:
    assert str(ExecutorId.parse(text)) == text


@pytest.mark.parametrize("text", ["", "7", "7-", "-7", "a-b", "9-3", "7-7-7", " 7-7", "٧-٧"])
def test_what_is_no_executor_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        ExecutorId.parse(text)


def test_a_slot_is_split_at_the_last_colon() -> None:
    assert Slot.parse("a:b::1:6700") == Slot("a:b::1", 6700)
    assert str(Slot("a:b::1", 6700)) == "a:b::1:6700"


@pytest.mark.parametrize("text", ["", "s1", ":6700", "s1:", "s1:0", "s1:65536", "s1:-1", "s1:٧"])
def test_what_is_no_slot_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        Slot.parse(text)


@pytest.mark.parametrize("phase", Phase)
def test_an_entry_counts_as_long_as_storm_assigns_as_at_its_making(phase: Phase) -> None:
    entry = replace(MOVE, phase=phase)
    assert entry.counts(A, 100)
    assert not entry.counts(A, 101)
    assert not entry.counts(C, 100)
    assert not entry.counts(None, None)
    assert not entry.counts(A, None)
    assert not replace(entry, void="rebalanced").counts(A, 100)


def test_an_entry_counts_at_its_target_from_stop_on() -> None:
    assert [p for p in Phase if replace(MOVE, phase=p).counts(B, 999)] == [Phase.STOP, Phase.SETTLE]
    assert not replace(MOVE, phase=Phase.STOP, void="rebalanced").counts(B, 999)


def test_a_plan_has_one_entry_of_an_executor_and_of_an_id() -> None:
    with pytest.raises(ModelError, match="executor 7-7"):
        Plan("c", 1, 0, "wc", (MOVE, replace(MOVE, id="m2")))
    with pytest.raises(ModelError, match="id m1"):
        Plan("c", 1, 0, "wc", (MOVE, replace(MOVE, executor=ExecutorId(8, 8))))


def test_a_local_plan_takes_newer_plans_only() -> None:
    local = LocalPlan("c").with_plan(Plan("c", 2, 5, "wc")).with_plan(Plan("c", 1, 0, "ab"))
    assert [plan.topology for plan in local.plans] == ["ab", "wc"]
    assert local.with_plan(Plan("c", 3, 0, "wc")).find("wc") == Plan("c", 3, 0, "wc")
    assert local.with_plan(Plan("c", 2, 6, "wc")).find("wc") == Plan("c", 2, 6, "wc")
    for older in (Plan("c", 2, 4, "wc"), Plan("c", 1, 99, "wc")):
        with pytest.raises(StalePlanError, match=r"held is 2\.5"):
            local.with_plan(older)


def test_a_local_plan_is_of_one_cluster() -> None:
    with pytest.raises(StalePlanError, match="cluster other"):
        LocalPlan("c").with_plan(Plan("other", 9, 9, "wc"))
