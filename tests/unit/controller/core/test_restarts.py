"""A worker that starts again and again is no target, and what is there stays."""

from collections.abc import Iterable

from controller.core.decision import Outcome
from controller.core.restarts import MOST, WITHIN_S, Starts, restarted, starts_each
from controller.core.topology import TopologyView
from migration.model import Plan, Slot
from tests.messages import node_acks, publication, worker_ack

A, B = Slot("a", 1), Slot("b", 1)


def view(jvm: str | None) -> TopologyView:
    """Show two workers, of which the first has this JVM, or none now."""
    workers = [worker_ack(A, [1], incarnation=jvm)] if jvm else []
    acks = (node_acks("a", workers, "c"), node_acks("b", [worker_ack(B, [2])], "c"))
    return TopologyView(publication({1: A, 2: B}), Plan("c", 1, 0, "wc-1"), acks)


def seen(jvms: Iterable[str | None], apart_s: float) -> dict[tuple[str, Slot], Starts]:
    found: dict[tuple[str, Slot], Starts] = {}
    for n, jvm in enumerate(jvms):
        found = starts_each(found, [view(jvm)], n * apart_s)
    return found


def test_what_starts_a_third_time_again_is_closed_and_held() -> None:
    jvms = ["1-1", None, "2-2", "2-2", None, "3-3", None, "4-4"]
    found = seen(jvms, 60.0)
    assert len(found["wc-1", A].again_s) == MOST + 1
    vetoes = restarted(view("4-4"), found)
    assert [*vetoes.workers] == ["a:1"]
    assert [*vetoes.executors] == ["1-1"]
    why = "Storm has started a:1 again 3 times within 30 min"
    assert vetoes.workers["a:1"].outcome is Outcome.EXCLUDED
    assert vetoes.workers["a:1"].reason == vetoes.executors["1-1"].reason == why
    # One that is away now is no better.
    assert restarted(view(None), starts_each(found, [view(None)], 600.0)) == vetoes


def test_a_restart_or_two_are_those_of_an_operator() -> None:
    assert restarted(view("3-3"), seen(["1-1", "2-2", "3-3"], 60.0)).workers == {}


def test_what_was_long_ago_is_forgotten_and_so_is_a_worker_that_storm_took_away() -> None:
    rare = seen(["1-1", "2-2", "3-3", "4-4", "5-5"], WITHIN_S / 2)
    assert restarted(view("5-5"), rare).workers == {}
    gone = TopologyView(publication({2: B}), Plan("c", 1, 0, "wc-1"), view(None).acks)
    assert [*starts_each(rare, [gone], 0.0)] == [("wc-1", B)]
