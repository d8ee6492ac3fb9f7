"""Loops give the same answers, bit for bit, as Python and as machine code."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from math import pi
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.cluster import LoadSnapshot
from controller.core.compiled import Loop, run_as_python_until
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.pairs import _LATELY
from controller.core.view import kernels
from controller.core.view.view import View
from controller.policies.greedy import greedy
from controller.policies.otd import otd
from tests.property.controller.policies.gather.test_policy import worlds as uneven_worlds
from tests.property.controller.policies.test_single_move import World, limits, worlds

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def both_ways(work: Callable[[], Any]) -> tuple[Any, Any]:
    """Do it as machine code and as Python."""
    _LATELY.clear()
    machine = work()
    _LATELY.clear()
    with run_as_python_until(lambda: False):
        return machine, work()


def bits(found: Any) -> Any:
    """Make equal what is equal in every bit, whether numpy or Python holds the number."""
    if isinstance(found, np.ndarray):
        return found.dtype.str, found.shape, found.tobytes()
    if isinstance(found, tuple | list):
        return [bits(part) for part in found]
    return float(found).hex() if isinstance(found, float) else int(found)


def uneven(snapshot: LoadSnapshot) -> LoadSnapshot:
    """Let sums be of numbers that have no end, so that their order shows in the last bits."""
    traffic = snapshot.traffic
    tps = traffic.tps * (1 + np.sin(np.arange(len(traffic.tps))) / pi)
    return replace(snapshot, traffic=replace(traffic, tps=tps))


@settings(max_examples=300)
@given(worlds() | uneven_worlds(), limits(), st.integers(1, 3), st.booleans())
def test_a_decision_is_the_same(
    world: World, rules: Limits, most: int, whole_numbers: bool
) -> None:
    cluster, snapshot = world
    snapshot = snapshot if whole_numbers else uneven(snapshot)
    for policy in (greedy, otd):
        for _ in range(3):
            machine, python = both_ways(
                lambda: policy(cluster, snapshot, replace(rules, max_moves=most))  # noqa: B023
            )
            assert repr(machine) == repr(python)
            snapshot = applied(machine.moves, cluster, snapshot)


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), limits(), st.data())
def test_every_loop_of_a_decision_is_the_same(
    world: World, rules: Limits, data: st.DataObject
) -> None:
    cluster, snapshot = world
    snapshot = uneven(snapshot)
    everybody = np.arange(len(snapshot.executors))
    anywhere = np.arange(len(cluster.workers))
    e = data.draw(st.sampled_from(everybody.tolist()))
    w = data.draw(st.sampled_from(anywhere.tolist()))

    def answers() -> list[Any]:
        view = View.of(cluster, snapshot, rules)
        looked, carried = view.bounds[0].copy(), view.moved(e, w)
        best = kernels.best(view.world, looked, e, 0.0, 1e-9)
        pairs = kernels.open_pairs(view.world, view.bounds, view.loudest, 0.0)
        ends = snapshot.traffic.source, snapshot.traffic.target
        return [
            bits(part)
            for part in (
                (view.pairs.begin, view.pairs.peer, view.pairs.row),
                kernels.score(view.world, everybody, anywhere),
                kernels.gather(view.world, everybody),
                kernels.doubts(*ends, snapshot.traffic.tps, 2.0, view.movable.copy()),
                kernels.loudest(*ends, snapshot.traffic.tps, view.pairs.begin),
                (*best, looked, pairs),
                (kernels.score_of(view.world, e, w), kernels.may_move(view.world, e, w)),
                (carried.bounds, carried.roomiest, carried.room, carried.fit.frac),
            )
        ]

    machine, python = both_ways(answers)
    assert machine == python


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), st.data())
def test_what_crosses_is_the_same(world: World, data: st.DataObject) -> None:
    cluster, snapshot = world
    snapshot = uneven(snapshot)
    size = st.sampled_from([np.nan, 10.0, 1000.0])
    sizes = np.array([data.draw(size) for _ in snapshot.traffic.tps])
    snapshot = replace(snapshot, traffic=replace(snapshot.traffic, size_bytes=sizes))
    link = st.sampled_from([np.nan, 100.0, 1e6])
    left = np.array([[data.draw(link) for _ in cluster.nodes] for _ in range(2)])
    cluster = replace(
        cluster,
        node_cores=np.full(len(cluster.nodes), 4.0),
        link_bytes_s=left,
    )

    def answers() -> list[Any]:
        view = View.of(cluster, snapshot, Limits())
        moves = itertools.product(range(len(snapshot.executors)), range(len(cluster.workers)))
        sent = [one for one in view.sent if one is not None]
        return [*map(bits, sent), [view.is_refused(e, w) for e, w in moves]]

    machine, python = both_ways(answers)
    assert machine == python


def test_every_loop_is_asked() -> None:
    called = {name for name, known in vars(kernels).items() if isinstance(known, Loop)}
    inside = {"_is_taken", "_scratch", "_sum_by_place", "_clear", "_fit", "_best_of", "_near"}
    inside |= {"_brings", "change", "holds", "near", "weigh"}
    outside = {"roomiest", "may_move", "score", "gather", "bounds", "doubts", "loudest"}
    assert called == inside | outside | {"best", "open_pairs", "score_of"}
