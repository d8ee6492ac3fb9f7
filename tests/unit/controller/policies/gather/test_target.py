"""`gather` on seed 004's values to hold, on odd input, and piece by piece."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.core.cluster import Cluster, Ints, LoadSnapshot, Traffic
from controller.core.decision import Decision, Outcome
from controller.core.distance import inter_node_tps
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.view import View
from controller.policies.gather import search
from controller.policies.gather.anneal import anneal
from controller.policies.gather.evaluate import find
from controller.policies.gather.goal import Target, digest
from controller.policies.gather.problem import Problem
from controller.policies.gather.route import Route, next_steps, route
from controller.policies.gather.target import TargetMemory, target
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from controller.snapshot import parse
from deploy.sim.remembering import gather
from tests.bench.decide.worlds import TIGHT, Kind
from tests.bench.decide.worlds import world as fresh_world
from tests.snapshots import cluster as cluster_of
from tests.snapshots import snapshot as snapshot_of

GOLDEN = Path(__file__).parents[4] / "golden" / "decide"
NODES_ONLY = Limits(weight_node=1.0, weight_worker=0.0)

World = tuple[Cluster, LoadSnapshot]


def load(name: str) -> World:
    return parse((GOLDEN / f"{name}.json").read_text())


def world(
    workers: list[tuple[str, float]],
    place: list[int],
    cores: list[float],
    traffic: dict[tuple[int, int], float],
) -> World:
    """Put executors on workers, each given by its node and its cores."""
    rows = [(f"{node}:{6700 + i}", node, size) for i, (node, size) in enumerate(workers)]
    talk = [(*pair, tps) for pair, tps in traffic.items()]
    nodes = {node for node, _ in workers}
    return Cluster.build(nodes, rows), snapshot_of(["c"] * len(place), place, cores, talk)


def walk(start: World, limits: Limits, options: TargetOptions | None = None) -> list[World]:
    policy, path = gather(options or TargetOptions()), [start]
    while (decision := policy(*path[-1], limits)).moves:
        cluster, snapshot = path[-1]
        path.append((cluster, applied(decision.moves, cluster, snapshot)))
    return path


@pytest.mark.parametrize(("high", "best"), [(0.4, 20.0), (0.6, 20.0), (0.8, 0.0)])
def test_the_saddle_is_left_where_both_pairs_fit_on_a_node(high: float, best: float) -> None:
    path = walk(load("saddle"), replace(NODES_ONLY, high_frac=high))
    assert inter_node_tps(*path[0]) == 20.0
    assert inter_node_tps(*path[-1]) == best


@pytest.mark.parametrize(("high", "best"), [(0.4, 6.0), (0.6, 0.0)])
def test_the_hand_graph_reaches_its_optimum(high: float, best: float) -> None:
    """Node capacity 0.8 and 1.2 by two workers each."""
    path = walk(load("hand_graph"), replace(NODES_ONLY, high_frac=high))
    assert inter_node_tps(*path[-1]) == best


def test_ping_pong_takes_one_move() -> None:
    path = walk(load("ping_pong"), Limits(high_frac=0.85, low_frac=0.7, gain_frac=0.0))
    assert len(path) == 2
    assert inter_node_tps(*path[-1]) == 10.0


def test_small_gains_adopt_nothing() -> None:
    cluster, snapshot = load("saddle")
    assert find(cluster, snapshot, NODES_ONLY, TargetOptions()).target is not None
    # Two of four executors move, and after that nothing crosses any more.
    too_dear = TargetOptions(gain_frac=0.5, move_price_frac=1.0)
    assert find(cluster, snapshot, NODES_ONLY, replace(too_dear, gain_frac=0.49)).target is not None
    for options in (TargetOptions(gain_frac=1.0), too_dear):
        assert find(cluster, snapshot, NODES_ONLY, options).target is None


def test_a_way_through_a_placement_already_seen_is_not_taken() -> None:
    cluster, snapshot = load("saddle")
    free = find(cluster, snapshot, NODES_ONLY, TargetOptions()).target
    assert free is not None
    first = snapshot.executors.index(free.executors[0])
    there = snapshot.moved(first, cluster.workers.index(free.goals[0]))
    seen = frozenset({digest(there.place)})
    assert find(cluster, snapshot, NODES_ONLY, TargetOptions(), seen).target is None


def test_a_way_that_costs_more_than_its_end_gains_is_not_taken_while_loads_jitter() -> None:
    # Three that talk to each other, and together a little more to one that has to stay elsewhere.
    talk = dict.fromkeys([(0, 1), (1, 2), (0, 2)], 40.0) | {(e, 3): 4.0 for e in range(3)}
    cluster, snapshot = world([("a", 1.0), ("b", 1.0)], [0, 0, 0, 1], [0.1] * 4, talk)
    snapshot = replace(snapshot, pinned=(None, None, None, "stays"))
    assert find(cluster, snapshot, NODES_ONLY, TargetOptions(detours=True)).target is not None
    assert find(cluster, snapshot, NODES_ONLY, TargetOptions()).target is None


def test_the_memory_holds_the_placements_of_one_load() -> None:
    cluster, snapshot = load("saddle")
    one = TargetMemory().with_snapshot(cluster, snapshot)
    assert one.seen == {digest(snapshot.place)}
    assert len(one.with_snapshot(cluster, snapshot.moved(0, 1)).seen) == 2
    busier = replace(snapshot, cpu_cores=snapshot.cpu_cores * 2)
    assert len(one.with_snapshot(cluster, busier).seen) == 1
    tps = snapshot.traffic.tps.copy()
    tps[:2] += np.array([1.0, -1.0])
    louder = replace(snapshot, traffic=replace(snapshot.traffic, tps=tps))
    assert len(one.with_snapshot(cluster, louder).seen) == 1


def test_a_placement_and_a_load_are_called_the_same_in_every_process() -> None:
    cluster, snapshot = load("saddle")
    assert digest(np.arange(3)) == 4815527447762182558
    assert TargetMemory().with_snapshot(cluster, snapshot).load == -470548451972316068
    assert digest(("ab", "c")) != digest(("a", "bc"))
    assert digest(("a",), ("b",)) != digest(("a", "b"))


def test_a_hot_worker_is_relieved_before_the_way_goes_on() -> None:
    cluster, snapshot = load("saddle")
    policy = gather()
    first = policy(cluster, snapshot, NODES_ONLY)
    assert "towards a target" in first.reason
    hot = replace(snapshot, cpu_cores=np.array([0.5, 0.2, 0.5, 0.2]))
    assert policy(cluster, hot, NODES_ONLY) == greedy(cluster, hot, NODES_ONLY)
    assert Fit.of(cluster, hot).used.max() > 0.85


def test_a_target_is_dropped_when_its_executors_are_gone_or_it_gains_nothing() -> None:
    cluster, snapshot = load("saddle")
    goal = find(cluster, snapshot, NODES_ONLY, TargetOptions()).target
    assert goal is not None
    none = Traffic.build(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    for changed in (
        replace(snapshot, executors=("7-7", "8-8", "9-9", "10-10")),
        replace(snapshot, traffic=none),
    ):
        decision, memory = target(
            cluster,
            changed,
            NODES_ONLY,
            TargetOptions(),
            memory=TargetMemory(target=goal),
            propose=lambda: None,
        )
        assert decision == greedy(cluster, changed, NODES_ONLY)
        assert memory.target is None


@pytest.mark.parametrize(
    ("odd", "outcome"),
    [
        pytest.param(
            world([("a", 1.0), ("b", 1.0)], [0, 1], [0.2, 0.2], {}),
            Outcome.NOTHING_TO_GAIN,
            id="no traffic",
        ),
        pytest.param(
            world([("a", 1.0)], [0, 0], [0.2, 0.2], {(0, 1): 5.0}),
            Outcome.NOTHING_TO_GAIN,
            id="one worker",
        ),
        pytest.param(
            world([("a", 1.0), ("b", 1.0)], [0, 1], [2.0, 0.2], {(0, 1): 5.0}),
            Outcome.NO_LOW_WORKER,
            id="bigger than any worker",
        ),
        pytest.param(
            world([("a", 1.0), ("b", 1.0)], [0, 0], [0.0, 0.0], {(0, 0): 5.0}),
            Outcome.NOTHING_TO_GAIN,
            id="talks to itself",
        ),
    ],
)
def test_odd_input_ends_in_a_clear_outcome(odd: World, outcome: Outcome) -> None:
    policy = gather()
    decision = policy(*odd, Limits())
    assert decision.outcome is outcome
    assert decision.moves == ()
    assert "nan" not in decision.reason


def test_one_node_still_brings_traffic_into_one_worker() -> None:
    one = world([("a", 1.0), ("a", 1.0)], [0, 1], [0.2, 0.2], {(0, 1): 5.0})
    (_, end) = walk(one, Limits())[-1]
    assert end.place[0] == end.place[1]


def test_executors_without_load_gather_and_more_workers_than_executors_do_no_harm() -> None:
    rows = [(node, 1.0) for node in "abcdefgh" for _ in range(2)]
    idle = world(rows, [0, 4, 9], [0.0, 0.0, 0.0], {(0, 1): 5.0, (1, 2): 5.0})
    (_, end) = walk(idle, Limits())[-1]
    assert len(set(end.place.tolist())) == 1


def test_pinned_executors_stay_and_closed_workers_get_nobody() -> None:
    cluster, snapshot = world(
        [("a", 1.0), ("b", 1.0), ("c", 1.0)],
        [0, 1, 1, 2],
        [0.1] * 4,
        {(0, 1): 9.0, (0, 2): 9.0, (2, 3): 5.0},
    )
    pinned = replace(snapshot, pinned=("spout", None, None, None))
    shut = replace(cluster, closed=(None, "no hooks", "no hooks"))
    assert walk((shut, pinned), Limits())[-1][1].place.tolist() == [0, 0, 0, 0]
    nowhere = replace(cluster, closed=("no hooks",) * 3)
    assert len(walk((nowhere, pinned), Limits())) == 1


def annealed(place: list[int], tps: dict[tuple[int, int], float], cores: list[float]) -> Ints:
    """Anneal executors of a core each on workers of `cores`, each on a node of its own."""
    rows = [(f"n{w}", size) for w, size in enumerate(cores)]
    cluster, snapshot = world(rows, place, [1.0] * len(place), tps)
    options = TargetOptions(move_price_frac=0.0, fill_frac=1.0)
    problem = Problem.of(cluster, snapshot, Limits(high_frac=1.0), options)
    return anneal(problem, problem.start, 100, search.HOT, seed=0)


def test_annealing_crosses_a_hill_that_no_single_move_crosses() -> None:
    """Two of a kind on each side, each held by the other: together they belong elsewhere."""
    tps = {(0, 1): 5.0, (2, 3): 5.0, (0, 2): 4.0, (1, 3): 4.0}
    assert len(set(annealed([0, 0, 1, 1], tps, [4.0, 4.0]).tolist())) == 1


def test_annealing_changes_places_where_all_are_full() -> None:
    end = annealed([0, 1, 0, 1], {(0, 1): 5.0, (2, 3): 5.0}, [2.0, 2.0])
    assert end[0] == end[1] != end[2] == end[3]


def test_annealing_empties_what_is_too_full_and_leaves_what_nobody_can_help() -> None:
    tps = {(0, 1): 5.0, (1, 2): 3.0, (2, 3): 1.0}
    assert annealed([0, 0, 0, 1], tps, [2.0, 2.0]).tolist() == [0, 0, 1, 1]
    assert annealed([0, 0, 0, 1], tps, [1.0, 1.0]).tolist() == [0, 0, 1, 1]
    assert annealed([0, 0, 1, 1], tps, [0.5, 0.5]).tolist() == [0, 0, 1, 1]


def test_a_group_goes_together_although_its_first_alone_would_lose() -> None:
    """Three that belong together and gain 6 each as a group come before one that gains 5."""
    traffic = {(0, 1): 9.0, (1, 2): 9.0, (0, 2): 9.0, (3, 4): 5.0}
    traffic |= {(0, 5): 6.0, (1, 5): 6.0, (2, 5): 6.0}
    rows = [("a", 9.0), ("b", 9.0), ("c", 9.0)]
    cluster, snapshot = world(rows, [0, 0, 0, 0, 2, 1], [0.1] * 6, traffic)
    problem = Problem.of(cluster, snapshot, NODES_ONLY, TargetOptions())
    way = route(problem, np.array([1, 1, 1, 2, 2, 1]))
    assert sorted(way.executors[:3].tolist()) == [0, 1, 2]
    assert way.executors[3] == 3


def test_two_in_each_others_way_move_at_once_though_a_third_place_has_room() -> None:
    rows = [("a", 1.0), ("b", 1.0), ("c", 1.0)]
    cluster, snapshot = world(rows, [0, 0, 1, 1], [0.4] * 4, {(0, 2): 5.0, (1, 3): 5.0})
    problem = Problem.of(cluster, snapshot, NODES_ONLY, TargetOptions())
    way = Route(np.array([0, 3]), np.array([1, 0]))
    steps = next_steps(problem, problem.fit, way)
    assert steps == ((0, 1), (3, 0))


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("workers", [2, 3, 6])
def test_a_ring_moves_in_one_decision_whatever_the_cap(workers: int, most: int) -> None:
    """On each worker one stays, and one belongs to the next worker's; all are full."""
    rows = [(f"n{w}", 1.0) for w in range(workers)]
    place = [w for w in range(workers) for _ in range(2)]
    traffic = {(2 * w + 1, 2 * ((w + 1) % workers)): 5.0 for w in range(workers)}
    cluster, snapshot = world(rows, place, [0.4] * len(place), traffic)
    pinned = tuple(None if e % 2 else "stays" for e in range(len(place)))
    path = walk((cluster, replace(snapshot, pinned=pinned)), replace(NODES_ONLY, max_moves=most))
    assert len(path) == 2
    assert inter_node_tps(*path[-1]) == 0.0


