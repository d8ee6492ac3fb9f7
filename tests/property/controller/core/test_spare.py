"""What must hold of slots that are opened, for every cluster, load and placement."""

from dataclasses import replace

from hypothesis import example, given, settings

from controller.config import Config
from controller.core.cluster import Cluster
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.policies.gather.problem import Problem
from controller.policies.options import Options, TargetOptions
from controller.walk import walk
from tests.property.controller.policies.gather.test_policy import limits, options, worlds
from tests.property.controller.policies.test_single_move import World
from tests.snapshots import snapshot as loads_of


def crowded(world: World) -> World:
    """Leave the last half of the workers empty."""
    cluster, snapshot = world
    half = (len(cluster.workers) + 1) // 2
    return cluster, replace(snapshot, place=snapshot.place % half)


def worth_an_exchange() -> World:
    """Build one where an exchange relieves as well, and is found only after a slot has opened."""
    sizes = [1.0, 0.5, 0.5, 0.5, 0.5, 0.5]
    rows = [(f"n{i // 5}:{6700 + i}", f"n{i // 5}", size) for i, size in enumerate(sizes)]
    cpu = [0.05, 0.4, 0.7, 0.0]
    return Cluster.build(["n0", "n1"], rows), loads_of("cccc", [1, 0, 0, 0], cpu, [(0, 1, 1.0)])


@settings(max_examples=300)
@example(
    worth_an_exchange(),
    Limits(high_frac=0.85, gain_frac=0.0, weight_node=1.0, weight_worker=0.0, max_moves=2),
    TargetOptions(gain_frac=0.0, move_price_frac=0.0, fill_frac=1.0),
)
@given(worlds().map(crowded), limits, options)
def test_a_slot_is_opened_only_to_relieve_and_closes_again_only_for_traffic(
    world: World, rules: Limits, choice: TargetOptions
) -> None:
    cluster, snapshot = world
    config = Config(
        limits=rules,
        max_moves=rules.max_moves,
        options=Options(target=choice),
        cooldown_s=0.0,
        vetoes=True,
    )
    problem = Problem.of(cluster, snapshot, rules, choice)
    opened, seen = dict[int, float](), {snapshot.place.tobytes()}
    for step in walk(cluster, snapshot, config, 500):
        before, snapshot = snapshot, step.after
        used = set(before.place.tolist())
        new = set(snapshot.place.tolist()) - used
        if not step.decision.moves:
            break
        assert snapshot.place.tobytes() not in seen
        seen.add(snapshot.place.tobytes())
        if not new:
            continue
        (move,), (w,) = step.decision.moves, new
        e = snapshot.executors.index(move.executor)
        assert Fit.of(cluster, before, rules).is_high[before.place[e]]
        assert cluster.node_of[w] not in cluster.node_of[list(used)]
        assert problem.excess_at(snapshot.place) < problem.excess_at(before.place)
        assert not Fit.of(cluster, snapshot, rules).is_high[w]
        assert w not in opened, "it was opened before, and closed again"
        opened[w] = problem.cost_tps(snapshot.place)
    else:
        raise AssertionError("it does not come to rest")
    # Two executors that change places may do what no single move could when the slot was opened.
    for w in opened.keys() - {*snapshot.place.tolist()}:
        assert problem.cost_tps(snapshot.place) < opened[w], "it closes again without a gain"
