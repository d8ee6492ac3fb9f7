"""Sentences in flight: whole until the last tuple is done, against draws of single sentences."""

import numpy as np
import pytest

from controller.core.cluster import Floats, Ints
from deploy.sim.flow.feed import Feed
from deploy.sim.flow.flight import Stage, in_flight, stage
from deploy.sim.flow.nodes import Hardware
from deploy.sim.flow.workload import WordCount
from deploy.sim.flow.world import World

ONE = np.zeros(24, dtype=np.int64)


def counting(share: Floats, tuples: float, *, together: bool = False) -> Stage:
    rows: Ints = np.arange(len(share))
    return stage(rows, share * tuples, ONE[: len(share)], together=together)


def test_a_sentence_waits_for_its_last_word() -> None:
    """One standing bolt that gets 3.4 % of the words is needed by 29 % of the sentences of ten."""
    share = np.full(24, (1 - 0.034) / 23)
    share[0] = 0.034
    waiting = np.zeros(24)
    waiting[0] = 1000 * 10 * 0.034
    flying = in_flight([counting(share, 10.0)], waiting)
    assert flying == pytest.approx(1000 * (1 - 0.966**10))
    assert flying == pytest.approx(292.4, abs=0.1)


def test_as_many_are_in_flight_as_draws_of_words_say() -> None:
    random = np.random.default_rng(1)
    share, sentences, words = random.dirichlet(np.full(24, 3.0)), 20_000, 10
    depth = np.where(random.random(24) < 0.5, 0.0, random.uniform(0, sentences, 24))
    drawn = random.choice(24, (sentences, words), p=share)
    alive = (np.arange(sentences)[:, None] < depth[drawn]).any(axis=1).sum()
    assert in_flight([counting(share, 10.0)], depth * share * 10) == pytest.approx(alive, rel=0.01)


def test_a_tuple_a_sentence_is_a_sentence_and_all_acks_of_one_go_together() -> None:
    share = np.array([0.25, 0.75])
    assert in_flight([counting(share, 1.0)], np.array([5.0, 9.0])) == pytest.approx(14)
    assert in_flight([counting(share, 12.0, together=True)], np.array([60.0, 108.0])) == (
        pytest.approx(14)
    )
    # Of what only half of the sentences reach, each tuple is one of them.
    assert in_flight([counting(share, 0.5)], np.array([5.0, 9.0])) == pytest.approx(14)


def test_branches_of_a_stage_wait_for_the_same_sentences() -> None:
    rows = np.arange(2)
    both = stage(rows, np.ones(2), np.array([0, 1]), together=False)
    assert in_flight([both], np.array([30.0, 50.0])) == pytest.approx(50)
    assert in_flight([both], np.zeros(2)) == 0


def test_what_no_tuple_reaches_any_more_counts_what_is_left_of_it() -> None:
    assert in_flight([counting(np.array([0.0, 1.0]), 10.0)], np.array([7.0, 0.0])) == (
        pytest.approx(7)
    )


def test_a_standing_bolt_stops_the_spouts_when_the_window_is_full() -> None:
    """004 at 13,000 sentences/s and 5,000 in flight: after two seconds, not after nine."""
    world = World(
        WordCount().topology(), Hardware(cores=1.6), Feed(pending=2500), np.random.default_rng(1)
    )
    for _ in range(200):
        world.step(0.1)
    counts = np.flatnonzero(world.component == 0)
    share = world.routes[world.component == 1][0][counts] / 10
    one = counts[np.argmin(abs(share - 1 / 24))]
    world.running[one] = False
    for _ in range(25):
        world.step(0.1)
    before = world.emitted
    for _ in range(10):
        world.step(0.1)
    assert world.emitted - before < 0.01 * 12_600
    world.running[one] = True
    for _ in range(30):
        world.step(0.1)
    assert world.emitted - before > 10_000