def test_of_many_alike_on_full_workers_the_best_is_found_and_reached() -> None:
    """No single move fits: ten of each worker's 0.85 cores, 0.078 each, and 0.85 are the limit."""
    kind = Kind(400, TIGHT, is_uneven=False, pinned_frac=0.15, is_alike=True)
    cluster, snapshot = fresh_world(kind, 1)
    found = find(cluster, snapshot, Limits(), TargetOptions())
    today_tps = Problem.of(cluster, snapshot, Limits(), TargetOptions()).today_tps
    assert found.beyond == ""
    assert found.target is not None
    assert found.target.gain_tps > 0.9 * today_tps


def test_like_workers_and_nodes_keep_what_they_hold() -> None:
    """A search may find what is there already, under other names."""
    rows = [("a", 1.0), ("a", 1.0), ("b", 1.0), ("b", 1.0)]
    traffic = {(0, 1): 5.0, (2, 3): 5.0, (4, 5): 5.0, (6, 7): 5.0, (1, 2): 1.0, (5, 6): 1.0}
    cluster, snapshot = world(rows, [0, 0, 1, 1, 2, 2, 3, 1], [0.1] * 8, traffic)
    problem = Problem.of(cluster, snapshot, Limits(), TargetOptions())
    elsewhere = np.array([3, 3, 2, 2, 0, 0, 1, 1])  # the nodes, and then workers of one of them
    assert search.renamed(problem, elsewhere).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    # Nobody goes where nobody may go.
    last_closed = replace(cluster, closed=(None, None, None, "closed"))
    closed = replace(problem, fit=replace(problem.fit, cluster=last_closed))
    there = search.renamed(closed, elsewhere) == 3
    assert there.tolist() == (elsewhere == 3).tolist()
    # Without the first one, who stays, all would cost more.
    stays = replace(problem, free=np.arange(8) != 0)
    assert search.renamed(stays, elsewhere).tolist() == elsewhere.tolist()


