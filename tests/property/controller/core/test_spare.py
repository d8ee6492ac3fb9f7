"""What must hold of slots that are opened, for every cluster, load and placement."""

from dataclasses import replace

from hypothesis import given, settings

from controller.config import Config
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.policies.gather.problem import Problem, TargetOptions
from controller.policies.registry import Options
from controller.walk import walk
from tests.property.controller.policies.gather.test_policy import limits, options, worlds
from tests.property.controller.policies.test_single_move import World


def crowded(world: World) -> World:
    """Leave the last half of the workers empty."""
    cluster, snapshot = world
    half = (len(cluster.workers) + 1) // 2
    return cluster, replace(snapshot, place=snapshot.place % half)


@settings(max_examples=300)
@given(worlds().map(crowded), limits, options)
def test_a_slot_is_opened_only_to_relieve_and_is_not_closed_again_on_frozen_traffic(
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
    opened, seen = set[int](), {snapshot.place.tobytes()}
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
        opened.add(w)
    else:
        raise AssertionError("it does not come to rest")
    assert opened <= set(snapshot.place.tolist()), "a slot that was opened is closed again"
