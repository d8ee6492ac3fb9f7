"""Two placements in turn: how executors get there, which windows are pairs, what is reported."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import cast

import pytest

from controller.storm.command_record import Command
from deploy.lab.figures import Figures
from deploy.lab.operator import Operator, Placement
from deploy.lab.pairing import (
    NotPlacedError,
    Pair,
    compared,
    in_turn,
    known,
    place,
    ratio,
    verdict,
)
from migration.model import ExecutorId, Slot
from tests.lab_figures import FIGURES, side
from tests.messages import replace

ONE, TWO = ExecutorId(1, 1), ExecutorId(2, 2)
HERE, THERE = Slot("n0", 6700), Slot("n1", 6700)


class Moves:
    """An operator whose moves work, but for the executors that must not be first."""

    def __init__(self, *, refuses: Mapping[ExecutorId, int]) -> None:
        self.slot_of = {ONE: HERE, TWO: THERE}
        self.refuses = dict(refuses)
        self.asked: list[ExecutorId] = []
        self.settling = 0

    def entries(self) -> int:
        self.settling = max(self.settling - 1, 0)
        return self.settling

    def placement(self) -> Placement:
        return Placement(dict(self.slot_of), (ONE, TWO), Counter())

    def ask(self, executor: ExecutorId, slot: Slot) -> str:
        assert self.settling == 0
        self.asked.append(executor)
        if self.refuses.get(executor, 0):
            self.refuses[executor] -= 1
            return f"{executor} REFUSED"
        self.slot_of[executor] = slot
        return f"{executor} SETTLE"

    def follow(self, path: str, until: object) -> Command:
        executor, state = path.split(" ")
        self.settling = 3
        return Command("wc", executor, "", state, "it is the last one")


def moved(moves: Moves, goal: Mapping[ExecutorId, Slot]) -> int:
    return place(cast(Operator, moves), goal, lambda seconds: None)


def test_only_who_is_elsewhere_moves() -> None:
    moves = Moves(refuses={})
    assert moved(moves, {ONE: THERE, TWO: THERE}) == 1
    assert moves.asked == [ONE]
    assert moved(moves, {ONE: THERE, TWO: THERE}) == 0


def test_who_was_refused_moves_once_others_have_settled() -> None:
    moves = Moves(refuses={ONE: 1})
    assert moved(moves, {ONE: THERE, TWO: HERE}) == 2
    assert moves.asked == [ONE, TWO, ONE]


def test_a_slot_that_is_not_free_again_yet_is_waited_for() -> None:
    """Storm takes a while to end the worker that a placement has emptied."""
    moves = Moves(refuses={ONE: 20})
    assert moved(moves, {ONE: THERE}) == 1
    assert len(moves.asked) == 21


def test_who_never_gets_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 5))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with pytest.raises(NotPlacedError, match=r"1-1: REFUSED it is the last one"):
        moved(Moves(refuses={ONE: 99}), {ONE: THERE})


def test_moves_that_never_settle_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = Moves(refuses={})
    monkeypatch.setattr(moves, "entries", lambda: 1)
    clock = iter(range(0, 1000, 50))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with pytest.raises(NotPlacedError, match="not settled"):
        moved(moves, {ONE: THERE})


@pytest.mark.parametrize("first", ["a", "b"])
def test_neighbours_are_pairs_and_no_window_is_in_two(first: str) -> None:
    at, order = first, ""
    numbers = iter(range(100))

    def go(goal: str) -> None:
        nonlocal at
        at = goal

    def take() -> Figures:
        nonlocal order
        order += at
        return replace(FIGURES, acked_tps=float(next(numbers)), fullest_worker=at)

    pairs = list(islice(in_turn(go, take, first), 4))
    assert order == {"a": "abbaabba", "b": "baabbaab"}[first]
    assert all((pair.a.fullest_worker, pair.b.fullest_worker) == ("a", "b") for pair in pairs)
    assert [{pair.a.acked_tps, pair.b.acked_tps} for pair in pairs] == [
        {0, 1},
        {2, 3},
        {4, 5},
        {6, 7},
    ]


def test_a_figure_that_is_missing_once_or_zero_is_not_compared() -> None:
    whole = Pair(side(1000), side(1100))
    assert ratio([whole, whole], "acked_tps") is not None
    hole = Pair(side(1000), replace(side(1100), gc_frac=None))
    assert ratio([whole, hole], "gc_frac") is None
    assert ratio([Pair(side(0), side(1))], "acked_tps") is None
    assert ratio([], "acked_tps") is None


def test_a_figure_that_falls_to_nothing_is_shown_without_a_ratio() -> None:
    pairs = [Pair(side(1000), replace(side(1100), inter_node_tuple_frac=0.0))] * 2
    row = compared(pairs)["inter_node_tuple_frac"]
    assert row is not None
    assert row == {**row, "new": 0.0, "ratio": None, "low": None, "high": None}
    assert row["storm"]


def test_known_is_when_all_that_could_be_taken_is_narrow() -> None:
    same = Pair(side(1000), side(1100))
    assert not known([same] * 3)
    assert known([same] * 4)
    other = Pair(side(1000), replace(side(1100), cpu_us_per_sentence=300.0))
    assert not known([same, same, same, other])


def said(b_tps: float, **changes: object) -> str:
    pairs = [Pair(side(1000), replace(side(b_tps + i), **changes)) for i in range(2)]
    return "\n".join(verdict(pairs))


def test_a_verdict_says_gain_loss_or_neither() -> None:
    assert "the new placement pays: 1.2" in said(1200)
    assert "does NOT pay: 0.8" in said(800)
    assert "2 pairs show neither gain nor loss" in said(1000)
    assert "nothing to compare" in said(-1)


def test_a_verdict_says_what_is_full_and_what_a_sentence_takes_of_it() -> None:
    cpu = said(1200, cpu_us_per_sentence=150.0)
    assert "the machine's CPU, which is full, a sentence takes 0.750 [0.750, 0.750] times" in cpu
    pairs = [
        Pair(
            replace(side(1000), fullest_link_bytes_per_sentence=100.0),
            replace(
                side(900 + i),
                fullest_link_bytes_per_sentence=110.0,
                fullest_link_frac=0.97,
                fullest_link="n1 out",
            ),
        )
        for i in range(2)
    ]
    told = verdict(pairs)
    assert "does NOT pay: 0.9" in told[0]
    assert "of a link that is full, a sentence takes 1.100 [1.100, 1.100] times" in told[1]
    assert "at Storm's placement: fullest link unknown, the machine's CPU 99%" in told[2]
    assert "at the new placement: fullest link (n1 out) 97%" in told[3]
    assert "the fullest worker, s1:1, uses 0.50 cores, the mean one 0.40" in told[3]


def test_a_verdict_does_not_guess() -> None:
    idle = said(1200, machine_busy_frac=0.3, fullest_link_frac=0.2, fullest_link="n1 out")
    assert "neither a link nor the machine's CPU is full" in idle
    assert "an unknown number of times" in said(1200, cpu_us_per_sentence=None)
