"""Loops give the same answers, bit for bit, compiled and as the Python that they are written in."""

import importlib
import itertools
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from math import pi
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.cluster import Level, LoadSnapshot
from controller.core.limits import Limits
from controller.core.loops import MODULES, annealing, moves, traffic
from controller.core.moved import applied
from controller.core.pairs import _LATELY
from controller.core.view import View
from controller.policies.gather.anneal import anneal
from controller.policies.gather.problem import Problem
from controller.policies.greedy import greedy, opening_pairs
from controller.policies.options import TargetOptions
from controller.policies.otd import otd
from tests.property.controller.policies.gather.test_policy import worlds as uneven_worlds
from tests.property.controller.policies.test_single_move import World, limits, worlds


class Pair(tuple[Any, Any]):
    """An input of loops in both forms."""


class Both:
    """A module of loops in both its forms: each call is made twice and compared."""

    def __init__(self, compiled: ModuleType) -> None:
        self.compiled, self.called = compiled, set[str]()
        assert compiled.__file__ is not None
        file = Path(compiled.__file__).parent / f"{compiled.__name__.rpartition('.')[2]}.py"
        spec = spec_from_file_location(f"{compiled.__name__}_as_python", file)
        assert spec is not None and spec.loader is not None
        self.python = module_from_spec(spec)
        spec.loader.exec_module(self.python)

    @property
    def names(self) -> set[str]:
        """What Python may call."""
        own = {
            n for n, known in vars(self.python).items() if known.__class__.__name__ == "function"
        }
        return {name for name in own if not name.startswith("_")} - {"require"}

    def __getattr__(self, name: str) -> Any:
        compiled, python = getattr(self.compiled, name), getattr(self.python, name)
        if isinstance(compiled, type):
            return lambda **given: Pair(
                kind(**{k: v[form] if isinstance(v, Pair) else v for k, v in given.items()})
                for form, kind in enumerate((compiled, python))
            )

        def both(*arguments: Any) -> Any:
            self.called.add(name)
            first, second = (
                [one[form] if isinstance(one, Pair) else one for one in deepcopied]
                for form, deepcopied in enumerate((arguments, [_copied(a) for a in arguments]))
            )
            with np.errstate(all="ignore"):  # compiled loops do not warn
                expected = python(*second)
            found = compiled(*first)
            assert bits(found) == bits(expected), name
            changed = zip(arguments, second, strict=True)
            assert all(bits(a) == bits(b) for a, b in changed if isinstance(a, np.ndarray)), name
            return found

        return both


def _copied(argument: Any) -> Any:
    return deepcopy(argument) if isinstance(argument, np.ndarray) else argument


def bits(found: Any) -> Any:
    """Make equal what is equal in every bit, whether numpy or Python holds the number."""
    if isinstance(found, np.ndarray):
        return found.dtype.str, found.shape, found.tobytes()
    if isinstance(found, tuple | list):
        return [bits(part) for part in found]
    return float(found).hex() if isinstance(found, float) else int(found)


BOTH = {
    name: Both(module) for name, module in zip(MODULES, (annealing, moves, traffic), strict=True)
}


@contextmanager
def compared() -> Iterator[None]:
    """Let all that calls loops call them in both forms."""
    _LATELY.clear()
    of = {both.compiled: both for both in BOTH.values()}
    callers = [m for name, m in sys.modules.items() if name.startswith("controller.")]
    with ExitStack() as stack:
        for module, (name, known) in [(m, item) for m in callers for item in vars(m).items()]:
            if isinstance(known, ModuleType) and known in of and module.__name__ != __name__:
                stack.enter_context(patch.object(module, name, of[known]))
        yield
    _LATELY.clear()


def uneven(snapshot: LoadSnapshot) -> LoadSnapshot:
    """Let sums be of numbers that have no end, so that their order shows in the last bits."""
    traffic = snapshot.traffic
    tps = traffic.tps * (1 + np.sin(np.arange(len(traffic.tps))) / pi)
    return replace(snapshot, traffic=replace(traffic, tps=tps, var=tps / 3))


def declaring(world: World, has_mb: float) -> World:
    """Let executors declare memory, and nodes have as much of it: the second twice as much, …."""
    cluster, snapshot = world
    node_mb = np.array([has_mb * (n + 1) for n in range(len(cluster.nodes))])
    memory_mb = 100.0 * (1 + np.sin(np.arange(len(snapshot.executors))))
    return replace(cluster, memory_mb=node_mb), replace(snapshot, memory_mb=memory_mb)


