"""Of moves that gain as much, those are made that pause least."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.cluster import LoadSnapshot
from controller.core.limits import Limits
from controller.policies.gather.evaluate import find
from controller.policies.gather.problem import Problem
from controller.policies.gather.search import renamed
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from controller.policies.otd import otd
from migration.model import Way
from tests.snapshots import cluster, snapshot
from tests.unit.controller.test_cycle import AUTO, World, last

TWO_NODES = cluster([1, 1])
# The spout and the bolt of a pair are on two nodes, and each may go to the other.
PAIR = snapshot(["a", "b"], [0, 1], 0.1, [(0, 1, 100.0)])


def weighed(one: LoadSnapshot, *weights: float) -> LoadSnapshot:
    return replace(one, move_weights=np.array(weights))


@pytest.mark.parametrize(("weights", "moved"), [((4.0, 1.0), "1-1"), ((1.0, 4.0), "0-0")])
def test_of_two_moves_that_gain_as_much_the_plain_one_is_made(
    weights: tuple[float, float], moved: str
) -> None:
    pair = weighed(PAIR, *weights)
    assert [move.executor for move in greedy(TWO_NODES, pair, Limits()).moves] == [moved]
    found = find(TWO_NODES, pair, Limits(), TargetOptions()).target
    assert found is not None
    assert found.executors == (moved,)


def test_an_emptier_target_counts_more_than_a_pause() -> None:
    # Executor 1 would come to the emptier worker.
    busier = weighed(replace(PAIR, cpu_cores=np.array([0.1, 0.3])), 1.0, 2.0)
    assert greedy(TWO_NODES, busier, Limits()).moves[0].executor == "1-1"


def test_the_algorithms_of_the_paper_know_no_pauses() -> None:
    pairs = [weighed(PAIR, 4.0, 1.0), weighed(PAIR, 1.0, 4.0), PAIR]
    first, *others = (otd(TWO_NODES, pair, Limits()) for pair in pairs)
    assert others == [first, first]
    assert first.moves


def test_nodes_exchange_what_they_hold_where_that_pauses_less() -> None:
    """Two go to the other node, or two spouts, and both cost as much."""
    apart = snapshot(["c"] * 4, [0, 0, 1, 1], 0.1)
    for weights, place in (((1, 1, 4, 4), [1, 1, 1, 1]), ((1, 1, 1, 1), [0, 0, 0, 0])):
        problem = Problem.of(TWO_NODES, weighed(apart, *weights), Limits(), TargetOptions())
        problem = replace(problem, price_tps=1.0)
        assert renamed(problem, np.zeros(4, np.int64)).tolist() == place


def test_weights_come_from_the_ways_that_workers_name() -> None:
    ways = {1: Way.SPOUT, 2: Way.CARRY, 3: Way.DRAIN, 4: Way.ACKER, 5: Way.RENEW, 6: Way.UNKNOWN}
    report = last(World(ways=ways), AUTO)
    assert report.picture is not None
    weights = report.picture.snapshot.move_weights
    assert weights is not None
    assert weights.tolist() == [4.0, 2.0, 1.0, 1.0, 4.0, 1.0, 1.0]
    unknown = last(World(), AUTO).picture
    assert unknown is not None
    assert unknown.snapshot.move_weights is None
