"""An executor that gets most of its component's tuples is named where no move can relieve it."""

from controller.core.limits import Limits
from controller.core.skew import skew_of
from controller.policies.greedy import greedy
from tests.snapshots import cluster, topology

FED = [(0, 1, 620.0), (0, 2, 190.0), (0, 3, 190.0)]


def test_one_that_gets_most_of_the_tuples_is_named_with_its_share() -> None:
    snapshot = topology({"spout": 1, "count": 3}, talk=FED)
    assert str(skew_of(snapshot, 1)).startswith("62% of the tuples of count go to this one of 3:")
    assert skew_of(snapshot, 2) is None


def test_one_without_fellows_or_without_tuples_has_no_skew() -> None:
    assert skew_of(topology({"spout": 1, "count": 1}, talk=[(0, 1, 5.0)]), 1) is None
    assert skew_of(topology({"spout": 1, "count": 3}), 1) is None
    assert skew_of(topology({"spout": 1, "count": 3}, talk=FED), 0) is None


def test_what_no_worker_carries_says_so_in_the_reason() -> None:
    cpu = [0.1, 1.2, 0.4, 0.4]
    hot = topology({"spout": 1, "count": 3}, place=[0, 0, 1, 1], cpu_cores=cpu, talk=FED)
    reason = greedy(cluster([1, 1]), hot, Limits()).warnings[0]
    assert "1-1 (count) alone needs 1.2 cores" in reason
    assert "62% of the tuples of count go to this one of 3" in reason
    fair = [(0, e, 10.0) for e in (1, 2, 3)]
    alike = topology({"spout": 1, "count": 3}, place=[0, 0, 1, 1], cpu_cores=cpu, talk=fair)
    assert "of the tuples" not in greedy(cluster([1, 1]), alike, Limits()).warnings[0]
