"""001: its algorithms against the figures of its text, and the policies on odd clusters."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.policy import Case
from controller.errors import PolicyError
from controller.policies.component_graph import input_rates
from controller.policies.model_driven.mapping import (
    Allocation,
    Lacking,
    Need,
    Placed,
    at,
    dsm,
    enough,
    peak,
    rsm,
    sam,
)
from controller.policies.model_driven.policies import allocate_existing
from controller.policies.model_driven.policies import dsm as dsm_policy
from controller.policies.model_driven.policies import rsm as rsm_policy
from controller.policies.model_driven.policies import sam as sam_policy
from controller.policies.options import Options
from controller.policies.profiles import Performance, Profile, Profiles
from controller.policies.registry import policy as policy_of
from tests.papers.acquisition import (
    acquire,
    cpu_of,
    empty_slots,
    literal_bundles,
    lsa,
    map_growing,
    mba,
    memory_of,
    slots_needed,
    slots_used,
    threads_of,
)
from tests.papers.performance_model import Sweep, Trial, perf_model
from tests.papers.prediction import predicted_rate, task_rate
from tests.papers.task_profiles import SINK, SOURCE, TASKS, diamond, linear, star
from tests.snapshots import cluster as cluster_of
from tests.snapshots import topology

# Every task in every position, and forwards and backwards.
TURNS = [(*range(i, 5), *range(i)) for i in range(5)]
ORDERS = [[list(TASKS)[t] for t in turn[::step]] for turn in TURNS for step in (1, -1)]

Allocate = Callable[[Sequence[Performance], float], Allocation]
Planning = Callable[[Cluster, LoadSnapshot, Limits, Profiles], Decision]


def allocated(allocate: Allocate, graph: Any, rate_tps: float) -> dict[str, Allocation]:
    rates = input_rates(graph, {}, rate_tps)
    return {name: allocate(table, rates[name]) for name, table in TASKS.items()}


def mapped(placed: Placed | Lacking) -> Placed:
    assert not isinstance(placed, Lacking)
    return placed


@pytest.mark.parametrize(
    ("rate_tps", "cpu", "memory", "slots"),
    [(50, 2.429, 6.239, 7), (100, 4.859, 12.478, 13), (200, 9.717, 24.956, 25)],
)
def test_lsa_linear(rate_tps: float, cpu: float, memory: float, slots: int) -> None:
    tasks = allocated(lsa, linear(), rate_tps)
    assert sum(map(cpu_of, tasks.values())) == pytest.approx(cpu, abs=5e-4)
    assert sum(map(memory_of, tasks.values())) == pytest.approx(memory, abs=5e-4)
    assert slots_needed(tasks.values()) == slots
    assert threads_of(tasks["blob"]) == rate_tps / 2
    assert threads_of(tasks["table"]) == -(-rate_tps // 3)


@pytest.mark.parametrize(
    ("rate_tps", "cpu", "blob", "table", "slots"),
    [(50, 3.231, 80, 70, 4), (100, 6.566, 170, 160, 7), (200, 13.882, 330, 300, 14)],
)
def test_mba_linear(rate_tps: float, cpu: float, blob: int, table: int, slots: int) -> None:
    tasks = allocated(mba, linear(), rate_tps)
    assert sum(map(cpu_of, tasks.values())) == pytest.approx(cpu, abs=5e-4)
    assert (threads_of(tasks["blob"]), threads_of(tasks["table"])) == (blob, table)
    assert slots_needed(tasks.values()) == slots


def test_mba_blob_at_100_and_50() -> None:
    task = mba(TASKS["blob"], 100)
    assert threads_of(task) == 170
    assert (cpu_of(task), memory_of(task)) == pytest.approx((3.147, 3.263), abs=5e-4)
    assert memory_of(mba(TASKS["blob"], 50)) == pytest.approx(1.287, abs=5e-4)


@pytest.mark.parametrize(("rate_tps", "slots"), [(50, 4), (100, 7), (200, 15)])
@pytest.mark.parametrize("with_ends", [False, True])
def test_mba_and_sam_in_any_order(rate_tps: float, slots: int, with_ends: bool) -> None:
    """The printed 4, 7, 15; the source and the sink make no difference."""
    tasks = allocated(mba, linear(), rate_tps)
    ends = {
        name: Allocation(0, 1, 1, need.cpu_frac, need.memory_frac)
        for name, need in (("source", SOURCE), ("sink", SINK))
    }
    for order in ORDERS:
        chain = {name: tasks[name] for name in order}
        if with_ends:
            chain = {"source": ends["source"], **chain, "sink": ends["sink"]}
        asked, placed = map_growing(slots_needed(tasks.values()), partial(sam, chain))
        assert (asked, slots_used(placed)) == (slots, slots)
        assert {name: len(where) for name, where in placed.items()} == {
            name: threads_of(task) for name, task in chain.items()
        }


@pytest.mark.parametrize(("rate_tps", "slots"), [(50, 6), (100, 9), (200, 16)])
def test_literal_sam(rate_tps: float, slots: int) -> None:
    tasks = allocated(mba, linear(), rate_tps)
    literal = {name: literal_bundles(task) for name, task in tasks.items()}
    _, placed = map_growing(slots_needed(tasks.values()), lambda free: sam(literal, free))
    assert slots_used(placed) == slots


@pytest.mark.parametrize(("rate_tps", "slots"), [(50, {7}), (100, {14, 15}), (200, {27})], ids=str)
def test_lsa_and_rsm_need_more_slots_than_planned(rate_tps: float, slots: set[int]) -> None:
    """By the order of tasks; printed are 7, 13 and 28."""
    tasks = allocated(lsa, linear(), rate_tps)
    found = set()
    for order in ORDERS:
        needs = {name: _needs(name, threads_of(tasks[name])) for name in order}
        needs = {"source": [SOURCE], **needs, "sink": [SINK]}
        asked, _ = map_growing(slots_needed(tasks.values()), partial(rsm, needs))
        found.add(asked)
    assert found <= slots


def _needs(task: str, threads: int) -> list[Need]:
    one = at(TASKS[task], 1)
    return [Need(one.cpu_frac, one.memory_frac)] * threads


@pytest.mark.parametrize(
    ("allocate", "graph", "rate_tps"),
    [
        (lsa, linear, 160),
        (mba, linear, 280),
        (lsa, diamond, 150),
        (mba, diamond, 200),
        (mba, star, 240),
    ],
)
def test_the_highest_rate_in_steps_of_10_on_20_slots(
    allocate: Allocate, graph: Callable[[], Any], rate_tps: float
) -> None:
    assert slots_needed(allocated(allocate, graph(), rate_tps).values()) <= 20
    assert slots_needed(allocated(allocate, graph(), rate_tps + 10).values()) > 20


def test_threads_on_20_slots() -> None:
    by_lsa, by_mba = allocated(lsa, linear(), 160), allocated(mba, linear(), 280)
    assert [threads_of(by_lsa[name]) for name in ("blob", "table", "pi")] == [80, 54, 2]
    assert [threads_of(by_mba[name]) for name in ("blob", "table", "pi")] == [470, 420, 5]
    assert sum(map(memory_of, by_lsa.values())) == pytest.approx(19.97, abs=0.005)
    assert sum(map(cpu_of, by_mba.values())) == pytest.approx(19.44, abs=0.005)
    at_200 = allocated(mba, diamond(), 200)
    assert threads_of(at_200["pi"]) == 15
    assert sum(map(cpu_of, at_200.values())) == pytest.approx(19.354, abs=5e-4)


@pytest.mark.parametrize(
    ("rate_tps", "by_lsa", "by_mba"), [(50, 7, 5), (100, 13, 10), (200, 26, 20)]
)
def test_diamond(rate_tps: float, by_lsa: int, by_mba: int) -> None:
    assert slots_needed(allocated(lsa, diamond(), rate_tps).values()) == by_lsa
    tasks = allocated(mba, diamond(), rate_tps)
    asked, _ = map_growing(slots_needed(tasks.values()), lambda free: sam(tasks, free))
    assert asked == by_mba


def test_star_puts_480_into_xml() -> None:
    assert input_rates(star(), {}, 240)["xml"] == 480
    assert input_rates(diamond(), {}, 100)["pi"] == 400


def test_rates_by_selectivity() -> None:
    assert input_rates(diamond(), {"blob": 2.0, "xml": 0.5}, 10)["pi"] == 45


@pytest.mark.parametrize(
    ("slots", "machines"), [(0, []), (1, [1]), (3, [4]), (4, [4]), (6, [4, 2]), (15, [4, 4, 4, 4])]
)
def test_acquire(slots: int, machines: list[int]) -> None:
    assert acquire(slots) == machines
    assert acquire(13, (1, 2, 4, 8)) == [8, 8]


FIGURE_4 = {"B": 5, "O": 4, "Y": 3, "G": 5}


def test_dsm_figure_4() -> None:
    assert dsm(FIGURE_4, 6) == {
        "B": [0, 1, 2, 3, 4],
        "O": [5, 0, 1, 2],
        "Y": [3, 4, 5],
        "G": [0, 1, 2, 3, 4],
    }


def test_sam_figure_4() -> None:
    tasks = {
        name: Allocation(threads // size, size, threads % size, 0.2, 0.2)
        for (name, threads), size in zip(FIGURE_4.items(), (2, 3, 3, 4), strict=True)
    }
    assert sam(tasks, empty_slots([2, 2, 2])) == {
        "B": [0, 0, 4, 4, 5],
        "O": [1, 1, 1, 5],
        "Y": [2, 2, 2],
        "G": [3, 3, 3, 3, 5],
    }


def test_rsm_goes_to_the_machine_with_least_left_and_stays_near() -> None:
    needs = {"a": [Need(0.5, 0.6)] * 2, "b": [Need(0.5, 0.3)] * 2}
    # First a and b share a slot; the second a needs another one's memory, on the same machine.
    assert rsm(needs, empty_slots([2, 2])) == {"a": [0, 1], "b": [0, 1]}


def test_rsm_memory_is_hard_for_a_slot_and_cpu_for_a_machine() -> None:
    assert rsm({"a": [Need(0.9, 0.1)] * 2}, empty_slots([2])) == {"a": [0, 0]}
    assert rsm({"a": [Need(0.1, 0.6)] * 2}, empty_slots([2])) == {"a": [0, 1]}
    assert rsm({"a": [Need(0.1, 0.6)] * 3}, empty_slots([2])) == Lacking("a", 1, Need(0.1, 0.6))
    assert isinstance(rsm({"a": [Need(1.1, 0.1)] * 2}, empty_slots([2])), Lacking)


def test_sam_says_what_does_not_fit() -> None:
    lacking = sam({"a": Allocation(2, 5, 3, 0.5, 0.1)}, empty_slots([2]))
    assert lacking == Lacking("a", 3, Need(0.5, 0.1))
    assert sam({"a": Allocation(3, 5, 0, 0, 0)}, empty_slots([2])) == Lacking(
        "a", 5, Need(1.0, 1.0)
    )


def test_nothing_to_place_needs_no_slot() -> None:
    assert map_growing(0, lambda free: sam({}, free)) == (0, {})
    assert map_growing(0, lambda free: rsm({"a": []}, free)) == (0, {"a": []})
    assert slots_needed([]) == slots_used({}) == 0


def test_nothing_fits_however_many_slots() -> None:
    with pytest.raises(ValueError, match="cannot be mapped to 9 slots"):
        map_growing(1, lambda free: rsm({"a": [Need(0.1, 1.1)]}, free), most=9)


def test_rate_predicted_for_a_mapping() -> None:
    """A 40-thread slot of 60 + 60 + 40 gets a quarter of 100 t/s, and does 20: 80 in all."""
    table = TASKS["table"]
    assert task_rate(table, [0] * 60 + [1] * 60 + [2] * 40) == pytest.approx(80)
    assert task_rate(table, []) == 0
    assert at(table, 3).rate_tps == pytest.approx(5.625)
    placed = {"table": [0] * 60, "xml": [1]}
    both = {name: TASKS[name] for name in placed}
    assert predicted_rate(both, {"table": 1, "xml": 10}, placed) == pytest.approx(31)
    assert predicted_rate({}, {}, {}) == inf


def test_rate_predicted_for_mba_on_20_slots() -> None:
    """Printed are 280 by SAM and 200 by DSM; neither reading gives the 200."""
    tasks, rates = allocated(mba, linear(), 280), dict.fromkeys(TASKS, 1.0)
    by_sam = mapped(sam(tasks, empty_slots([4] * 5)))
    assert predicted_rate(TASKS, rates, by_sam, evenly=False) == pytest.approx(280)
    assert task_rate(TASKS["blob"], by_sam["blob"]) == pytest.approx(235)
    by_dsm = dsm({name: threads_of(task) for name, task in tasks.items()}, 20)
    assert predicted_rate(TASKS, rates, by_dsm) == pytest.approx(265.7, abs=0.05)


def test_reading_a_table() -> None:
    table = TASKS["pi"]
    assert peak(table).threads == 2
    assert (enough(table, 105).threads, enough(table, 106).threads) == (1, 2)
    assert at(table, 0).rate_tps == 0
    assert at(table, 9) == structs.replace(table[1], threads=9)
    flat = (Performance(1, 5, 0.1, 0.1), Performance(2, 5, 0.2, 0.1))
    assert peak(flat).threads == 1


def sweep_of(peaks: dict[int, float], sweep: Sweep) -> tuple[tuple[Performance, ...], list[int]]:
    asked = []

    def trial(threads: int, rate_tps: float) -> Trial:
        asked.append(threads)
        slope = 0.0005 if rate_tps <= peaks[threads] else 0.5
        return Trial(slope, rate_tps / 100, 0.01 * threads)

    return perf_model(trial, sweep), sorted(set(asked))


def test_perf_model_stops_when_more_threads_bring_nothing() -> None:
    peaks = {1: 2.0, 2: 4.0, 3: 6.0, 4: 6.0, 5: 5.0, 6: 99.0}
    points, asked = sweep_of(peaks, Sweep(max_threads=6, max_rate_tps=50))
    assert asked == [1, 2, 3, 4, 5]
    assert [(p.threads, p.rate_tps) for p in points] == [(1, 2), (2, 4), (3, 6), (4, 6), (5, 5)]
    assert points[2] == Performance(3, 6, 0.06, 0.03)


def test_perf_model_goes_on_while_the_rate_rises_to_the_limits() -> None:
    peaks = {n: 10.0 * n for n in range(1, 10)}
    points, asked = sweep_of(peaks, Sweep(7, 55, thread_step=2, rate_step_tps=4))
    assert asked == [1, 3, 5, 7]
    assert [p.rate_tps for p in points] == [9, 29, 49, 53]


def test_perf_model_of_a_task_that_is_never_stable() -> None:
    points, asked = sweep_of(dict.fromkeys(range(1, 10), 0.0), Sweep(9, 9))
    assert (points, asked) == ((), [1, 2, 3])


def world(
    counts: dict[str, int],
    *,
    slots: tuple[int, ...] = (2, 2),
    cpu: float = 0.2,
) -> tuple[Cluster, LoadSnapshot]:
    """Components in a row, all on the first worker."""
    return cluster_of(slots), topology(counts, list(pairwise(counts)), cpu_cores=cpu)


def placement(cluster: Cluster, snapshot: LoadSnapshot, decision: Decision) -> list[int]:
    place: list[int] = applied(decision.moves, cluster, snapshot).place.tolist()
    return place


FIGURE_4_PROFILES = {
    name: Profile(performance=(Performance(size, size, 0.9, 0.5), Performance(1, 1, 0.2, 0.1)))
    for name, size in zip(FIGURE_4, (2, 3, 3, 4), strict=True)
}


def test_policies_place_figure_4() -> None:
    cluster, snapshot = world(FIGURE_4, slots=(2, 2, 2))
    profiles = Profiles(FIGURE_4_PROFILES, rate_tps=5 * 0.99)
    by_dsm = placement(cluster, snapshot, dsm_policy(cluster, snapshot, Limits()))
    assert by_dsm == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4]
    # 4.95 t/s are two bundles of B and a rest, one of O, Y and G each and a rest of 1.95 or 0.95.
    by_sam = placement(cluster, snapshot, sam_policy(cluster, snapshot, Limits(), profiles))
    assert by_sam == [0, 0, 4, 4, 5, 1, 1, 1, 5, 2, 2, 2, 3, 3, 3, 3, 5]


def test_sam_without_a_rate_makes_as_many_bundles_as_there_are() -> None:
    cluster, snapshot = world(FIGURE_4, slots=(2, 2, 2))
    decision = sam_policy(cluster, snapshot, Limits(), Profiles(FIGURE_4_PROFILES))
    assert placement(cluster, snapshot, decision)[:5] == [0, 0, 4, 4, 5]


@pytest.mark.parametrize("rate_tps", [1.0, 37.5, 50.0, 100.0, 199.0, 280.0])
@pytest.mark.parametrize("task", TASKS)
def test_threads_as_mba_allocates_them_are_taken_apart_as_by_mba(
    task: str, rate_tps: float
) -> None:
    wanted = mba(TASKS[task], rate_tps)
    assert allocate_existing(TASKS[task], threads_of(wanted), rate_tps) == wanted


def test_more_or_fewer_threads_than_mba_allocates() -> None:
    table = TASKS["blob"]
    assert allocate_existing(table, 60, 4) == Allocation(0, 50, 60, 0.1469, 0.263)
    assert allocate_existing(table, 40, 30).rest_cpu_frac == pytest.approx((0.5418 + 0.7673) / 2)
    assert allocate_existing(table, 100, 60) == Allocation(2, 50, 0, 0.0, 0.0)
    assert allocate_existing(table, 5, 0) == Allocation(0, 50, 5, 0.0, 0.0)
    assert allocate_existing(table, 120, inf) == Allocation(2, 50, 20, 0.1469, 0.263)


def test_sam_needs_profiles_and_says_so() -> None:
    cluster, snapshot = world({"split": 2, "count": 2})
    with pytest.raises(PolicyError, match=r"sam: component split: profile\.performance must"):
        sam_policy(cluster, snapshot, Limits())
    useless = {"split": Profile(performance=(Performance(1, 0.0, 0.1, 0.1),))}
    with pytest.raises(PolicyError, match="a rate above 0"):
        sam_policy(cluster, snapshot, Limits(), Profiles(useless))
    pinned = replace(snapshot, pinned=("spout",) * 4)
    assert sam_policy(cluster, pinned, Limits()).outcome is Outcome.NOTHING_TO_GAIN


def test_sam_places_system_executors_by_their_measured_cpu() -> None:
    profiles = {"a": Profile(performance=(Performance(1, 1, 0.9, 0.1),))}
    cluster, snapshot = world({"a": 1, "__acker": 2})
    decision = sam_policy(cluster, snapshot, Limits(), Profiles(profiles, rate_tps=1.0))
    assert placement(cluster, snapshot, decision) == [0, 1, 1]


def test_rsm_fills_a_machine_before_it_takes_the_next() -> None:
    cluster, snapshot = world({"a": 4, "b": 4}, cpu=0.3)
    decision = rsm_policy(cluster, snapshot, Limits())
    assert decision.outcome is Outcome.WOULD_MOVE
    nodes = cluster.node_of[placement(cluster, snapshot, decision)]
    # 2 cores a node: six fit the first; a and b take turns.
    assert np.bincount(nodes).tolist() == [6, 2]
    assert nodes[[0, 1, 2, 4, 5, 6]].tolist() == [0] * 6


def test_rsm_uses_profiles_where_there_are_any() -> None:
    profiles = {"a": Profile(performance=(Performance(2, 10, 0.4, 1.2),))}
    cluster, snapshot = world({"a": 2, "b": 1})
    decision = rsm_policy(cluster, snapshot, Limits(), Profiles(profiles))
    # Half of what two threads take: 0.6 of a slot's memory each.
    assert placement(cluster, snapshot, decision) == [0, 1, 0]


@pytest.mark.parametrize("policy", [rsm_policy, sam_policy])
def test_too_little_capacity_is_an_outcome_that_names_it(policy: Planning) -> None:
    profiles = {"a": Profile(performance=(Performance(1, 1, 0.9, 0.1),))}
    cluster, snapshot = world({"a": 5})
    decision = policy(cluster, snapshot, Limits(), Profiles(profiles, rate_tps=10.0))
    assert (decision.outcome, decision.moves) == (Outcome.NO_LOW_WORKER, ())
    assert "resources are missing: 1 of a need" in decision.reason


def test_rsm_with_an_executor_bigger_than_any_machine() -> None:
    cluster, snapshot = world({"a": 1}, slots=(1,), cpu=1.5)
    decision = rsm_policy(cluster, snapshot, Limits())
    assert decision.outcome is Outcome.NO_LOW_WORKER
    assert "1.5 of a worker's CPU" in decision.reason


@pytest.mark.parametrize("name", ["dsm", "rsm", "sam"])
def test_a_component_without_executors_and_one_node(name: str) -> None:
    table = (Performance(1, 1, 0.1, 0.1),)
    options = Options(profiles=Profiles({name: Profile(performance=table) for name in "abc"}))
    cluster, snapshot = world({"a": 2, "b": 0, "c": 1}, slots=(3,))
    decision = policy_of(name, options).at_once(Case(cluster, snapshot, Limits()))
    assert decision.outcome in {Outcome.WOULD_MOVE, Outcome.NOTHING_TO_GAIN}
    assert "nan" not in decision.reason


@pytest.mark.parametrize("policy", [rsm_policy, sam_policy])
def test_pinned_executors_stay_and_take_room_and_closed_workers_get_nothing(
    policy: Planning,
) -> None:
    profiles = {"a": Profile(performance=(Performance(1, 1, 0.5, 0.4),))}
    cluster, snapshot = world({"a": 4}, slots=(1, 1, 1), cpu=0.6)
    cluster = replace(cluster, closed=(None, "no hooks", None))
    snapshot = replace(snapshot, pinned=("spout", None, "spout", None))
    snapshot = replace(snapshot, place=np.array([0, 0, 2, 1]))
    decision = policy(cluster, snapshot, Limits(), Profiles(profiles, rate_tps=4.0))
    places = placement(cluster, snapshot, decision)
    assert places[0] == 0
    assert places[2] == 2
    assert 1 not in places or decision.outcome is Outcome.NO_LOW_WORKER


def test_the_command_refuses_what_sam_cannot_place_in_one_line() -> None:
    saddle = Path(__file__).parents[3] / "golden" / "decide" / "saddle.json"
    nstorm = Path(sys.executable).with_name("nstorm")
    done = subprocess.run(
        [nstorm, "decide", saddle, "--policy", "sam", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nstorm: policy sam: component bolt1: profile.performance")
    assert done.stderr.count("\n") == 1
