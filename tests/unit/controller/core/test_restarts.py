"""What starts again and again, or has just come up, is no target, and what is there stays."""

from collections.abc import Iterable

from controller.core.decision import Outcome
from controller.core.restarts import (
    JUST_UP_S,
    MOST,
    WITHIN_S,
    Starts,
    just_up,
    restarted,
    starts_each,
    up_each,
)
from controller.core.topology import TopologyView
from migration.model import Node, PlacedExecutor, Plan, Slot
from tests.messages import START_SECS, executor, node_acks, publication, worker_ack

A, B = Slot("a", 1), Slot("b", 1)
HOSTS = {"a": "host-a", "b": "host-b"}


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


def crashes(again: dict[str, int], places: dict[str, str]) -> dict[str, str]:
    """Give why workers are closed, by slot; a component is in the workers of these letters."""
    executors = tuple(
        PlacedExecutor(executor(task), name, Slot(letter, 1), START_SECS)
        for task, (name, letter) in enumerate(
            ((name, letter) for name, letters in places.items() for letter in letters), 1
        )
    )
    shown = TopologyView(publication({}, executors=executors), Plan("c", 1, 0, "wc-1"), ())
    starts = {("wc-1", Slot(at, 1)): Starts("1-1", (0.0,) * count) for at, count in again.items()}
    return {slot: veto.reason for slot, veto in restarted(shown, starts).workers.items()}


def test_a_component_that_ends_each_of_its_workers_is_named_and_all_of_them_are_closed() -> None:
    places = {"spout": "abc", "bad": "ab", "good": "ac", "__acker": "ab"}
    closed = crashes({"a": 3, "b": 1, "c": 0}, places)
    named = "; bad runs in each such worker, and in no other"
    assert closed == {
        "a:1": f"Storm has started a:1 again 3 times within 30 min{named}",
        "b:1": f"Storm has started b:1 again 1 time within 30 min{named}",
    }
    # One of its workers has kept running: then it may be the host, or the keys.
    assert [*crashes({"a": 3, "b": 0, "c": 0}, places)] == ["a:1"]
    # Where all start again, nothing points to one of them; nor where none starts often.
    assert "runs" not in str(crashes({"a": 3, "b": 1, "c": 1}, places))
    assert crashes({"a": 2, "b": 2, "c": 0}, places) == {}


def test_a_supervisor_that_has_come_up_is_left_alone_until_it_has_stayed() -> None:
    def seen_at(before: dict[str, float], nodes: str, now_s: float) -> dict[str, float]:
        known = [Node(name, f"host-{name}", 100.0, (1,), 0) for name in nodes]
        shown = TopologyView(publication({1: A}, known), Plan("c", 1, 0, "wc-1"), ())
        return up_each(before, [shown], now_s)

    up = seen_at({}, "ab", 1000.0)
    assert just_up(up, HOSTS, 1000.0) == {}  # the controller has just come up, and not they
    up = seen_at(seen_at(up, "a", 1005.0), "ab", 1010.0)
    assert [*just_up(up, HOSTS, 1010.0)] == ["b"]
    veto = just_up(up, HOSTS, 1040.0)["b"]
    assert veto.outcome is Outcome.COOLDOWN
    assert (
        veto.reason
        == "the supervisor of host-b has just come up: nothing moves there for 90 s more"
    )
    assert just_up(up, HOSTS, 1010.0 + JUST_UP_S) == {}
