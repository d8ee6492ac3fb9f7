"""What traffic between places costs, and that no other file computes it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from controller.core.cluster import Cluster
from controller.core.distance import (
    Distance,
    TrafficWeights,
    inter_node_bytes_per_s,
    weighed,
)
from controller.core.limits import Limits
from controller.core.loops import moves, traffic
from tests.messages import replace
from tests.snapshots import snapshot

ROOT = Path(__file__).parent.parent.parent.parent.parent
WEIGHTS = frozenset({"weight_node", "weight_worker"})
# Two workers of one node, and one of another.
CLUSTER = Cluster.build("ab", [("a:1", "a", 1.0), ("a:2", "a", 1.0), ("b:1", "b", 1.0)])
DISTANCE = Distance.of(CLUSTER, Limits(weight_node=0.8, weight_worker=0.2))
EACH = np.array([0, 0, 0]), np.array([0, 1, 2])


def test_a_tuple_between_nodes_counts_for_both() -> None:
    assert DISTANCE.apart(*EACH).tolist() == [0.0, 0.2, 1.0]
    assert DISTANCE.near(*EACH).tolist() == [1.0, 0.8, 0.0]
    assert DISTANCE.cost_tps(*EACH, np.array([7.0, 5.0, 3.0])) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("size_bytes", "crossing"),
    [
        (None, None),
        ([10.0, 100.0, 1000.0], 3.0 * 100 + 4.0 * 1000),
        ([np.nan, 100.0, 1000.0], 3.0 * 100 + 4.0 * 1000),
        ([10.0, np.nan, 1000.0], None),
    ],
)
def test_bytes_between_nodes_are_known_where_each_size_is(
    size_bytes: list[float] | None, crossing: float | None
) -> None:
    """Executors 1 and 2 are on one node, 3 on another."""
    talk = [(0, 1, 5.0), (1, 2, 3.0), (2, 0, 4.0)]
    load = snapshot(("bolt",) * 3, place=(0, 1, 2), talk=talk)
    sizes = None if size_bytes is None else np.array(size_bytes)
    load = replace(load, traffic=replace(load.traffic, size_bytes=sizes))
    assert inter_node_bytes_per_s(CLUSTER, load) == crossing
    assert inter_node_bytes_per_s(CLUSTER, load.placed(np.zeros(3, np.int64))) == 0.0


def test_a_move_gains_what_the_cost_falls_by() -> None:
    peers, tps = np.array([0, 1, 2, 2]), np.array([1.0, 2.0, 4.0, 8.0])
    for source in range(3):
        for target in range(3):
            before, after = (
                DISTANCE.cost_tps(np.full(4, worker), peers, tps) for worker in (source, target)
            )
            assert DISTANCE.gain_tps(source, target, peers, tps) == pytest.approx(before - after)


def test_loops_and_arrays_use_one_formula() -> None:
    weights = TrafficWeights.of(Limits(weight_node=0.8, weight_worker=0.2))
    apart = [traffic.hops(0, worker, CLUSTER.node_of) for worker in range(3)]
    assert apart == [0, 1, 2]
    compiled = [moves.weigh(*weights, float(far == 2), float(far >= 1)) for far in apart]
    assert compiled == DISTANCE.apart(*EACH).tolist()
    assert weighed(weights, 3.0, 5.0) == moves.weigh(*weights, 3.0, 5.0) == pytest.approx(3.4)


def weighed_in(source: str) -> Iterator[str]:
    """Yield the code in which a weight is computed with."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp):
            operands = node.left, node.right
            if any(getattr(one, "attr", getattr(one, "id", "")) in WEIGHTS for one in operands):
                yield ast.unparse(node)


def test_no_other_file_computes_with_the_weights() -> None:
    assert list(weighed_in("limits.weight_node * asc + near"))
    found = {
        path.relative_to(ROOT).as_posix(): rows
        for path in sorted((ROOT / "controller").rglob("*.py"))
        if (rows := list(weighed_in(path.read_text())))
    }
    assert found == {}
