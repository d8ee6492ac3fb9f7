"""An operator's random choices."""

import random
from collections import Counter
from dataclasses import replace

from deploy.lab.operator import Placement
from migration.model import ExecutorId, Slot
from tests.bench.movers import choose

HOME, ALONE, OTHER = (Slot("n0", 6700 + i) for i in range(3))


def placement(*, free: tuple[int, ...]) -> Placement:
    slots = [HOME, HOME, HOME, ALONE, OTHER, OTHER]
    slot_of = {ExecutorId(task, task): slot for task, slot in enumerate(slots, 1)}
    # Executor 2 is on its way from `HOME`.
    staying = Counter(slot_of.values()) - Counter([HOME])
    return Placement(slot_of, tuple(ExecutorId(task, task) for task in free), staying)


def test_every_free_executor_goes_to_every_other_worker() -> None:
    chosen = random.Random(1)
    pairs = Counter(choose(placement(free=(1, 5)), chosen) for _ in range(400))
    first, second = ExecutorId(1, 1), ExecutorId(5, 5)
    assert set(pairs) == {(first, ALONE), (first, OTHER), (second, HOME), (second, ALONE)}
    assert min(pairs.values()) > 60


def test_the_last_executor_of_a_worker_stays() -> None:
    assert choose(placement(free=(4,)), random.Random(1)) is None


def test_who_stays_only_beside_one_that_leaves_stays() -> None:
    found = placement(free=(1,))
    assert choose(replace(found, staying=found.staying - Counter([HOME])), random.Random(1)) is None


def test_nothing_leaves_a_spared_worker() -> None:
    pairs = {
        choose(placement(free=(1, 5)), random.Random(n), frozenset({str(HOME)})) for n in range(50)
    }
    assert {pair[0] for pair in pairs if pair} == {ExecutorId(5, 5)}
