"""An executor whose input would not follow it is the last that a full worker gives away."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.core.cluster import LoadSnapshot
from controller.core.limits import Limits
from controller.core.shuffles import fed_at_home
from controller.policies.greedy import greedy
from migration.model import Edge
from tests.snapshots import Talk, cluster, topology

# Spouts 0 and 1, splits 2 and 3, counts 4 and 5; one of each on each of two workers.
PLACE = [0, 1, 0, 1, 0, 1]
AT_HOME = [(0, 2, 100.0), (1, 3, 100.0)]
EVENLY = [(0, 2, 50.0), (0, 3, 50.0), (1, 2, 50.0), (1, 3, 50.0)]
WORDS = [(2, 4, 50.0), (2, 5, 50.0), (3, 4, 50.0), (3, 5, 50.0)]


def loaded(talk: Talk, grouping: str = "shuffle", place: Sequence[int] = PLACE) -> LoadSnapshot:
    found = topology({"spout": 2, "split": 2, "count": 2}, place=place, talk=[*talk, *WORDS])
    edges = Edge("spout", "split", "default", grouping), Edge("split", "count", "default", "fields")
    return replace(found, edges=edges)


def test_a_shuffle_that_keeps_to_its_worker_feeds_at_home() -> None:
    found = fed_at_home(loaded(AT_HOME))
    assert found.tolist() == [False, False, True, True, False, False]


def test_an_even_shuffle_a_key_and_an_only_executor_do_not() -> None:
    assert not fed_at_home(loaded(EVENLY)).any()
    assert not fed_at_home(loaded(AT_HOME, "fields")).any()
    assert not fed_at_home(loaded([(0, 2, 100.0), (1, 2, 100.0)], place=[0, 0, 0, 0, 0, 1])).any()


def test_one_that_gets_most_by_other_ways_does_not() -> None:
    more = [(1, 2, 900.0)]
    assert not fed_at_home(loaded([*AT_HOME, *more]))[2]


def test_a_topology_without_executors_has_none() -> None:
    assert fed_at_home(topology({})).tolist() == []


def test_a_full_worker_gives_away_others_first_but_then_these() -> None:
    cpu = [0.1, 0.1, 0.5, 0.1, 0.4, 0.1]
    hot = replace(loaded(AT_HOME), cpu_cores=loaded(AT_HOME).cpu_cores + cpu)
    (move,) = greedy(cluster([1, 1]), hot, Limits()).moves
    assert move.executor == "4-4"
    held = hot.holding({4: "pinned", 0: "pinned"})
    (move,) = greedy(cluster([1, 1]), held, Limits()).moves
    assert move.executor == "2-2"


def test_what_relieves_less_than_half_as_much_does_not_go_first() -> None:
    full = replace(loaded(AT_HOME), cpu_cores=np.array([0.45, 0.1, 0.45, 0.1, 0.04, 0.1]))
    (move,) = greedy(cluster([1, 1]), full.holding({0: "pinned"}), Limits()).moves
    assert move.executor == "2-2"