def test_a_ring_is_the_shortest_that_fits() -> None:
    rows = [("a", 1.0), ("b", 1.0), ("c", 1.0)]
    sizes = [0.4, 0.4, 0.4, 0.4, 0.8]
    cluster, snapshot = world(rows, [0, 0, 1, 1, 2], sizes, {(0, 2): 5.0})
    problem = Problem.of(cluster, snapshot, NODES_ONLY, TargetOptions())

    def ring(*row: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        executors, goals = np.array(row).T
        way = Route(executors, goals)
        return next_steps(problem, problem.fit, way)

    # Where 4 would come, 0 does not make room enough.
    assert ring((4, 0), (0, 1), (2, 2)) == ()
    assert ring((4, 0), (1, 1), (2, 0)) == ((1, 1), (2, 0))


def test_two_small_ones_change_places_with_a_big_one() -> None:
    rows = [("a", 1.0), ("b", 1.0)]
    traffic = {(0, 4): 5.0, (1, 4): 5.0, (3, 2): 5.0}
    cluster, snapshot = world(rows, [0, 0, 0, 1, 1], [0.2, 0.2, 0.45, 0.4, 0.45], traffic)
    full = cluster, replace(snapshot, pinned=(None, None, "stays", None, "stays"))
    decision = gather()(*full, NODES_ONLY)
    assert (len(decision.moves), decision.is_exchange) == (3, True)
    assert applied(decision.moves, *full).place.tolist() == [1, 1, 0, 0, 1]


def test_full_workers_exchange_executors_that_are_not_quite_alike() -> None:
    """Whichever two change places, one of the workers gets fuller, by less than 1 % of its load."""
    rows = [("a", 1.0), ("b", 1.0)]
    full = world(rows, [0, 0, 1, 1], [0.46, 0.47, 0.465, 0.462], {(0, 3): 5.0, (2, 1): 5.0})
    path = walk(full, NODES_ONLY)
    assert len(path) == 2
    assert inter_node_tps(*path[-1]) == 0.0
    # By more than that none does, but where the load is not known so well.
    unlike = world(rows, [0, 0, 1, 1], [0.46, 0.47, 0.48, 0.45], {(0, 3): 5.0, (2, 1): 5.0})
    assert len(walk(unlike, NODES_ONLY)) == 1
    cluster, snapshot = unlike
    doubtful = replace(snapshot, cpu_var=np.full(4, 0.008**2))
    decision = gather()(cluster, doubtful, NODES_ONLY)
    assert decision.is_exchange
    assert len(decision.moves) == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_full_cluster_of_measured_sizes_brings_its_traffic_together(seed: int) -> None:
    """Eight spouts to eight bolts, one to one, over four nodes, no two of one size."""
    chance = np.random.default_rng(seed)
    rows = [(f"n{w // 2}", 1.0) for w in range(8)]
    sizes = [*chance.lognormal(np.log(0.4), 0.05, 8), *chance.lognormal(np.log(0.55), 0.05, 8)]
    traffic = {(e, 8 + (e + 2) % 8): 5.0 for e in range(8)}
    start = world(rows, [*range(8), *range(8)], sizes, traffic)
    path = walk(start, NODES_ONLY)
    assert inter_node_tps(*path[-1]) <= 0.25 * inter_node_tps(*start)
    peak = Fit.of(*start).used
    for step in path:
        load = Fit.of(*step).used
        assert (load <= np.maximum(NODES_ONLY.high_frac, peak * 1.01) + 1e-9).all()
        peak = np.maximum(peak, load)


def test_what_is_known_and_out_of_reach_is_said() -> None:
    """36 small ones would have to change places with a big one: more than go at once."""
    rows = [("a", 1.0), ("b", 1.0)]
    traffic = {(e, 38): 5.0 for e in range(36)} | {(36, 37): 5.0}
    sizes = [0.0125] * 36 + [0.45, 0.4, 0.4]
    cluster, snapshot = world(rows, [0] * 36 + [1, 0, 1], sizes, traffic)
    stuck = cluster, replace(snapshot, pinned=(*[None] * 37, "stays", "stays"))
    decision = gather()(*stuck, NODES_ONLY)
    assert decision.moves == ()
    assert (
        "a placement that gains 185 t/s more is known and out of reach: 37 of its 37 executors "
        "wait for room; 0.013 cores more on b:6701 would let "
    ) in decision.reason
    room = replace(cluster, capacity_cores=np.array([1.0, 1.3]))
    assert walk((room, stuck[1]), NODES_ONLY)[-1][1].place.tolist() == [1] * 36 + [0, 0, 1]


def test_a_search_finds_what_pays_while_a_node_has_to_stay_hot() -> None:
    """Each relief of n2 fills a link too much; elsewhere two executors belong together."""
    places = replace(
        cluster_of((1, 1, 1)), node_cores=np.ones(3), link_bytes_s=np.full((2, 3), 60.0)
    )
    traffic = [(0, 1, 50.0), (2, 3, 900.0)]
    start = snapshot_of(["c"] * 5, [0, 1, 2, 2, 0], [0.1, 0.1, 0.5, 0.45, 0.1], traffic)
    sizes = np.ones(len(start.traffic.tps))
    start = replace(start, traffic=replace(start.traffic, size_bytes=sizes))
    found = find(places, start, Limits(), TargetOptions().on_still_loads).target
    assert found is not None
    assert {*found.executors} <= {"0-0", "1-1"}
    assert found.gain_tps > 0


def test_no_step_of_a_way_overfills_a_link() -> None:
    """The first to move would leave all its traffic behind, on a link that bears a tenth of it."""
    places = replace(cluster_of((1, 1)), node_cores=np.ones(2), link_bytes_s=np.full((2, 2), 100.0))
    start = snapshot_of(["c"] * 3, [0, 0, 1], [0.1] * 3, [(0, 1, 900.0), (1, 2, 50.0)])
    sizes = np.ones(len(start.traffic.tps))
    start = replace(start, traffic=replace(start.traffic, size_bytes=sizes))
    way = Route(np.array([1, 0]), np.array([1, 1]))

    def steps(bytes_s: float) -> tuple[tuple[int, int], ...]:
        cluster = replace(places, link_bytes_s=np.full((2, 2), bytes_s))
        problem = Problem.of(cluster, start, Limits(), TargetOptions())
        return next_steps(problem, problem.fit, way)

    assert steps(10_000.0) == ((1, 1),)
    # Together they leave nothing behind.
    assert steps(100.0) == ((1, 1), (0, 1))


def test_the_way_goes_on_where_a_relief_would_fill_a_link_too_much() -> None:
    places = replace(
        cluster_of((1, 1, 1)),
        node_cores=np.ones(3),
        link_bytes_s=np.full((2, 3), 60.0),
    )
    start = snapshot_of(
        ["c"] * 5, [0, 1, 2, 2, 0], [0.1, 0.1, 0.5, 0.45, 0.1], [(0, 1, 50.0), (2, 3, 900.0)]
    )
    sizes = np.ones(len(start.traffic.tps))
    start = replace(start, traffic=replace(start.traffic, size_bytes=sizes))
    goal = Target(("0-0",), ("n1:6700",), 50.0, input_tps=start.traffic.total_tps)
    view = View.of(places, start, Limits())
    assert view.fit.surely_high.tolist() == [2]
    assert view.overfills_a_link(2, 0)

    def decided(bytes_s: float) -> tuple[Decision, TargetMemory]:
        return target(
            replace(places, link_bytes_s=np.full((2, 3), bytes_s)),
            start,
            Limits(),
            TargetOptions(detours=True),
            memory=TargetMemory(target=goal),
            propose=lambda: None,
        )

    decision, memory = decided(60.0)
    assert memory.target == goal
    assert [(move.executor, move.target) for move in decision.moves] == [("0-0", "n1:6700")]
    # Where links carry more, the relief comes first.
    decision, memory = decided(6000.0)
    assert memory.target is None
    assert decision.moves[0].source == "n2:6700"


def test_a_cpu_is_not_relieved_where_a_link_is_full_first() -> None:
    places = replace(
        cluster_of((1, 1, 1)), node_cores=np.ones(3), link_bytes_s=np.full((2, 3), 1000.0)
    )
    start = snapshot_of(["c"] * 4, [0, 1, 2, 2], [0.1, 0.1, 0.5, 0.4], [(0, 1, 99.0), (2, 3, 1.0)])

    def decided(size_bytes: float, cores: float = 0.4) -> Decision:
        sizes = np.full(len(start.traffic.tps), size_bytes)
        sized = replace(start, traffic=replace(start.traffic, size_bytes=sizes))
        demand = np.array([0.1, 0.1, 0.5, cores])
        return greedy(places, replace(sized, cpu_cores=demand), Limits())

    def relieved(decision: Decision) -> bool:
        return [move.source for move in decision.moves] == ["n2:6700"]

    # At 0.9 of the CPU: the link has more room, then less.
    assert relieved(decided(8.6))
    held = decided(9.8)
    assert not relieved(held)
    assert held.warnings == (
        "n2 at 0.9 of its CPU is above 0.85, and not relieved: the link of n0 is full first",
    )
    # A CPU that is full is relieved all the same.
    assert relieved(decided(9.8, cores=0.5))
