"""What must hold of every older scheduler's placement, for every cluster and topology."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite
from msgspec import structs

from controller.core.cluster import Cluster, Floats, LoadSnapshot, Traffic
from controller.core.decision import Decision, Outcome
from controller.core.distance import inter_node_tps
from controller.core.limits import Limits
from controller.policies.aniello import (
    aniello_offline,
    aniello_online,
    executor_limit,
    load_hz,
    offline_place,
    online_place,
    share_out,
    spread_out,
)
from controller.policies.even import even, even_place, lf, lf_place, pipelines
from controller.policies.options import Aniello
from controller.policies.profiles import Machine, Profiles
from migration.model import Edge
from tests.snapshots import cluster, components, snapshot

World = tuple[Cluster, LoadSnapshot]
NAMES = ("spout", "split", "count", "__acker", "sink")


@composite
def worlds(draw: DrawFn, heaviest: float = 1.1) -> World:
    """Draw anything: cycles, components without executors, one node, no traffic, no load."""
    slots = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4).filter(any))
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 5))]
    component_of = draw(st.lists(st.sampled_from(names), min_size=1, max_size=12))
    edges = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8))
    count = len(component_of)
    index = st.integers(0, count - 1)
    rows = draw(st.lists(st.tuples(index, index, st.integers(0, 9)), max_size=25))
    cores = st.sampled_from([x for x in (0.0, 0.1, 0.2, 0.4, 1.1, 3.0) if x <= heaviest])
    place = draw(st.lists(st.integers(0, sum(slots) - 1), min_size=count, max_size=count))
    cpu_cores = draw(st.lists(cores, min_size=count, max_size=count))
    stay = st.sampled_from([None, None, "spout"])
    pinned = draw(st.lists(stay, min_size=count, max_size=count))
    of = components(dict.fromkeys(names, 1))
    return cluster(slots), snapshot(
        component_of, place, cpu_cores, rows, of=of, edges=edges, pinned=pinned
    )


frac = st.sampled_from([0.0, 0.3, 0.5, 1.0])
options = st.builds(
    Aniello,
    alpha=frac,
    beta=frac,
    gamma=st.sampled_from([None, None, 1.0, 1.5]),
)
# A clock for each of the most nodes there are, or none.
clocks = st.none() | st.lists(st.sampled_from([1e9, 2e9]), min_size=4, max_size=4)


def known(hz: list[float] | None, prefix: str = "n") -> Profiles:
    return Profiles(machines={f"{prefix}{n}": Machine("", one) for n, one in enumerate(hz or ())})


Decide = Callable[[Cluster, LoadSnapshot, Aniello, Profiles], Decision]
DECIDE: dict[str, Decide] = {
    "even": lambda cluster, snapshot, *_: even(cluster, snapshot, Limits()),
    "lf": lambda cluster, snapshot, *_: lf(cluster, snapshot, Limits()),
    "offline": lambda cluster, snapshot, tuned, _: aniello_offline(
        cluster, snapshot, Limits(), tuned
    ),
    "online": lambda cluster, snapshot, tuned, profiles: aniello_online(
        cluster, snapshot, Limits(), tuned, profiles
    ),
}


@pytest.mark.parametrize("name", DECIDE)
@settings(max_examples=60)
@given(world=worlds(heaviest=3.0), tuned=options, hz=clocks)
def test_a_decision_is_whole(
    name: str, world: World, tuned: Aniello, hz: list[float] | None
) -> None:
    """Once an executor, from where it is, never a pinned one; the gains add up; the same again."""
    cluster, snapshot = world
    decision = DECIDE[name](cluster, snapshot, tuned, known(hz))
    assert (decision.outcome is Outcome.WOULD_MOVE) == bool(decision.moves)
    after, moved = snapshot, set()
    for move in decision.moves:
        e = snapshot.executors.index(move.executor)
        assert e not in moved
        moved.add(e)
        assert snapshot.pinned[e] is None
        assert cluster.workers[snapshot.place[e]] == move.source != move.target
        after = after.moved(e, cluster.workers.index(move.target))
    gain = inter_node_tps(cluster, snapshot) - inter_node_tps(cluster, after)
    assert sum(move.asc_tps for move in decision.moves) == pytest.approx(gain)
    assert decision == DECIDE[name](cluster, snapshot, tuned, known(hz))


@pytest.mark.parametrize("name", DECIDE)
@settings(max_examples=40)
@given(world=worlds(), tuned=options, hz=clocks)
def test_relabelling_in_order_relabels_the_decision(
    name: str, world: World, tuned: Aniello, hz: list[float] | None
) -> None:
    cluster, snapshot = world
    renamed = replace(
        snapshot,
        executors=tuple(f"1{e}" for e in snapshot.executors),
        components=tuple(structs.replace(c, id=f"x{c.id}") for c in snapshot.components),
        component_of=tuple(f"x{c}" for c in snapshot.component_of),
        edges=tuple(Edge(f"x{e.source}", f"x{e.target}", "d", "s") for e in snapshot.edges),
    )
    moved = replace(
        cluster,
        nodes=tuple(f"x{n}" for n in cluster.nodes),
        workers=tuple(f"x{w}" for w in cluster.workers),
    )
    plain = DECIDE[name](cluster, snapshot, tuned, known(hz))
    other = DECIDE[name](moved, renamed, tuned, known(hz, "xn"))
    assert plain.outcome is other.outcome
    assert [(f"1{m.executor}", f"x{m.source}", f"x{m.target}", m.asc_tps) for m in plain.moves] == [
        (m.executor, m.source, m.target, m.asc_tps) for m in other.moves
    ]


@settings(max_examples=60)
@given(worlds(), options)
def test_placements_keep_to_the_slots(world: World, tuned: Aniello) -> None:
    """Even is as even as can be, a pipeline stays together, no worker of 002 holds more than M."""
    cluster, snapshot = world
    count, slots = len(snapshot.executors), len(cluster.workers)
    size = np.bincount(even_place(cluster, snapshot), minlength=slots)
    assert size.sum() == count
    assert size.max() - size.min() <= 1
    found = pipelines(snapshot)
    assert sorted(e for pipe in found for e in pipe) == list(range(count))
    place = lf_place(cluster, snapshot)
    assert all(len(set(place[pipe].tolist())) == 1 for pipe in found)
    place = offline_place(cluster, snapshot, tuned)
    limit = executor_limit(tuned.alpha, count, slots)
    assert np.bincount(place, minlength=slots).max() <= limit


@settings(max_examples=80)
@given(worlds(heaviest=3.0), options, clocks)
def test_online_keeps_its_constraints(world: World, tuned: Aniello, hz: list[float] | None) -> None:
    """Exactly min(E, W) workers, at most M executors in each, no node above its capacity."""
    cluster, snapshot = world
    limits = Limits()
    place = online_place(cluster, snapshot, limits, tuned, known(hz))
    load, speed = load_hz(cluster, snapshot, known(hz))
    roomy = limits.high_frac * speed[speed > 0].min() >= load.sum()
    if isinstance(place, str):
        assert not roomy or tuned.gamma is not None
        return
    count, slots = len(snapshot.executors), len(cluster.workers)
    size = np.bincount(place, minlength=slots)
    assert (size > 0).sum() == min(count, slots)
    assert size.max() <= executor_limit(tuned.alpha, count, slots)
    node_load = np.bincount(cluster.node_of[place], load, minlength=len(cluster.nodes))
    assert (node_load <= limits.high_frac * speed * (1 + 1e-6) + 1e-6).all()


def crossing(traffic: Traffic, bins: dict[int, int]) -> float:
    """Add up the traffic between items in different bins."""
    rows = zip(traffic.source.tolist(), traffic.target.tolist(), traffic.tps.tolist(), strict=True)
    return float(sum(tps for a, b, tps in rows if a in bins and b in bins and bins[a] != bins[b]))


def greedy(
    load: Floats, traffic: Traffic, most: list[int], room: list[float]
) -> dict[int, int] | None:
    """Follow the rule of both phases to the letter, every sum afresh; None if it gets stuck."""
    bins: dict[int, int] = {}

    def fits(state: dict[int, int], items: list[int], at: int) -> bool:
        inside = [item for item, where in state.items() if where == at] + items
        return len(inside) <= most[at] and sum(load[inside]) <= room[at] + 1e-9

    def emptiest(items: list[int]) -> int | None:
        filled = [sum(load[i] for i in bins if bins[i] == at) for at in range(len(most))]
        may = [at for at in range(len(most)) if fits(bins, items, at)]
        return min(may, key=lambda at: round(filled[at], 9), default=None)

    def settle(item: int) -> bool:
        to = emptiest([item])
        if to is not None:
            bins[item] = to
        return to is not None

    rows = zip(traffic.tps.tolist(), traffic.source.tolist(), traffic.target.tolist(), strict=True)
    for _, a, b in sorted(rows, key=lambda row: (-row[0], row[1], row[2])):
        homes = sorted({bins[item] for item in (a, b) if item in bins})
        both = emptiest([a, b])
        if not homes and both is not None:
            bins |= {a: both, b: both}
        elif not homes:
            if not (settle(a) and settle(b)):
                return None
        else:
            third = emptiest([a if load[a] > load[b] else b])
            choice = homes if third is None or third in homes else [*homes, third]
            rest = {item: at for item, at in bins.items() if item not in (a, b)}
            ways = [
                {**rest, a: to_a, b: to_b}
                for to_a, to_b in product(choice, choice)
                if (fits(rest, [a, b], to_a) if to_a == to_b else fits(rest, [a], to_a))
                and (to_a == to_b or fits(rest, [b], to_b))
            ]
            if not ways:
                return None
            bins = min(ways, key=lambda way: crossing(traffic, way))
    return bins if all(settle(i) for i in range(len(load)) if i not in bins) else None


@settings(max_examples=60)
@given(worlds(), frac)
def test_phase_1_is_the_rule_to_the_letter(world: World, alpha: float) -> None:
    cluster, snapshot = world
    given_, load = snapshot.traffic, snapshot.cpu_cores
    apart = given_.source != given_.target
    traffic = Traffic(given_.source[apart], given_.target[apart], given_.tps[apart])
    workers = min(len(load), len(cluster.workers))
    limit = executor_limit(alpha, len(load), workers)
    group = share_out(load, traffic, workers, Aniello(alpha=alpha))
    expected = greedy(load, traffic, [limit] * workers, [np.inf] * workers)
    assert expected is not None
    for empty in range(workers):
        if empty not in expected.values():
            placed = list(expected.values())
            crowded = [e for e in sorted(expected) if placed.count(expected[e]) > 1]
            now = dict(expected)
            moved = min(crowded, key=lambda e: crossing(traffic, {**now, e: empty}))
            expected[moved] = empty
    assert np.asarray(group).tolist() == [expected[e] for e in range(len(load))]


@settings(max_examples=60)
@given(st.data(), st.lists(st.integers(0, 3), min_size=1, max_size=4).filter(any))
def test_phase_2_is_the_same_rule_with_slots_and_capacities(
    data: st.DataObject, slots: list[int]
) -> None:
    workers = [(f"n{n}:{p}", f"n{n}", 1.0) for n, count in enumerate(slots) for p in range(count)]
    cluster = Cluster.build([f"n{n}" for n in range(len(slots))], workers)
    count = data.draw(st.integers(1, len(workers)))
    index = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(index, index, st.integers(1, 9)), max_size=12))
    rows = np.array([row for row in pairs if row[0] < row[1]], dtype=np.int64).reshape(-1, 3)
    traffic = Traffic.build(rows[:, 0], rows[:, 1], rows[:, 2].astype(np.float64))
    eighths = st.integers(0, 8)
    load = np.array(data.draw(st.lists(eighths, min_size=count, max_size=count))) / 8
    room = np.array(data.draw(st.lists(eighths, min_size=len(slots), max_size=len(slots)))) / 4
    node = spread_out(load, traffic, cluster, room)
    expected = greedy(load, traffic, slots, room.tolist())
    assert isinstance(node, int) == (expected is None)
    if expected is not None:
        assert np.asarray(node).tolist() == [expected[w] for w in range(count)]
