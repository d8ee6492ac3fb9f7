"""Seed 004's values to hold: hand graph, saddle, ping-pong, and what `greedy` does differently."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.config import Config
from controller.core.choose import decide
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.decision import Decision, Move, Outcome, Veto, Vetoes
from controller.core.distance import inter_node_tps
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.policy import Case, Rule, Stateless
from controller.policies.greedy import greedy
from controller.policies.otd import otd
from controller.snapshot import parse
from controller.walk import walk as walk_of_files
from tests.affinity import by_node

GOLDEN = Path(__file__).parents[3] / "golden" / "decide"
PAPER = Limits(high_frac=0.9, low_frac=0.85, gain_frac=0.0)


def load(name: str) -> tuple[Cluster, LoadSnapshot]:
    return parse((GOLDEN / f"{name}.json").read_text())


def step(cluster: Cluster, snapshot: LoadSnapshot, decision: Decision) -> LoadSnapshot:
    (move,) = decision.moves
    assert cluster.workers[snapshot.place[snapshot.executors.index(move.executor)]] == move.source
    return snapshot.moved(
        snapshot.executors.index(move.executor), cluster.workers.index(move.target)
    )


def walk(
    policy: Rule, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, steps: int = 100
) -> list[LoadSnapshot]:
    """Follow a policy on frozen traffic until it stops or `steps` are over."""
    path = [snapshot]
    for _ in range(steps):
        decision = policy(cluster, path[-1], limits)
        if not decision.moves:
            break
        path.append(step(cluster, path[-1], decision))
    return path


def test_hand_graph_scores_of_the_other_node() -> None:
    cluster, snapshot = load("hand_graph")
    nodes = cluster.node_of[snapshot.place]
    gain = by_node(cluster, snapshot).gain(np.arange(6), 1 - nodes)
    assert gain.tolist() == [6, 13, 5, 9, 1, -2]
    assert snapshot.traffic.total_tps == 32
    assert inter_node_tps(cluster, snapshot) == 24


def test_literal_otd_on_the_hand_graph_moves_1_then_2_and_stops() -> None:
    cluster, snapshot = load("hand_graph")
    path = walk(otd, cluster, snapshot, PAPER)
    assert [inter_node_tps(cluster, s) for s in path] == [24, 11, 6]
    first = otd(cluster, path[0], PAPER).moves[0]
    second = otd(cluster, path[1], PAPER).moves[0]
    assert (first.executor, first.asc_tps) == ("1-1", 13)
    assert (second.executor, second.asc_tps) == ("2-2", 5)
    assert otd(cluster, path[2], PAPER).outcome is Outcome.NOTHING_TO_GAIN


def test_literal_otd_stays_on_the_saddle() -> None:
    cluster, snapshot = load("saddle")
    gain = by_node(cluster, snapshot).gain(np.arange(4), np.array([1, 0, 1, 0]))
    assert gain.tolist() == [0, 0, 0, 0]
    decision = otd(cluster, snapshot, PAPER)
    assert decision.outcome is Outcome.NOTHING_TO_GAIN
    assert inter_node_tps(cluster, snapshot) / snapshot.traffic.total_tps == 0.5


@pytest.mark.parametrize("names", [("1-1", "2-2"), ("2-2", "1-1")])
def test_a_pair_is_found_whichever_of_the_two_comes_first(names: tuple[str, str]) -> None:
    one, other = names
    document = json.loads((GOLDEN / "saddle.json").read_text())
    for row, (name, worker) in zip(
        document["executors"],
        ((one, "n0:6700"), (other, "n0:6700"), ("3-3", "n1:6700"), ("4-4", "n1:6700")),
        strict=True,
    ):
        row |= {"id": name, "worker": worker, "pinned": "here" if name == "3-3" else None}
    document["traffic"] = [[one, other, 1000.0], [one, "3-3", 1010.0]]
    limits = replace(PAPER, gain_tps=60.0, weight_node=1.0, weight_worker=0.0)
    found = greedy(*parse(json.dumps(document)), limits)
    assert "opens the way for a second move, 1,010 t/s by both" in found.reason


def test_literal_otd_plays_ping_pong_and_safe_does_not() -> None:
    cluster, snapshot = load("ping_pong")
    limits = Limits(high_frac=0.85, low_frac=0.7, gain_frac=0.0)
    path = walk(otd, cluster, snapshot, limits, steps=6)
    assert len(path) == 7
    assert path[2].place.tolist() == path[0].place.tolist() == path[4].place.tolist()

    path = walk(greedy, cluster, snapshot, limits)
    assert len(path) == 2
    assert inter_node_tps(cluster, path[-1]) == 10


def test_otd_with_high_and_no_low_worker_says_what_is_missing() -> None:
    cluster, snapshot = load("ping_pong")
    decision = otd(cluster, snapshot, Limits(high_frac=0.3, low_frac=-1.0))
    assert decision.outcome is Outcome.NO_LOW_WORKER
    assert "n0:6700" in decision.reason
    assert "0.6 cores" in decision.reason


def test_otd_with_neither_high_nor_low_worker_does_nothing() -> None:
    cluster, snapshot = load("hand_graph")
    decision = otd(cluster, snapshot, Limits(high_frac=0.9, low_frac=0.1))
    assert decision.outcome is Outcome.NOTHING_TO_GAIN
    assert not decision.moves


def test_otd_algorithm_1_takes_a_losing_move_but_never_the_own_worker() -> None:
    cluster, snapshot = load("ping_pong")
    decision = otd(cluster, snapshot, Limits(high_frac=0.85, low_frac=0.7))
    (move,) = decision.moves
    assert (move.executor, move.target, move.asc_tps) == ("0-0", "n1:6700", -10)


@pytest.mark.parametrize("policy", [otd, greedy])
def test_a_gain_at_the_threshold_is_below_it(policy: Rule) -> None:
    cluster, snapshot = load("hand_graph")
    limits = replace(PAPER, gain_tps=13.0, weight_node=1.0, weight_worker=0.0)
    decision = policy(cluster, snapshot, limits)
    assert decision.outcome is Outcome.BELOW_THRESHOLD
    assert "13" in decision.reason


@pytest.mark.parametrize("policy", [otd, greedy])
def test_pinned_executors_and_closed_workers_are_left_alone(policy: Rule) -> None:
    cluster, snapshot = load("hand_graph")
    pinned = replace(snapshot, pinned=(None, "spout", None, None, None, None))
    assert policy(cluster, pinned, PAPER).moves[0].executor != "1-1"
    closed = replace(cluster, closed=("full", "full", None, None))
    assert policy(closed, snapshot, PAPER).moves[0].target in {"n1:6700", "n1:6701"}
    shut = replace(cluster, closed=("full",) * 4)
    assert not policy(shut, snapshot, PAPER).moves


def test_safe_relieves_the_most_excess_first() -> None:
    cluster, snapshot = load("hand_graph")
    # Worker 0 holds executors 0 and 3: 0.7 + 0.3 cores, limit 0.8, so both remove all the excess.
    hot = replace(snapshot, cpu_cores=np.array([0.7, 0.1, 0.1, 0.3, 0.1, 0.1]))
    limits = Limits(high_frac=0.8)
    decision = greedy(cluster, hot, limits)
    assert decision.moves[0].executor == "3-3"  # of equal relief the better score
    hotter = replace(snapshot, cpu_cores=np.array([0.55, 0.1, 0.1, 0.15, 0.1, 0.1]))
    decision = greedy(cluster, hotter, Limits(high_frac=0.5))
    # 0.2 above: 0 does not fit anywhere (0.55 > 0.5), 3 removes 0.15 of it.
    assert decision.moves[0].executor == "3-3"


def test_safe_skips_a_worker_empty_can_relieve_and_names_the_giant() -> None:
    cluster, snapshot = load("hand_graph")
    giant = replace(snapshot, cpu_cores=np.array([1.2, 0.1, 0.1, 0.9, 0.1, 0.1]))
    giant = replace(giant, pinned=(None, None, None, "spout", None, None))
    decision = greedy(cluster, giant, Limits())
    assert len(decision.warnings) == 1
    assert "0-0 (bolt) alone needs 1.2 cores" in decision.warnings[0]
    # It still brings traffic together. Executor 1 has 13 to gain, but its node 0 peers' worker is
    # full, so the other worker of that node takes it.
    assert decision.moves[0].executor == "1-1"
    assert decision.moves[0].target == "n0:6701"


def test_safe_leaves_a_worker_level_saddle_within_a_node() -> None:
    # Two talkers on two workers of one node: nothing to gain between nodes, all between workers.
    cluster, snapshot = load("hand_graph")
    place = np.array([0, 0, 0, 0, 1, 0])
    decision = greedy(cluster, replace(snapshot, place=place), Limits(high_frac=1.4))
    (move,) = decision.moves
    assert (move.executor, move.target, move.asc_tps) == ("4-4", "n0:6700", 0)


def test_where_nothing_could_gain_the_reason_says_why() -> None:
    cluster, snapshot = load("hand_graph")
    held = replace(snapshot, pinned=("spout", "cooldown", "spout") * 2)
    silent = replace(snapshot, traffic=replace(snapshot.traffic, tps=np.zeros(6)))
    shut = replace(cluster, closed=("full",) * 4)
    single = Cluster.build(["n0"], [("n0:6700", "n0", 4.0)])
    crowded = replace(snapshot, place=np.zeros(6, dtype=np.int64))
    empty = replace(
        snapshot,
        executors=(),
        component_of=(),
        place=np.zeros(0, dtype=np.int64),
        cpu_cores=np.zeros(0),
        queue=np.zeros(0),
        pinned=(),
        traffic=Traffic.build(np.zeros(0, int), np.zeros(0, int), np.zeros(0)),
    )
    for case, reason in (
        ((cluster, held), "no executor may move, all 6 are pinned: spout, cooldown"),
        ((cluster, silent), "there is no traffic to bring together"),
        ((shut, snapshot), "nothing may move to any worker, all 4 are closed: full"),
        ((single, crowded), "there is only one worker, n0:6700, and nowhere to move to"),
        ((cluster, empty), "no executor may move, there is none"),
    ):
        decision = greedy(*case, Limits())
        assert (decision.outcome, decision.reason) == (Outcome.NOTHING_TO_GAIN, reason)
    one = replace(cluster, nodes=("n0",), node_of=np.zeros(4, dtype=np.int64))
    reason = "all workers are on one node, n0: no traffic leaves it"
    assert otd(one, snapshot, PAPER).reason == reason
    # Between the workers of one node there is something to gain.
    assert greedy(one, snapshot, Limits()).moves


def test_gains_are_in_tuples_only_where_traffic_between_nodes_alone_counts() -> None:
    case = load("hand_graph")
    literal = replace(PAPER, weight_node=1.0, weight_worker=0.0)
    assert "a gain of 13 t/s is" in greedy(*case, literal).reason
    assert "a gain of 13 weighted t/s is" in greedy(*case, Limits()).reason


def test_no_traffic_and_one_node_end_in_an_outcome() -> None:
    cluster, snapshot = load("hand_graph")
    silent = replace(snapshot, traffic=replace(snapshot.traffic, tps=np.zeros(6)))
    for policy in (otd, greedy):
        assert policy(cluster, silent, Limits()).outcome is Outcome.NOTHING_TO_GAIN
    one = replace(cluster, nodes=("n0",), node_of=np.zeros(4, dtype=np.int64))
    for policy in (otd, greedy):
        assert policy(one, snapshot, Limits()).reason
    assert inter_node_tps(one, snapshot) == 0


def test_worker_load_adds_up() -> None:
    cluster, snapshot = load("hand_graph")
    assert Fit.of(cluster, snapshot).used == pytest.approx([0.4, 0.2, 0.4, 0.2])


def test_order_in_the_file_changes_nothing() -> None:
    document = json.loads((GOLDEN / "hand_graph.json").read_text())
    for key in ("nodes", "workers", "executors", "traffic"):
        document[key].reverse()
    cluster, snapshot = parse(json.dumps(document))
    for policy in (otd, greedy):
        assert policy(cluster, snapshot, PAPER) == policy(*load("hand_graph"), PAPER)


def test_with_many_executors_a_move_must_gain_less_for_each_has_less() -> None:
    limits = Limits(gain_frac=0.002)
    assert limits.threshold_tps(1000.0, 18) == limits.threshold_tps(1000.0, 40) == 2.0
    assert limits.threshold_tps(1000.0, 400) == pytest.approx(0.2)
    assert replace(limits, gain_tps=7.0).threshold_tps(1000.0, 400) == 7.0


def test_on_files_a_moved_executor_rests_as_in_a_live_run() -> None:
    # The ping-pong of `otd`, of one executor: a third one keeps the other node's worker alive.
    document = json.loads((GOLDEN / "ping_pong.json").read_text())
    document["executors"][1]["pinned"] = "spout"
    keeper = dict(document["executors"][0], id="2-2", worker="n1:6700", cpu=0.0, pinned="spout")
    document["executors"].append(keeper)
    cluster, snapshot = parse(json.dumps(document))
    limits = Limits(high_frac=0.85, low_frac=0.7, gain_frac=0.0)
    config = Config(policy="otd", limits=limits, cooldown_s=10.0, cycle_s=5.0)
    free = [step.decision for step in walk_of_files(cluster, snapshot, config, 4)]
    assert [d.outcome for d in free] == [Outcome.WOULD_MOVE] * 4
    resting = list(walk_of_files(cluster, snapshot, replace(config, vetoes=True), 4))
    assert [s.decision.outcome for s in resting] == [Outcome.WOULD_MOVE, Outcome.COOLDOWN]
    assert "0-0 has moved and rests for 5 s more" in resting[-1].decision.reason


def test_a_policy_that_wants_what_it_might_have_had_is_not_held_against_the_vetoes() -> None:
    cluster, snapshot = load("hand_graph")

    def fickle(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
        """Want 1-1 to move, but only while none is pinned."""
        if not snapshot.is_movable.all():
            return Decision(Outcome.NOTHING_TO_GAIN, "not today")
        move = Move("1-1", "n1:6700", "n0:6700", 13.0)
        return Decision(Outcome.WOULD_MOVE, "today", (move,))

    other = Vetoes({"5-5": Veto(Outcome.EXCLUDED, "component sink is excluded")})
    case = Case(cluster, snapshot, PAPER)
    assert decide(Stateless(fickle), case, other).decision.reason == "not today"
    its_own = Vetoes({"1-1": Veto(Outcome.EXCLUDED, "component a is excluded")})
    decision = decide(Stateless(fickle), case, its_own).decision
    assert (decision.outcome, decision.reason) == (
        Outcome.EXCLUDED,
        "component a is excluded, but today",
    )