ANY_WORLDS = worlds() | uneven_worlds()
ANY_WORLDS |= st.builds(declaring, ANY_WORLDS, st.sampled_from([0.0, 100.0, 200.0, 1000.0]))


@settings(max_examples=100)
@given(ANY_WORLDS, limits(), st.integers(1, 3), st.booleans(), st.booleans())
def test_every_loop_of_a_decision_is_the_same(
    world: World, rules: Limits, most: int, whole_numbers: bool, shared: bool
) -> None:
    cluster, snapshot = world
    snapshot = snapshot if whole_numbers else uneven(snapshot)
    if shared:
        cluster = replace(cluster, node_cores=np.full(len(cluster.nodes), 4.0))
    for policy in (greedy, otd):
        for _ in range(3):
            with compared():
                found = policy(cluster, snapshot, replace(rules, max_moves=most))
            snapshot = applied(found.moves, cluster, snapshot)


@settings(max_examples=200)
@given(ANY_WORLDS, limits(), st.booleans(), st.data())
def test_every_loop_of_a_view_is_the_same(
    world: World, rules: Limits, shared: bool, data: st.DataObject
) -> None:
    cluster, snapshot = world
    snapshot = uneven(snapshot)
    if shared:
        cluster = replace(cluster, node_cores=np.full(len(cluster.nodes), 4.0))
    everybody = np.arange(len(snapshot.executors))
    anywhere = np.arange(len(cluster.workers))
    e = data.draw(st.sampled_from(everybody.tolist()))
    w = data.draw(st.sampled_from(anywhere.tolist()))
    with compared():
        view = View.of(cluster, snapshot, rules)
        loops = BOTH["moves"]
        opening_pairs(view.without(e, w), 0.0)
        loops.best(view.world, view.bounds[0].copy(), e, 0.0, 1e-9)
        view.score(everybody, anywhere)
        loops.gather(view.world, everybody)
        loops.may_move(view.world, e, w)
        moved = view.moved(e, w)
        assert len(moved.bounds[0]) == len(everybody)
        moved.fit.more(everybody, np.full(len(everybody), w))
        moved.fit.fits(everybody, np.full(len(everybody), w))


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
    cluster = replace(cluster, node_cores=np.full(len(cluster.nodes), 4.0), link_bytes_s=left)
    heap = st.sampled_from([np.nan, 1e7, 3e8])
    live, most = ([data.draw(heap) + mb for _ in cluster.workers] for mb in (0.0, 3e8))
    cluster = replace(cluster, spaces={"heap": Level(np.array(live), np.array(most))})
    with compared():
        view = View.of(cluster, snapshot, Limits())
        for e, w in itertools.product(range(len(snapshot.executors)), range(len(cluster.workers))):
            BOTH["moves"].is_barred(view.world, e, w)
            view.reserve.links.grow_at(view.snapshot.moved(e, w).place)


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), st.data())
def test_the_load_of_a_tick_is_the_same(world: World, data: st.DataObject) -> None:
    cluster, snapshot = world
    traffic = uneven(snapshot).traffic
    size = st.sampled_from([np.nan, 10.0, 1000.0])
    sizes = np.array([data.draw(size) for _ in traffic.tps])
    worker = st.integers(0, len(cluster.workers) - 1)
    place = np.array([data.draw(worker) for _ in snapshot.place])
    BOTH["traffic"].load(
        traffic.source,
        traffic.target,
        sizes,
        traffic.tps.astype(np.float32),
        snapshot.cpu_cores.astype(np.float32),
        np.array([0.0, 1e-3, 3e-3]),
        place,
        snapshot.place,
        cluster.node_of,
        len(cluster.nodes),
    )


LARGEST = 2**63 - 1
NUMBERS = st.integers(-LARGEST, LARGEST) | st.integers(-9, 9)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
def test_the_numbers_of_a_report_are_read(rows: list[tuple[int, int, int]]) -> None:
    text = json.dumps(rows).replace(" ", "").encode()
    found = BOTH["traffic"].numbers(text)
    assert found.tolist() == [number for row in rows for number in row]


def test_a_number_that_is_none_is_refused_and_one_too_large_is_the_largest() -> None:
    for form in (traffic, BOTH["traffic"].python):
        assert form.numbers(
            b"[[1,9223372036854775808,7],[99999999999999999999,0,-2]]"
        ).tolist() == [
            *(1, LARGEST, 7),
            *(LARGEST, 0, -2),
        ]
        for odd in (b"[[1,2,-]]", b"[[1,--2,3]]", b"[[1,2-3,4]]", b"-"):
            with pytest.raises(ValueError, match="a minus that begins no number"):
                form.numbers(odd)


