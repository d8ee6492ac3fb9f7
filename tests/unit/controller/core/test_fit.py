"""What fits where, and that no other file computes it."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.core.capacity import Capacity, why_not_all
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.fit import Fit, beside_each_other, outside_cores
from controller.core.limits import Limits
from controller.core.loops.annealing import shift
from controller.policies.greedy import greedy
from migration.model import Node

ROOT = Path(__file__).parent.parent.parent.parent.parent
# Load, capacity and limits: only `Fit` computes with them or compares them.
AMOUNTS = frozenset(
    {
        "TOLERANCE_CORES",
        "capacity_cores",
        "cpu_cores",
        "demand",
        "high_cores",
        "high_frac",
        "load_cores",
        "low_frac",
        "room",
        "room_cores",
        "used",
    }
)
# Where one is computed with or compared all the same, and why.
ALLOWED = {
    "controller/assess/storm_ui.py": "what workers of Storm's UI have, before there is a `Fit`",
    "controller/core/allowed.py": "the room for moves in a plan",
    "controller/core/capacity.py": "what fits by single numbers, for commands, which load no numpy",
    "controller/core/fit.py": "here it belongs",
    "controller/core/loops/moves.py": "loops of `Fit`, and of two executors that move together",
    "controller/core/loops/traffic.py": "the CPU that a tuple's way costs, before there is a load",
    "controller/core/layout.py": "shares out the measured CPU that no executor owns",
    "controller/core/slow_host.py": "what a tuple costs on each host, which decides nothing",
    "controller/ingest/world.py": "totals of the CPU of tables, as reports of workers have them",
    "controller/journal/writer.py": "the room on a disk",
    "controller/pipeline/hours.py": "adds up a log by hour",
    "controller/policies/aniello.py": "a paper's own packing",
    "controller/policies/gather/anneal.py": "what executors use far from their peers, for a search",
    "controller/policies/heterogeneity.py": "a paper's own packing",
    "controller/policies/model_driven/policies.py": "a paper's own packing",
    "controller/replay/rerun.py": "the CPU that a tick lacks, for its figures",
    "controller/weeks/disturbed.py": "a report of past hours, which decides nothing",
    "controller/weeks/hosts.py": "a report of past hours, which decides nothing",
    "controller/weeks/hours.py": "a report of past hours, which decides nothing",
    "controller/weeks/need.py": "a report of past hours, which decides nothing",
}


def fit(place: list[int], demand: list[float], var: list[float] | None = None) -> Fit:
    """Put executors on two workers of 1 core and one of 2, of which 0.8 may be used."""
    rows = [("a:1", "a", 1.0), ("a:2", "a", 1.0), ("b:1", "b", 2.0)]
    cluster = Cluster.build("ab", rows)
    limits = Limits(high_frac=0.8, low_frac=0.4)
    demand_var = None if var is None else np.array(var)
    return Fit.at(cluster, np.array(place), np.array(demand), limits, demand_var)


def test_load_is_added_up_and_compared_with_both_limits() -> None:
    found = fit([0, 0, 1], [0.5, 0.4, 0.3])
    assert found.used == pytest.approx([0.9, 0.3, 0.0])
    assert found.frac == pytest.approx([0.9, 0.3, 0.0])
    assert found.room == pytest.approx([-0.1, 0.5, 1.6])
    assert found.is_high.tolist() == [True, False, False]
    assert found.is_low.tolist() == [False, True, True]
    assert found.excess == pytest.approx(0.1)
    assert found.binding == 0


def test_exactly_at_the_limit_is_not_high_whatever_the_order_of_the_sum() -> None:
    found = fit([0] * 8, [0.1] * 8)
    assert found.used[0] != 0.8, "in this order the sum is not exact"
    assert not found.is_high.any()
    assert found.excess == 0


def test_what_fits_has_no_reason_not_to() -> None:
    found = fit([0, 0, 1], [0.6, 0.2, 0.7])
    assert found.fits(np.array([1, 1, 0]), np.array([1, 2, 2])).tolist() == [False, True, True]
    assert found.why_not(1, 2) is None
    assert found.why_not(1, 1) == "it does not fit: 0.2 cores, room for 0.1"
    assert found.why_not(1, 1, limit=np.ones(3)) is None
    assert found.why_not(1, 0) == "it does not fit: 0.2 cores, room for 0"


def test_each_reason_is_one_sentence_with_the_figures() -> None:
    found = fit([0, 0, 1], [1.8, 0.2, 0.7])
    assert found.how_high(0) == "a:1 at 2 of its CPU is above 0.8"
    assert found.what_is_missing() == "a:1 above 0.8 of the CPU by 1.2 cores in all"
    assert found.too_large(0) == "alone needs 1.8 cores, more than 0.8 of any worker"
    assert found.too_large(1) is None
    assert found.need(2) == "0.7 cores"
    assert found.shown_room(2) == "1.6 cores"
    assert fit([0], [0.5]).why_balanced() == "no worker is above 0.8 or below 0.4 of its CPU"
    assert why_not_all(0.6, 0.6, "others") is None
    too_much = "need 0.6 cores, and others have 0.5 below load.high"
    assert why_not_all(0.6, 0.5, "others") == too_much
    nowhere = found.why_nowhere(1, np.where([True, True, False], found.limit, -np.inf))
    assert nowhere == (
        "needs 0.2 cores, and no worker or free slot elsewhere has more than 0.1 below 0.8 of "
        "its CPU"
    )


def test_a_demand_that_is_no_number_fits_nowhere() -> None:
    found = fit([0, 1], [np.nan, 0.1])
    assert not found.fits(np.array([0]), np.array([2])).any()


def test_a_move_gives_the_same_as_to_place_all() -> None:
    before = fit([0, 0, 1], [0.5, 0.4, 0.3])
    moved, placed = before.moved(1, 2), before.placed(np.array([0, 2, 1]))
    assert moved.used == pytest.approx(placed.used)
    assert moved.place.tolist() == placed.place.tolist()
    assert before.place.tolist() == [0, 0, 1]
    assert before.used == pytest.approx([0.9, 0.3, 0.0])
    assert moved.overfilled(before) is None
    fuller = before.moved(2, 0).overfilled(before)
    assert fuller == "a:1 would use 120% of its CPU, and load.high is 80%"


def test_sums_after_a_move_do_not_depend_on_the_way() -> None:
    moved = fit([0, 1, 0, 0], [0.4, 0.05, 1.1, 1.1]).moved(1, 0)
    assert moved.used.tolist() == fit([0, 0, 0, 0], [0.4, 0.05, 1.1, 1.1]).used.tolist()


def test_a_worker_is_surely_high_beyond_its_noise() -> None:
    assert fit([0, 1], [0.9, 0.3], [0.02**2, 0.0]).surely_high.tolist() == [0]
    assert fit([0, 1], [0.9, 0.3], [0.04**2, 0.0]).surely_high.tolist() == []


def test_what_moves_at_once_fits_together() -> None:
    found = fit([0, 1, 1], [0.7, 0.7, 0.1])
    ends = np.array([0, 1]), np.array([1, 0])
    assert not found.fits(*ends).any()
    assert found.fits_together(*ends, found.limit).all()
    bigger = np.array([0, 1, 2]), np.array([1, 0, 0])
    assert found.fits_together(*bigger, found.limit).tolist() == [True, True, True]
    assert fit([0, 1, 2], [0.7, 0.7, 0.2]).fits_together(*bigger, found.limit).tolist() == [
        False,
        True,
        True,
    ]


def test_a_load_that_fell_within_its_noise_counts_as_before() -> None:
    before = fit([0, 1], [0.9, 0.3])
    after = replace(before, used=before.used - [0.005, 0.005, 0.0])
    assert after.steadied(before, np.array([True, False, True])).used.tolist() == [
        before.used[0],
        after.used[1],
        0.0,
    ]
    fell = replace(before, used=before.used - [0.05, 0.0, 0.0])
    assert fell.steadied(before, np.ones(3, np.bool_)).used[0] == fell.used[0]


def test_a_worker_shares_its_node_with_what_is_in_use_and_what_comes() -> None:
    node = Node("n", "n", 400.0, (1, 2, 3, 4), 3)
    assert Capacity().of(node, more=0) == pytest.approx(4 / 3)
    assert Capacity().of(node, more=1) == 1.0
    assert Capacity().of(Node("n", "n", 400.0, (1,), 0), more=0) == 4.0


def test_a_shift_counts_what_is_too_much_at_both_ends() -> None:
    left = np.array([[-0.2, 0.1, 0.5]])
    assert shift(left, 0, 0, 1, 0.3, 0.3) == pytest.approx(0.2 - 0.2)
    assert left[0] == pytest.approx([0.1, -0.2, 0.5])
    assert shift(left, 0, 1, 2, 0.3, 0.3) == pytest.approx(-0.2)
    assert left[0] == pytest.approx([0.1, 0.1, 0.2])


OTHER_TESTS = ast.In, ast.NotIn, ast.Is, ast.IsNot


def amounts_in(source: str) -> Iterator[str]:
    """Yield the code in which a load, a capacity or a limit is computed with or compared."""
    for node in ast.walk(ast.parse(source)):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Compare) and not isinstance(node.ops[0], OTHER_TESTS):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.AugAssign):
            operands = [node.target, node.value]
        if any(name_of(one) in AMOUNTS for one in operands):
            yield ast.unparse(node)


def name_of(operand: ast.expr) -> str:
    """Name a variable, an attribute, or what it is an entry of."""
    while isinstance(operand, ast.Subscript | ast.UnaryOp):
        operand = operand.value if isinstance(operand, ast.Subscript) else operand.operand
    return getattr(operand, "attr", getattr(operand, "id", ""))


def test_no_other_file_computes_with_loads_or_compares_them() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): rows
        for path in sorted((ROOT / "controller").rglob("*.py"))
        if (rows := list(amounts_in(path.read_text())))
    }
    assert {name: rows for name, rows in found.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() <= found.keys(), "what is allowed and not there any more"


@pytest.mark.parametrize(
    "line",
    [
        "load_cores + cores <= limits.high_frac * capacity",
        "fit.room[w] < -1e-9",
        "left[w] -= snapshot.cpu_cores[e]",
        "cluster.capacity_cores * count / (count + 1)",
    ],
)
def test_a_fit_test_of_its_own_is_found(line: str) -> None:
    assert list(amounts_in(line))


def shared(place: list[int], demand: list[float], *, tps: float = 0.0, others: float = 0.0) -> Fit:
    """Put executors on two workers of a node and one of another; each node has 2 cores.

    The first two executors exchange tuples; others use a part of the first node.
    """
    rows = [("a:1", "a", 1.0), ("a:2", "a", 1.0), ("b:1", "b", 2.0)]
    cluster = replace(
        Cluster.build("ab", rows),
        node_cores=np.array([2.0, 2.0]),
        other_cores=np.array([others, 0.0]),
    )
    return Fit.of(cluster, load(place, demand, tps), Limits(high_frac=0.8, low_frac=0.4))


def load(place: list[int], demand: list[float], tps: float) -> LoadSnapshot:
    return LoadSnapshot(
        topology="t",
        time_s=0.0,
        components=(),
        edges=(),
        executors=tuple(f"{e}-{e}" for e in range(len(place))),
        component_of=("c",) * len(place),
        place=np.array(place),
        cpu_cores=np.array(demand),
        queue=np.zeros(len(place)),
        pinned=(None,) * len(place),
        traffic=Traffic.build(np.array([0]), np.array([1]), np.array([tps])),
    )


def test_a_full_node_of_two_workers_is_warned_of_once() -> None:
    fit = shared([0, 1, 2], [0.9, 0.5, 0.3], others=1.0)
    held = load([0, 1, 2], [0.9, 0.5, 0.3], 0.0).holding(dict.fromkeys(range(3), "a test"))
    (warning,) = greedy(fit.cluster, held, fit.limits).warnings
    assert warning.startswith("a at 1.2 of its CPU, 0.5 of it by others")


def test_workers_of_a_node_share_its_cores() -> None:
    found = shared([0, 1, 2], [0.9, 0.5, 0.3], others=0.3)
    assert found.used.tolist() == pytest.approx([1.7, 1.7, 0.3])
    assert found.own.tolist() == [0.9, 0.5, 0.3]
    assert found.levels == ["high", "high", "low"]
    assert found.excess == pytest.approx(0.1)
    assert found.how_high(1) == "a at 0.85 of its CPU, 0.15 of it by others, is above 0.8"
    assert found.what_is_missing() == "a above 0.8 of the CPU by 0.1 cores in all"
    assert found.room_by_node() == pytest.approx({"a": -0.1, "b": 1.3})
    # Within a node a move takes nothing; away from it, it takes what the executor uses.
    relief = found.relief(np.array([0, 0]), np.array([1, 2]), 0, found.limit)
    assert relief.tolist() == pytest.approx([0, 0.1])
    assert found.has_room(0, 1)
    assert found.has_room(0, 2)
    assert not found.has_room(2, 0)
    # Others leave 1.7 cores of the first node.
    assert found.growth == pytest.approx(1.7 / 1.4)
    assert found.by(np.array([0, 0, 1]), 2)[1].tolist() == [2.0, 2.0]
    assert found.by(np.arange(3), 3)[1].tolist() == [2.0, 2.0, 2.0]


def test_a_node_that_others_fill_makes_no_worker_high_that_has_no_executor() -> None:
    found = shared([2, 2], [0.1, 0.1], others=1.9)
    assert found.is_high.tolist() == [True, True, False]
    assert found.surely_high.size == 0
    assert shared([0, 2], [0.1, 0.1], others=1.9).surely_high.tolist() == [0]


@pytest.mark.parametrize(
    ("share", "behind"),
    [
        (0.8, []),  # not high itself
        (0.85, []),  # less full than the CPU
        (0.95, [0]),
        (5e6, [0]),  # nothing is left of it
    ],
)
def test_a_cpu_is_behind_what_is_fuller(share: float, behind: list[int]) -> None:
    # Others use 1 core of 2, so 0.9 of what is left is used.
    assert shared([0, 2], [0.9, 0.1], others=1.0).high_behind(share).tolist() == behind
    # A CPU that is full is behind nothing.
    assert shared([0, 2], [1.1, 0.1], others=1.0).high_behind(share).size == 0
    assert fit([0, 1], [0.9, 0.3]).high_behind(share).size == 0


def test_an_executor_is_not_too_large_where_others_leave_too_little() -> None:
    found = shared([0, 2], [1.5, 0.1], others=1.9).beside(
        np.array([1.9, 0.5]), np.zeros(2), np.zeros(2)
    )
    assert found.too_large(0) == "needs 1.5 cores, and others leave 1.1 cores below 0.8 at most"
    assert found.too_large(1) is None
    full = found.beside(np.array([1.9, 1.8]), np.zeros(2), np.zeros(2))
    assert full.too_large(1) == "needs 0.1 cores, and others leave 0 cores below 0.8 at most"


def test_tuples_between_workers_cost_at_both_ends() -> None:
    apart = shared([0, 2], [0.5, 0.4], tps=100_000)
    together = apart.moved(0, 2)
    assert together.used.tolist() == pytest.approx([0, 0, 0.9 - 2 * 0.109])
    assert together.demand.tolist() == pytest.approx([0.391, 0.291])
    near = together.moved(0, 0).moved(1, 1)
    assert near.used.tolist() == pytest.approx([0.9 - 2 * (0.109 - 0.0905)] * 2 + [0])
    # All of it would be more than there is: then it counts less.
    most = shared([0, 2], [0.05, 0.04], tps=1_000_000).moved(0, 2)
    assert most.used[2] == pytest.approx(0.4 * 0.09)


def test_one_that_lags_counts_with_what_it_would_use_to_keep_up() -> None:
    def used(others: float, times: float, cores: float = 0.4) -> list[float]:
        found = shared([0, 1, 2], [cores, 0.4, 0.3], others=others)
        snapshot = load([0, 1, 2], [cores, 0.4, 0.3], tps=0.0)
        snapshot = replace(snapshot, wanted_times=np.array([times, 1.0, 1.0]))
        found = Fit.of(found.cluster, snapshot, found.limits)
        return [round(float(found.used[worker]), 6) for worker in (0, 2)]

    assert used(0.3, 1.5) == [1.3, 0.3]
    # A CPU that has much left is not what it waits for.
    assert used(0.0, 1.5) == [0.8, 0.3]
    # It is one thread.
    assert used(0.0, 2.0, cores=0.8) == [1.4, 0.3]
    assert used(0.0, 2.0, cores=1.2) == [1.6, 0.3]


def test_a_relief_counts_by_what_is_sure_of_hops() -> None:
    """The peer that stays has to send over the network: 0.109 cores, or as much more."""

    def relief(second: float, doubt: float) -> float:
        found = shared([0, 0, 2], [1.7 - second, second, 0.1], tps=100_000)
        found = replace(found, cluster=replace(found.cluster, hop_doubt=doubt))
        return float(found.relief(np.array([1]), np.array([2]), 0, found.limit)[0])

    assert relief(0.7, 0.0) == pytest.approx(0.1)
    assert relief(0.2, 0.0) == pytest.approx(0.2 - 0.109)
    assert relief(0.2, 0.5) == pytest.approx(0.2 - 1.5 * 0.109)
    assert relief(0.2, 1.0) == 0.0


def test_a_placement_leaves_as_much_room_for_input_as_now() -> None:
    found = shared([0, 1, 2], [0.2, 0.2, 0.3])
    assert found.growth == pytest.approx(5.0)
    assert found.filled(0.95).tolist() == pytest.approx([0.4, 0.4, 0.4])
    assert found.on_the_way.tolist() == pytest.approx([1.0, 1.0, 1.0])  # by `headroom.min`, 2
    assert found.keeping(2.5).filled(0.95).tolist() == pytest.approx([0.8, 0.8, 0.8])
    assert found.limit_or_used(1.0).tolist() == pytest.approx([0.4, 0.4, 0.4])
    assert found.why_not(2, 0, found.limit) is None
    why = "it does not fit: 0.3 cores, room for 0 if head-room stays at 5"
    assert found.why_not(2, 0, found.filled(0.95)) == why
    full = shared([0, 1, 2], [0.9, 0.8, 0.3])
    assert full.filled(1.0).tolist() == pytest.approx([1.6, 1.6, 1.6])
    assert full.on_the_way.tolist() == pytest.approx([1.6, 1.6, 1.6])


def test_what_bears_no_peak_may_stay_and_nothing_else_becomes_like_it() -> None:
    calm = shared([0, 1, 2], [0.2, 0.2, 0.3])  # input may grow 5 times
    found = replace(calm, peak_times=4.0)
    assert found.filled(0.95).tolist() == pytest.approx([0.4, 0.4, 0.4])
    # On the way room stays for all that there is now, less than twice the peak.
    assert found.on_the_way.tolist() == pytest.approx([0.4, 0.4, 0.4])
    assert calm.on_the_way.tolist() == pytest.approx([1.0, 1.0, 1.0])
    higher = replace(calm, peak_times=8.0)
    assert higher.filled(0.95).tolist() == pytest.approx([0.4, 0.4, 0.3])
    assert replace(calm, peak_times=10.0).filled(0.95).tolist() == pytest.approx([0.4, 0.4, 0.3])
    uneven = replace(shared([0, 1, 2], [0.2, 0.2, 0.1]), peak_times=8.0)
    assert uneven.filled(0.95).tolist() == pytest.approx([0.4, 0.4, 0.25])


def test_room_is_wanted_up_to_headroom_min_as_far_as_all_nodes_have_it() -> None:
    found = shared([0, 1, 2], [0.6, 0.6, 0.1])
    assert found.wanted == 2.0
    assert found.roomy.tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert found.how_short(0) == "input can grow 1.67 times until a is full, and 2 times is wanted"
    # All nodes together have less than twice: none has to leave more than nearly all have.
    full = shared([0, 1, 2], [0.9, 0.8, 0.9])
    assert full.wanted == pytest.approx(4 / 2.6 / 1.1)
    # Where a link has less, so much is enough.
    assert found.keeping(1.3).wanted == 1.3
    # At the peak input grows to three times what it is.
    peak = replace(shared([0, 1, 2], [0.2, 0.3, 0.1]), peak_times=3.0)
    assert peak.wanted == 6.0
    assert replace(peak, peak_times=4.0).wanted == pytest.approx(4 / 0.6 / 1.1)
    assert replace(peak, peak_times=7.0).wanted == 7.0


@pytest.mark.parametrize(
    ("place", "demand", "var", "short"),
    [
        ([0, 1, 2], [0.6, 0.6, 0.1], 0.0, [0, 1]),
        ([0, 0, 2], [0.6, 0.6, 0.1], 0.0, [0]),
        ([0, 1, 2], [0.6, 0.6, 0.1], 0.01, []),  # it may be chance
        ([0, 1, 2], [0.5, 0.48, 0.1], 0.0, []),  # it leaves what is wanted
        ([0, 1, 2], [0.5, 0.52, 0.1], 0.0, []),  # or nearly
        ([0, 1, 2], [0.7, 0.7, 1.38], 0.0, []),  # another node leaves hardly more
    ],
)
def test_the_one_node_that_leaves_too_little_room_is_named(
    place: list[int], demand: list[float], var: float, short: list[int]
) -> None:
    found = replace(shared(place, demand), demand_var=np.array([var, var, 0.0]))
    assert found.short.tolist() == short


def test_workers_with_cpu_of_their_own_are_short_of_no_room() -> None:
    assert fit([0, 0, 1], [0.4, 0.3, 0.1]).short.size == 0


def test_topologies_that_share_nodes_count_each_other_at_their_peaks() -> None:
    one, other = shared([0, 1, 2], [0.2, 0.2, 0.2]), shared([0, 0, 2], [0.1, 0.1, 0.3])
    found = beside_each_other({"one": one, "other": replace(other, peak_times=5.0)}, [])
    # It uses 0.2 and 0.3 cores now, and five times as much at its peak.
    assert found["one"].used.tolist() == pytest.approx([0.6, 0.6, 0.5])
    assert found["one"].levels == ["low", "low", "low"]
    assert found["one"].left_at_peaks.tolist() == pytest.approx([1.0, 1.0, 0.5])
    assert found["one"].growth == pytest.approx(2.5)
    assert found["one"].spared.tolist() == pytest.approx([0.6, 0.6, 0.3 + 0.5 / 2.5])
    # Trouble goes first: what is relieved may use what others need later.
    assert found["one"].may_fill.tolist() == pytest.approx([1.6, 1.6, 1.6])
    assert found["other"].left_at_peaks.tolist() == pytest.approx([1.6, 1.6, 1.8])


def test_processes_outside_of_storm_take_room_of_their_node_alone() -> None:
    nodes = [Node("a", "ha", 200.0, (1, 2), 2), Node("b", "hb", 200.0, (1,), 1)]
    used = [("a", 0.9), ("a", 0.5), ("b", 0.3)]
    unknown = np.full(2, np.nan)
    assert outside_cores(nodes, used, unknown, unknown) == {}
    busy = np.array([1.4 + 0.5, 0.3])
    found = outside_cores(nodes, used, busy, np.array([2.0, 2.0]))
    assert found == {"a": pytest.approx(0.5)}
    fit = beside_each_other({"t": shared([0, 1, 2], [0.9, 0.5, 0.3])}, [], found)["t"]
    assert fit.used.tolist() == pytest.approx([1.9, 1.9, 0.3])
    assert fit.levels == ["high", "high", "low"]


def test_what_a_machine_has_for_others_is_not_taken_from_storm() -> None:
    nodes, used = [Node("a", "ha", 200.0, (1,), 1)], [("a", 1.0)]
    # Of 8 cores Storm has 2, and all but 1.5 are in use, 1 by a worker: it may have half a core.
    assert outside_cores(nodes, used, np.array([6.0]), np.array([8.0])) == {}
    assert outside_cores(nodes, used, np.array([7.5]), np.array([8.0])) == {"a": 0.5}
    # And a machine of 1.5 cores has no 2, whatever Storm counts.
    assert outside_cores(nodes, used, np.array([1.0]), np.array([1.5])) == {"a": 0.5}


def test_nodes_that_share_a_machine_share_what_it_has_left() -> None:
    nodes = [Node("a", "ha", 100.0, (1,), 1), Node("b", "hb", 100.0, (1,), 1)]
    busy, cores = np.array([1.1, 1.1]), np.array([2.0, 2.0])
    assert outside_cores(nodes, [("a", 0.8), ("b", 0.3)], busy, cores) == {}
    full = outside_cores(nodes, [("a", 0.8), ("b", 0.3)], busy + 0.9, cores)
    assert full == pytest.approx({"a": 0.2, "b": 0.7})


def test_a_worker_that_starts_is_no_load_of_others() -> None:
    fit = shared([0, 1, 2], [0.9, 0.5, 0.3])
    node = Node("b", "hb", 200.0, (1, 2), 2)
    found = beside_each_other({"t": fit}, [node], {"b": 1.3})["t"]
    assert found.used.tolist() == pytest.approx([1.4, 1.4, 0.3])
    assert found.may_fill[2] == pytest.approx(0.3)


def test_a_topology_that_is_not_heard_of_is_no_room_and_no_load() -> None:
    fit = shared([0, 1, 2], [0.9, 0.5, 0.3], others=0.0)
    node = Node("b", "hb", 200.0, (1, 2), 2)
    found = beside_each_other({"t": fit}, [node])["t"]
    # Half of the second node is kept: of 1.6 cores below the limit 0.6 are left.
    assert found.used.tolist() == pytest.approx([1.4, 1.4, 0.3])
    assert found.levels == ["normal", "normal", "low"]
    assert found.may_fill.tolist() == pytest.approx([1.6, 1.6, 0.6])
    assert found.room_by_node() == pytest.approx({"a": 0.2, "b": 0.3})
    assert found.has_room(0, 2, fit.may_fill)
    assert not found.has_room(0, 2, found.may_fill)
    # What a node is filled to already is not too full by it.
    full = beside_each_other({"t": shared([2, 2, 2], [0.9, 0.5, 0.1])}, [node, node])["t"]
    assert full.may_fill[2] == pytest.approx(1.5)
