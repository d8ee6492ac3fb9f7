"""Which executors stay, and which move by a way of their own."""

from collections.abc import Mapping

from controller.core.allowed import Allowed
from migration.model import ExecutorId, ExecutorWay, PinnedExecutor, Plan, Slot, Way
from migration.observation import Observation
from tests.messages import executor, node_acks, publication, replace, worker_ack

A, B = Slot("a", 1), Slot("b", 1)
SPOUT, BOLT = executor(1), executor(2)


def pinned(*ways: ExecutorWay, speaks: int = 2, hooked: bool = True) -> Mapping[ExecutorId, str]:
    """Pin in a topology whose worker at `a` has a spout and a bolt; `b` speaks some version."""
    reasons = (PinnedExecutor(SPOUT, "a spout"), PinnedExecutor(BOLT, "windowed"))
    node = node_acks("a", [worker_ack(A, [1, 2], pinned=reasons, ways=ways)], "c")
    if not hooked:
        node = replace(node, supervisor=None)
    acks = (node, node_acks("b", [worker_ack(B, [3], speaks=speaks)], "c"))
    published = publication({1: A, 2: A, 3: B}, spouts=[1])
    return Allowed(Observation.of(published, Plan("c", 1, 1, "wc-1"), acks)).pinned


def test_what_has_no_way_of_its_own_stays_as_its_worker_says() -> None:
    assert pinned() == {SPOUT: "a spout", BOLT: "windowed"}


def test_what_has_one_is_free_where_everybody_understands_it() -> None:
    by_spout, by_drain = ExecutorWay(SPOUT, Way.SPOUT), ExecutorWay(BOLT, Way.DRAIN)
    assert pinned(by_spout) == {BOLT: "windowed"}
    assert pinned(by_spout, by_drain) == {}
    assert pinned(by_spout, by_drain, speaks=1) == pinned()
    assert pinned(by_spout, by_drain, hooked=False) == pinned()
    assert pinned(ExecutorWay(SPOUT, Way.UNKNOWN)) == pinned()


def test_before_the_hooks_are_there_they_are_all_that_a_spout_lacks() -> None:
    published = publication({1: A, 2: A}, spouts=[1])
    acks = (replace(node_acks("a", [], "c"), supervisor=None),)
    stay = Allowed(Observation.of(published, Plan("c", 1, 1, "wc-1"), acks)).pinned
    assert stay == dict.fromkeys((SPOUT, BOLT), "no hooks in its JVM")