@settings(max_examples=60)
@given(ANY_WORLDS, limits(), st.sampled_from([0.3, 3.0]), st.integers(0, 99))
def test_a_search_is_the_same(world: World, rules: Limits, hot: float, seed: int) -> None:
    cluster, snapshot = world
    problem = Problem.of(cluster, uneven(snapshot), rules, TargetOptions())
    with compared():
        anneal(problem, problem.start, 20, hot, seed)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 5000), min_size=1, max_size=60))
def test_chance_is_as_numpys(seed: int, counts: list[int]) -> None:
    """Numbers that searches of today drew before, so that journals are decided as they were."""
    known = np.random.RandomState(seed)
    chance = annealing.Chance(seed), BOTH["annealing"].python.Chance(seed)
    for count in counts:
        drawn = known.random_sample() if count == 0 else known.randint(count)
        found = [one.share() if count == 0 else one.below(count) for one in chance]
        assert bits(found) == bits([drawn, drawn])


def test_every_loop_that_python_calls_is_compared() -> None:
    """The last test of the file, after those that call them."""
    called = {name: both.called for name, both in BOTH.items()}
    if not all(called.values()):
        pytest.skip("run alone")
    # Loops inside of others, which Python calls in tests alone.
    inside = {"annealing": {"shift"}, "moves": {"weigh"}, "traffic": {"hops"}}
    assert called == {name: both.names - inside[name] for name, both in BOTH.items()}


def without(arguments: tuple[Any, ...], at: int, other: Any) -> tuple[Any, ...]:
    return (*arguments[:at], other, *arguments[at + 1 :])


INTS, FLOATS = np.arange(3), np.ones(3)
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (moves.sums, (INTS, FLOATS, 3)),
    (moves.hold, (FLOATS, INTS, INTS, INTS, FLOATS, np.ones((3, 3)))),
    (moves.roomiest, (FLOATS, np.ones(3, np.bool_), INTS, 3)),
    (moves.loudest, (INTS, INTS, FLOATS, np.arange(4))),
    (traffic.index, (INTS, INTS, 3)),
    (traffic.is_above, (np.ones((2, 2, 3)), np.ones((2, 2, 3)))),
    (traffic.hop_cores, (INTS, INTS, FLOATS, FLOATS, FLOATS, INTS, INTS)),
]


@pytest.mark.parametrize(
    ("loop", "arguments", "at"),
    [
        (loop, arguments, at)
        for loop, arguments in CALLS
        for at, one in enumerate(arguments)
        if isinstance(one, np.ndarray)
    ],
)
def test_an_array_that_does_not_fit_is_refused(
    loop: Callable[..., Any], arguments: tuple[Any, ...], at: int
) -> None:
    expected = bits(loop(*arguments))
    given = arguments[at]
    read_only = given.copy()
    read_only.setflags(write=False)
    gaps = np.repeat(given, 2, axis=-1)[..., ::2]
    for same in (read_only, gaps):
        assert bits(loop(*without(arguments, at, same))) == expected
    for other in (
        given.astype(np.int32 if given.dtype == np.int64 else np.float32),
        given.astype(np.complex128 if given.dtype == np.bool_ else given.dtype.newbyteorder()),
        given[np.newaxis],
        given.tolist(),
        "array",
    ):
        with pytest.raises((TypeError, ValueError)):
            loop(*without(arguments, at, other))


def test_arrays_of_other_lengths_are_refused() -> None:
    for loop, arguments in CALLS:
        at = next(i for i, one in enumerate(arguments) if isinstance(one, np.ndarray))
        longer = np.concatenate([arguments[at], arguments[at]])
        with pytest.raises(ValueError, match="lengths do not fit together"):
            loop(*without(arguments, at, longer))
    with pytest.raises(ValueError, match="lengths do not fit together"):
        moves.score(None, INTS, INTS)  # type: ignore[arg-type]


def test_loops_are_compiled() -> None:
    assert isinstance(moves.best, BuiltinFunctionType) or "cython" in type(moves.best).__name__


def test_without_compiled_loops_the_import_names_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert moves.__file__ is not None
    (tmp_path / "bare").mkdir()
    for name in ("__init__.py", "annealing.py"):
        shutil.copy(Path(moves.__file__).with_name(name), tmp_path / "bare")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"bare\.annealing is not compiled .+ type  make setup$"):
        importlib.import_module("bare")
