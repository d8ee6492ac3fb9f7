"""What the tries of tests/chaos conclude about a cluster, without one."""

from collections import Counter

import pytest

from deploy.lab.ledger import Totals
from migration.model import ExecutorId
from tests.chaos.judge import Expected, Seen, Window, judge
from tests.chaos.stand import misplaced
from tests.chaos.threads import catches_quit, executors
from tests.chaos.tries import EITHER
from tests.messages import replace

DUMP = """0
2026-01-01 00:00:00
Full thread dump OpenJDK 64-Bit Server VM (17.0.1+1 mixed mode, sharing):

"main" #1 prio=5 os_prio=0 cpu=1.0ms elapsed=9.0s tid=0x01 nid=0x1 waiting on condition  [0x0]
\tat a.b.c("Thread-9-no-executor[9, 9]" )
"Thread-7-count-executor[3, 3]" #30 prio=5 os_prio=0 cpu=1.0ms elapsed=9.0s tid=0x03 nid=0x3
"Thread-8-__acker-executor[1, 1]" #31 daemon prio=5 os_prio=0 cpu=1.0ms tid=0x04 nid=0x4
"Thread-9-two-words-executor[12, 14]" #32 daemon prio=5 os_prio=0 cpu=1.0ms tid=0x05 nid=0x5
"Thread-11-two-words-executor[12, 14]" #34 daemon prio=5 os_prio=0 cpu=1.0ms tid=0x07 nid=0x7
"Thread-10-__system-executor[-1, -1]" #33 daemon prio=5 os_prio=0 cpu=1.0ms tid=0x06 nid=0x6
"""
WINDOW = Window(emitted=600, acked=600, failed=0, words_emitted=3000, words_counted=3000)
WELL = Seen(outcome="MOVED", recovered_s=1.0, window=WINDOW, next_move="MOVED")
A, B = ExecutorId(1, 1), ExecutorId(2, 2)


def test_a_dump_shows_the_copies_of_each_executor() -> None:
    assert executors(DUMP) == {ExecutorId(1, 1): 1, ExecutorId(3, 3): 1, ExecutorId(12, 14): 2}


def test_a_jvm_that_starts_is_not_asked() -> None:
    assert catches_quit("Name:\tjava\nSigCgt:\t0000000000000004\n")
    assert not catches_quit("Name:\tjava\nSigCgt:\tfffffffffffffffb\n")
    assert not catches_quit("")


def test_one_live_copy_where_it_is_wanted() -> None:
    wanted = {A: "x:1", B: "y:1"}
    assert misplaced(wanted, {"x:1": Counter({A: 1}), "y:1": Counter({B: 1})}) is None


@pytest.mark.parametrize(
    ("copies", "said"),
    [
        ({"x:1": Counter({A: 1, B: 1}), "y:1": Counter({B: 1})}, "2-2 lives x:1, y:1"),
        ({"x:1": Counter({A: 2}), "y:1": Counter({B: 1})}, "1-1 lives x:1, x:1"),
        ({"x:1": Counter({A: 1}), "y:1": Counter()}, "2-2 lives nowhere"),
        ({"x:1": Counter({A: 1, B: 1})}, "2-2 lives x:1; Nimbus has it at y:1"),
        (
            {"x:1": Counter({A: 1}), "y:1": Counter({B: 1, ExecutorId(3, 3): 1})},
            "3-3 lives y:1; Nimbus has it at None",
        ),
    ],
)
def test_any_other_number_of_copies_is_told(
    copies: dict[str, Counter[ExecutorId]], said: str
) -> None:
    assert said in str(misplaced({A: "x:1", B: "y:1"}, copies))


def test_a_worker_without_an_assignment_is_not_whole() -> None:
    copies = {"x:1": Counter({A: 1}), "z:1": Counter[ExecutorId]()}
    assert "z:1" in str(misplaced({A: "x:1"}, copies))


def test_an_assignment_that_is_not_there_is_not_whole() -> None:
    assert misplaced({}, {}) is not None


def test_a_try_as_expected_is_well() -> None:
    assert judge(Expected(), WELL) == []


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (replace(WELL, outcome="UNDONE"), "outcome UNDONE, not MOVED"),
        (replace(WELL, recovered_s=None, flaw="under way: 1-1 SETTLE"), "under way: 1-1 SETTLE"),
        (replace(WELL, failed=1), "1 failed"),
        (replace(WELL, lost=1), "1 lost"),
        (replace(WELL, dropped=1), "1 dropped"),
        (replace(WELL, double_acked=1), "1 acked twice"),
        (replace(WELL, restarts=1), "1 workers restarted"),
        (replace(WELL, services_ended=1), "1 services ended"),
        (replace(WELL, window=None), "next move: "),
        (replace(WELL, window=replace(WINDOW, acked=599)), "next move: "),
        (replace(WELL, window=replace(WINDOW, failed=1)), "next move: "),
        (replace(WELL, window=replace(WINDOW, words_counted=2999)), "next move: "),
        (replace(WELL, window=replace(WINDOW, emitted=0, acked=0)), "next move: "),
        (replace(WELL, next_move="UNDONE"), "next move UNDONE"),
        (replace(WELL, next_restarts=2), "2 workers restarted"),
    ],
)
def test_each_flaw_is_told(seen: Seen, said: str) -> None:
    (only,) = judge(Expected(), seen)
    assert said in only


def test_what_cannot_be_heard_is_not_undone() -> None:
    undone = replace(WELL, outcome="UNDONE", undone_while_held=True)
    unheard = Expected(EITHER, undo_while_held=False)
    assert judge(unheard, undone) == ["undone while an end could not be heard"]
    assert judge(unheard, replace(undone, undone_while_held=False)) == []
    assert judge(Expected(EITHER), undone) == []


def test_a_window_is_what_came_between() -> None:
    before = Totals(emitted=10, acked=8, failed=1, words_emitted=50, words_counted=45)
    after = Totals(emitted=30, acked=28, failed=1, words_emitted=150, words_counted=145)
    assert Window.between(before, after) == Window(20, 20, 0, 100, 100)


def test_a_struck_worker_may_cost_tuples_and_only_a_dead_spout_its_account() -> None:
    seen = replace(WELL, failed=9, lost=2)
    assert judge(Expected(tuples_fail=True, spouts_end=True), seen) == []
    assert judge(Expected(tuples_fail=True), seen) == ["2 lost"]
    assert judge(Expected(spouts_end=True), seen) == ["9 failed, 0 dropped"]
